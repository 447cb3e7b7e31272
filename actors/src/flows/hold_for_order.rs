//! Holds the available vouchers for a pending order.

use std::collections::{BTreeMap, VecDeque};

use vouchsafe_domain::ids::VoucherId;
use vouchsafe_domain::order::{Order, OrderLine, PendingReason};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};

use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::inventory::{StockHold, Supply};
use crate::journal::Hold;
use crate::supervisor::DecisionDeadline;

/// How often a shelf is asked for fewer vouchers if others took some meanwhile.
const MAX_HOLD_ATTEMPTS: u32 = 5;

/// The vouchers held for an order, allocated to its lines.
pub(super) struct PickedStock {
    pub(super) vouchers: Vec<Allocation>,
    /// Whether some of the shortfall is reserved for waiting orders: it may still become available.
    pub(super) has_reserved: bool,
    holds: Vec<StockHold>,
}

impl PickedStock {
    /// The holds for the commit.
    pub(super) fn holds(self) -> Vec<Box<dyn Hold>> {
        let holds = self.holds.into_iter().map(|hold| Box::new(hold) as Box<dyn Hold>);
        holds.collect()
    }

    /// What the order waits for after these vouchers: a vendor, if a shortfall may be bought.
    pub(super) fn pending_reason_after(&self, order: &Order) -> Option<PendingReason> {
        let has_shortfall = (0_u16..).zip(&order.lines).any(|(index, line)| {
            let allocated = self
                .vouchers
                .iter()
                .filter(|voucher| voucher.line == index)
                .count();
            !line.stock_only && allocated < line.pending() as usize
        });
        has_shortfall.then_some(PendingReason::Vendor)
    }
}

/// Holds what is available of an order's demand, SKU by SKU in sort order; `quantity_for` gives the quantity
/// per line.
pub(super) async fn hold_for_order(
    engine: &Engine,
    order: &Order,
    quantity_for: impl Fn(u16, &OrderLine) -> u32,
    deadline: &DecisionDeadline,
) -> Result<PickedStock, FlowError> {
    let mut demands: BTreeMap<Sku, (usize, u16)> = BTreeMap::new();
    for (index, line) in (0_u16..).zip(&order.lines) {
        let days = u16::try_from(line.min_validity_days).unwrap_or(u16::MAX);
        demands.entry(line.sku()).or_insert((0, days)).0 += quantity_for(index, line) as usize;
    }
    let today = engine.clock.now().date();
    let (mut holds, mut has_reserved) = (Vec::new(), false);
    for (sku, (quantity, days)) in demands {
        let (hold, is_reserved) = hold_available(
            engine,
            &sku,
            quantity,
            Expiry::with_remaining_days(today, days),
            deadline,
        )
        .await?;
        holds.extend(hold);
        has_reserved |= is_reserved;
    }
    Ok(PickedStock {
        vouchers: allocate(order, &quantity_for, &holds),
        has_reserved,
        holds,
    })
}

/// Holds `quantity` vouchers, or as many as are available here; also returns whether some of the rest is
/// reserved. The shelf waits for open holds first, so that nothing is given up that could still become
/// available.
async fn hold_available(
    engine: &Engine,
    sku: &Sku,
    mut quantity: usize,
    not_before: Expiry,
    deadline: &DecisionDeadline,
) -> Result<(Option<StockHold>, bool), FlowError> {
    let mut has_reserved = false;
    for _ in 0..MAX_HOLD_ATTEMPTS {
        if quantity == 0 {
            return Ok((None, has_reserved));
        }
        let held = engine.inventory.hold(sku, quantity, not_before, deadline);
        match held.await? {
            Supply::Held(hold) => return Ok((Some(hold), has_reserved)),
            Supply::SoldOut(available) | Supply::Quarantined(available) => {
                quantity = available.min(quantity - 1)
            }
            Supply::Reserved(available) => {
                has_reserved = true;
                quantity = available.min(quantity - 1);
            }
        }
    }
    Err(FlowError::Unavailable)
}

/// Allocates the held vouchers to the lines.
fn allocate(
    order: &Order,
    quantity_for: impl Fn(u16, &OrderLine) -> u32,
    holds: &[StockHold],
) -> Vec<Allocation> {
    let held = holds
        .iter()
        .map(|hold| (hold.sku().clone(), hold.vouchers().iter().copied().collect()));
    let mut held: BTreeMap<Sku, VecDeque<StockVoucher>> = held.collect();
    let mut allocations = Vec::new();
    for (index, line) in (0..).zip(&order.lines) {
        let sku = line.sku();
        let Some(vouchers) = held.get_mut(&sku) else {
            continue;
        };
        let count = vouchers.len().min(quantity_for(index, line) as usize);
        let taken = vouchers.drain(..count);
        allocations
            .extend(taken.map(|voucher| Allocation::new(VoucherId::generate(), index, sku.clone(), voucher)));
    }
    allocations
}

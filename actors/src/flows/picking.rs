//! What an order that is there already gets of the shelves: as much as there is of what it waits for.

use std::collections::{BTreeMap, VecDeque};

use super::keyed::Unanswered;
use crate::domain::ids::VoucherId;
use crate::domain::order::{Order, OrderLine, PendingReason};
use crate::domain::product::Sku;
use crate::domain::voucher::{Allocation, Expiry, Shelved};
use crate::engine::Engine;
use crate::inventory::{StockHold, Supply};
use crate::journal::Hold;
use crate::supervisor::Patience;

/// How often a shelf is asked for less when others took of it meanwhile.
const MAX_ASKED: u32 = 5;

/// What was set aside for an order, and for which lines.
pub(super) struct Picked {
    pub(super) vouchers: Vec<Allocation>,
    /// Whether there is some of what is missing at another node, or kept for whoever waits: it is not certain then that it
    /// cannot be had.
    pub(super) elsewhere: bool,
    holds: Vec<StockHold>,
}

impl Picked {
    /// What the commit settles.
    pub(super) fn holds(self) -> Vec<Box<dyn Hold>> {
        let holds = self.holds.into_iter().map(|hold| Box::new(hold) as Box<dyn Hold>);
        holds.collect()
    }

    /// What the order waits for once it has these: a vendor, where something is missing that may be bought.
    pub(super) fn leaves(&self, order: &Order) -> Option<PendingReason> {
        let missing = (0_u16..).zip(&order.lines).any(|(number, line)| {
            let got = self
                .vouchers
                .iter()
                .filter(|voucher| voucher.line == number)
                .count();
            !line.stock_only && got < line.pending() as usize
        });
        missing.then_some(PendingReason::Vendor)
    }
}

/// Sets aside what there is of what an order waits for, SKU by SKU in their order; of each line as many as `wanted` says.
pub(super) async fn pick(
    engine: &Engine,
    order: &Order,
    wanted: impl Fn(u16, &OrderLine) -> u32,
    patience: &Patience,
) -> Result<Picked, Unanswered> {
    let mut needs: BTreeMap<Sku, (usize, u16)> = BTreeMap::new();
    for (number, line) in (0_u16..).zip(&order.lines) {
        let days = u16::try_from(line.min_validity_days).unwrap_or(u16::MAX);
        needs.entry(line.sku()).or_insert((0, days)).0 += wanted(number, line) as usize;
    }
    let today = engine.clock.now().date();
    let (mut holds, mut elsewhere) = (Vec::new(), false);
    for (sku, (quantity, days)) in needs {
        let (hold, more) = pick_some(engine, &sku, quantity, Expiry::leaving(today, days), patience).await?;
        holds.extend(hold);
        elsewhere |= more;
    }
    Ok(Picked {
        vouchers: allot(order, &wanted, &holds),
        elsewhere,
        holds,
    })
}

/// Sets so many vouchers aside, or as many as there are here; says whether some of the others are elsewhere. What others hold
/// may come back: the shelf lets it be waited for, so that no rest is given up that could still be had.
async fn pick_some(
    engine: &Engine,
    sku: &Sku,
    mut quantity: usize,
    not_before: Expiry,
    patience: &Patience,
) -> Result<(Option<StockHold>, bool), Unanswered> {
    let mut elsewhere = false;
    for _ in 0..MAX_ASKED {
        if quantity == 0 {
            return Ok((None, elsewhere));
        }
        let asked = engine.inventory.set_aside(sku, quantity, not_before, patience);
        match asked.await? {
            Supply::Held(hold) => return Ok((Some(hold), elsewhere)),
            Supply::SoldOut(left) => quantity = left.min(quantity - 1),
            Supply::Owned(left) | Supply::Kept(left) => {
                elsewhere = true;
                quantity = left.min(quantity - 1);
            }
        }
    }
    Err(Unanswered::Unavailable)
}

/// Gives each line the vouchers that are wanted for it, as far as they go.
fn allot(order: &Order, wanted: impl Fn(u16, &OrderLine) -> u32, holds: &[StockHold]) -> Vec<Allocation> {
    let held = holds
        .iter()
        .map(|hold| (hold.sku().clone(), hold.vouchers().iter().copied().collect()));
    let mut held: BTreeMap<Sku, VecDeque<Shelved>> = held.collect();
    let mut allotted = Vec::new();
    for (number, line) in (0..).zip(&order.lines) {
        let sku = line.sku();
        let Some(vouchers) = held.get_mut(&sku) else {
            continue;
        };
        let some = vouchers.len().min(wanted(number, line) as usize);
        allotted.extend(vouchers.drain(..some).map(|voucher| Allocation {
            voucher_id: VoucherId::generate(),
            line: number,
            sku: sku.clone(),
            voucher,
        }));
    }
    allotted
}

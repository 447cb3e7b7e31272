//! Purchase records of the service and sales records of the vendors.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;
use vouchsafe_actors::ports::vendors::{
    ClaimedPurchase, DuePurchase, OrderPurchases, PurchaseRemainder, ReservedDelivery, VendorId,
};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::{FulfilmentSource, Order};
use vouchsafe_domain::product::Sku;

use super::faults::{VendorFault, VendorFaults};
use super::vendor_of;

/// Time after which an unreleased claim expires.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(120);

/// Delay before the service looks at a waiting order again.
const ORDER_DELAY: Duration = Duration::from_millis(250);

/// How long an out-of-stock response is cached.
const OUT_OF_STOCK_TTL: Duration = Duration::from_secs(30);

/// A purchase in the service's records.
struct PurchaseRow {
    delivery: ReservedDelivery,
    sku: Sku,
    quantity: u32,
    requested_at: OffsetDateTime,
    was_requested: bool,
    ended: bool,
    next_at: Instant,
    claimed: Option<(&'static str, Instant)>,
    /// Number of vouchers imported.
    imported: u32,
}

/// A sale in the vendor's records.
#[derive(Default)]
struct Sale {
    sold: u32,
    /// The vendor sells no more under this key.
    is_closed: bool,
}

#[derive(Default)]
pub(super) struct PurchaseRecords {
    purchases: BTreeMap<Uuid, PurchaseRow>,
    sales: BTreeMap<Uuid, Sale>,
    sold_out: Vec<(Sku, Instant)>,
    /// When waiting orders are due.
    next_looks: BTreeMap<OrderId, Instant>,
    /// SKUs whose reserved stock a node distributes now.
    locked_skus: BTreeSet<Sku>,
    pub(super) faults: VendorFaults,
    /// Vendor calls in flight now.
    pub(super) in_flight: usize,
    pub(super) max_in_flight: usize,
}

impl PurchaseRow {
    fn is_free(&self, now: Instant) -> bool {
        !self.ended && self.next_at <= now && self.claimed.is_none_or(|(_, until)| until <= now)
    }
}

impl PurchaseRecords {
    pub(super) fn open(&mut self, order: &Order, line: u16, sku: Sku, quantity: u32, at: OffsetDateTime) {
        let of_line =
            |row: &PurchaseRow| row.delivery.order_id == order.order_id && row.delivery.line == line;
        if self.purchases.values().any(of_line) {
            return;
        }
        let purchase_id = Uuid::from_u128(self.purchases.len() as u128 + 1);
        let row = PurchaseRow {
            delivery: ReservedDelivery {
                reservation_id: purchase_id,
                source: FulfilmentSource::Vendor,
                partner_id: order.partner_id,
                order_id: order.order_id,
                line,
            },
            sku,
            quantity,
            requested_at: at,
            was_requested: false,
            ended: false,
            next_at: Instant::now(),
            claimed: None,
            imported: 0,
        };
        self.purchases.insert(purchase_id, row);
    }

    pub(super) fn open_purchases(&self, order_id: OrderId) -> Vec<(u16, Uuid)> {
        let rows = self.purchases.iter();
        rows.filter(|(_, row)| row.delivery.order_id == order_id && !row.ended)
            .map(|(purchase_id, row)| (row.delivery.line, *purchase_id))
            .collect()
    }

    pub(super) fn state_of(&self, order_id: OrderId) -> OrderPurchases {
        let mut rows = self
            .purchases
            .values()
            .filter(|row| row.delivery.order_id == order_id)
            .peekable();
        if rows.peek().is_none() {
            return OrderPurchases::None;
        }
        if rows.all(|row| row.ended) {
            OrderPurchases::Ended
        } else {
            OrderPurchases::Open
        }
    }

    /// Whether a waiting order is due; if it is, postpones it.
    pub(super) fn postpone_if_due(&mut self, order_id: OrderId, now: Instant) -> bool {
        let is_due = self.next_looks.get(&order_id).is_none_or(|next| *next <= now);
        if is_due {
            self.next_looks.insert(order_id, now + ORDER_DELAY);
        }
        is_due
    }

    /// Locks those of these SKUs that no node has locked, and returns them.
    pub(super) fn lock(&mut self, mut skus: Vec<Sku>) -> Vec<Sku> {
        skus.retain(|sku| self.locked_skus.insert(sku.clone()));
        skus
    }

    pub(super) fn unlock(&mut self, skus: &[Sku]) {
        for sku in skus {
            self.locked_skus.remove(sku);
        }
    }

    pub(super) fn is_open(&self, purchase_id: Uuid) -> bool {
        self.purchases.get(&purchase_id).is_some_and(|row| !row.ended)
    }

    pub(super) fn due(&self, vendor_id: &VendorId, limit: usize, now: Instant) -> Vec<DuePurchase> {
        let rows = self.purchases.iter();
        let mut due: Vec<_> = rows
            .filter(|(_, row)| row.is_free(now) && vendor_of(&row.sku) == *vendor_id)
            .map(|(purchase_id, row)| {
                let due = DuePurchase {
                    purchase_id: *purchase_id,
                    order_id: row.delivery.order_id,
                };
                (row.next_at, *purchase_id, due)
            })
            .collect();
        due.sort_by_key(|(next_at, purchase_id, _)| (*next_at, *purchase_id));
        due.into_iter().map(|(.., due)| due).take(limit).collect()
    }

    pub(super) fn claim(
        &mut self,
        purchase_id: Uuid,
        node: &'static str,
        now: Instant,
    ) -> Option<ClaimedPurchase> {
        let row = self.purchases.get_mut(&purchase_id)?;
        if !row.is_free(now) {
            return None;
        }
        row.claimed = Some((node, now + CLAIM_TIMEOUT));
        Some(ClaimedPurchase {
            delivery: row.delivery,
            requested_at: row.requested_at,
            was_requested: std::mem::replace(&mut row.was_requested, true),
        })
    }

    pub(super) fn schedule_next(&mut self, purchase_id: Uuid, after: Option<Duration>, now: Instant) {
        if let Some(row) = self.purchases.get_mut(&purchase_id) {
            row.ended |= after.is_none();
            row.next_at = now + after.unwrap_or_default();
            row.claimed = None;
        }
    }

    pub(super) fn release_claims(&mut self, vendor_id: &VendorId, node: &str) {
        for row in self.purchases.values_mut() {
            let own = row.claimed.is_some_and(|(by, _)| by == node);
            if own && vendor_of(&row.sku) == *vendor_id {
                row.claimed = None;
            }
        }
    }

    pub(super) fn sku_of(&self, purchase_id: Uuid) -> Sku {
        self.purchases[&purchase_id].sku.clone()
    }

    pub(super) fn out_of_stock(&mut self, now: Instant) -> Vec<Sku> {
        self.sold_out.retain(|(_, at)| now < *at + OUT_OF_STOCK_TTL);
        self.sold_out.iter().map(|(sku, _)| sku.clone()).collect()
    }

    /// Calls the vendor once. Returns the state of the remainder and the number of new vouchers.
    pub(super) fn sell(&mut self, purchase_id: Uuid) -> (PurchaseRemainder, usize) {
        if self.faults.should_fail(VendorFault::Unreachable) {
            return (PurchaseRemainder::Pending(Some(Duration::from_secs(1))), 0);
        }
        let quantity = self.purchases[&purchase_id].quantity;
        let mut sale = self.sales.remove(&purchase_id).unwrap_or_default();
        if !sale.is_closed {
            self.continue_sale(&mut sale, purchase_id, quantity);
        }
        let (sold, is_closed) = (sale.sold, sale.is_closed);
        self.sales.insert(purchase_id, sale);
        // The sale stands even if its response is lost.
        let mut loss_faults = [VendorFault::ResponseLost, VendorFault::InvalidResponse].into_iter();
        if loss_faults.any(|fault| self.faults.should_fail(fault)) {
            return (PurchaseRemainder::Pending(None), 0);
        }
        let row = self.purchases.get_mut(&purchase_id);
        let imported = row.map_or(0, |row| sold - std::mem::replace(&mut row.imported, sold));
        let remainder = if is_closed {
            PurchaseRemainder::Done
        } else {
            PurchaseRemainder::Pending(None)
        };
        (remainder, imported as usize)
    }

    fn continue_sale(&mut self, sale: &mut Sale, purchase_id: Uuid, quantity: u32) {
        if sale.sold == 0 && self.faults.should_fail(VendorFault::OutOfStock) {
            sale.is_closed = true;
            let sku = self.sku_of(purchase_id);
            self.sold_out.push((sku, Instant::now()));
        } else if self.faults.should_fail(VendorFault::PartialFinal) {
            sale.sold = sale.sold.max(quantity / 2);
            sale.is_closed = true;
        } else if self.faults.should_fail(VendorFault::PartialForNow) {
            sale.sold = sale.sold.max(quantity / 2);
        } else {
            sale.sold = quantity;
            sale.is_closed = true;
        }
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let mut bought = BTreeSet::new();
        let mut violations = Vec::new();
        for (purchase_id, sale) in &self.sales {
            let row = &self.purchases[purchase_id];
            if !bought.insert((row.delivery.order_id, row.delivery.line)) {
                violations.push(format!("{:?} was bought under two keys", row.delivery));
            }
            if sale.sold > row.quantity || row.imported > sale.sold {
                violations.push(format!(
                    "{:?}: {} of {} sold, {} imported",
                    row.delivery, sale.sold, row.quantity, row.imported
                ));
            }
            if row.ended && row.imported < sale.sold {
                violations.push(format!(
                    "{:?} has ended before all vouchers were imported",
                    row.delivery
                ));
            }
        }
        violations
    }

    pub(super) fn unfinished(&self) -> Vec<String> {
        let open = self.purchases.values().filter(|row| !row.ended);
        open.map(|row| format!("{:?} is open", row.delivery)).collect()
    }
}

//! Simulated vendors: their sales, the service's purchase records, and faults of both.
//!
//! A vendor sells once per key and records its sales. Purchase records are durable: they survive every node,
//! and each change is atomic.

mod faults;
mod records;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::faults::VendorFault;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_actors::ports::vendors::{
    ClaimedPurchase, DuePurchase, ForcedResponse, PurchaseRemainder, ReservedStock, SkuLocks, VendorCapacity,
    VendorId, Vendors, WaitingOrder,
};
use vouchsafe_domain::clock::Clock as _;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::store_error::Unavailable;

use self::records::PurchaseRecords;
use super::clock::TestClock;
use crate::{MemoryDatabase, build};

/// Vendors with their concurrency limits.
const CAPACITIES: [(&str, usize); 2] = [("one-by-one", 1), ("many", 3)];

/// Maximum latency of a slow vendor: longer than the decision timeout.
const MAX_LATENCY: Duration = Duration::from_secs(4);

/// All vendors of a simulation; clones are handles to the same ones.
#[derive(Clone)]
pub struct SimulatedVendors {
    records: Arc<Mutex<PurchaseRecords>>,
    db: MemoryDatabase,
    clock: Arc<TestClock>,
}

/// The vendors port of one node.
pub(super) struct NodeVendors {
    pub(super) vendors: SimulatedVendors,
    pub(super) node: &'static str,
}

/// Vendor of a product of [`catalogue`](super::catalogue).
#[must_use]
pub fn vendor_of(sku: &Sku) -> VendorId {
    let (name, _) = CAPACITIES[usize::from(sku.product_id.as_str() == "bought")];
    VendorId(name.into())
}

impl SimulatedVendors {
    pub(super) fn new(db: &MemoryDatabase, clock: &Arc<TestClock>) -> Self {
        Self {
            records: Arc::default(),
            db: db.clone(),
            clock: Arc::clone(clock),
        }
    }

    pub fn inject_faults(&self, seed: u64) {
        self.records().faults.enable_random(seed);
    }

    /// Disables random faults.
    pub fn heal(&self) {
        self.records().faults.disable_random();
    }

    /// Makes the purchase records unavailable, or available again.
    pub fn set_records_unavailable(&self, closed: bool) {
        self.records().faults.set_records_unavailable(closed);
    }

    /// Sets the latency of every response.
    pub fn set_latency(&self, by: Duration) {
        self.records().faults.set_latency(by);
    }

    /// Maximum number of concurrent vendor calls.
    #[must_use]
    pub fn max_in_flight(&self) -> usize {
        self.records().max_in_flight
    }

    /// Count of each fault.
    #[must_use]
    pub fn fault_counts(&self) -> BTreeMap<VendorFault, u64> {
        self.records().faults.counts()
    }

    /// Open purchases of an order, by line.
    #[must_use]
    pub fn open_purchases_of(&self, order_id: OrderId) -> Vec<(u16, Uuid)> {
        self.records().open_purchases(order_id)
    }

    /// Violated invariants of purchases; they hold at any time.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.records().violations()
    }

    /// Waiting orders, open purchases and reserved stock; empty after everything has settled without faults.
    #[must_use]
    pub fn unfinished(&self) -> Vec<String> {
        let waiting = self.db.waiting_orders().into_iter();
        let waiting = waiting.map(|order| format!("order {:?} waits, {:?}", order.reference, order.lines));
        let reserved = self.db.reserved_stock().into_iter();
        let reserved =
            reserved.map(|(reservation_id, sku)| format!("{sku} is reserved under {reservation_id}"));
        waiting
            .chain(reserved)
            .chain(self.records().unfinished())
            .collect()
    }

    fn records(&self) -> MutexGuard<'_, PurchaseRecords> {
        self.records.lock()
    }

    /// The purchase records, unless a fault makes them unavailable.
    fn try_records(&self) -> Result<MutexGuard<'_, PurchaseRecords>, Unavailable> {
        let mut records = self.records();
        if records.faults.should_fail(VendorFault::RecordsUnavailable) {
            return Err(Unavailable("purchase records unavailable".to_owned()));
        }
        Ok(records)
    }

    /// Requests the purchase from the vendor and imports new vouchers.
    async fn request_vouchers(&self, purchase_id: Uuid) -> Result<PurchaseRemainder, Unavailable> {
        let _in_flight = InFlightCall::begin(self);
        let delay = self.records().faults.latency(MAX_LATENCY);
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        let (remainder, imported, sku) = {
            let mut records = self.try_records()?;
            let (remainder, imported) = records.sell(purchase_id);
            (remainder, imported, records.sku_of(purchase_id))
        };
        if imported > 0 {
            self.db
                .add_reserved_stock(&sku, &vec![build::day(400); imported], purchase_id);
        }
        Ok(remainder)
    }
}

/// Counts a vendor call as in flight during its lifetime.
struct InFlightCall<'a>(&'a SimulatedVendors);

impl<'a> InFlightCall<'a> {
    fn begin(vendors: &'a SimulatedVendors) -> Self {
        let mut records = vendors.records();
        records.in_flight += 1;
        records.max_in_flight = records.max_in_flight.max(records.in_flight);
        Self(vendors)
    }
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.0.records().in_flight -= 1;
    }
}

/// Locks of SKUs, which end with the node that has them.
struct SimulatedSkuLocks {
    vendors: SimulatedVendors,
    held: Vec<Sku>,
}

impl SkuLocks for SimulatedSkuLocks {
    fn lock(&mut self, skus: Vec<Sku>) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>> {
        Box::pin(async move {
            let mut records = self.vendors.try_records()?;
            records.unlock(&self.held);
            self.held = records.lock(skus);
            Ok(self.held.clone())
        })
    }
}

impl Drop for SimulatedSkuLocks {
    fn drop(&mut self) {
        self.vendors.records().unlock(&self.held);
    }
}

/// Lines of an order that can be bought: line number, SKU, quantity.
fn purchasable_lines(order: &Order) -> impl Iterator<Item = (u16, Sku, u32)> {
    let lines = (0_u16..).zip(&order.lines);
    let purchasable = lines.filter(|(_, line)| line.pending() > 0 && !line.stock_only);
    purchasable.map(|(number, line)| (number, line.sku(), line.pending()))
}

impl Vendors for NodeVendors {
    fn list_capacities(&self) -> StoreFuture<'_, Result<Vec<VendorCapacity>, Unavailable>> {
        let capacity = |(name, concurrency): (&str, usize)| VendorCapacity {
            vendor_id: VendorId(name.into()),
            concurrency,
        };
        Box::pin(async move {
            self.vendors
                .try_records()
                .map(|_| CAPACITIES.map(capacity).to_vec())
        })
    }

    fn open_sku_locks(&self) -> StoreFuture<'_, Result<Box<dyn SkuLocks>, Unavailable>> {
        Box::pin(async move {
            drop(self.vendors.try_records()?);
            let (vendors, held) = (self.vendors.clone(), Vec::new());
            Ok(Box::new(SimulatedSkuLocks { vendors, held }) as Box<dyn SkuLocks>)
        })
    }

    fn claim_waiting_orders(&self, limit: usize) -> StoreFuture<'_, Result<Vec<WaitingOrder>, Unavailable>> {
        Box::pin(async move {
            let waiting = self.vendors.db.waiting_orders();
            let mut records = self.vendors.try_records()?;
            let mut claimed = Vec::new();
            for order in waiting {
                if claimed.len() < limit && records.postpone_if_due(order.order_id, Instant::now()) {
                    claimed.push(WaitingOrder {
                        partner_id: order.partner_id,
                        order_id: order.order_id,
                        purchases: records.state_of(order.order_id),
                    });
                }
            }
            Ok(claimed)
        })
    }

    fn is_purchasable(&self, order: &Order) -> StoreFuture<'_, Result<bool, Unavailable>> {
        let purchasable = purchasable_lines(order).next().is_some();
        Box::pin(async move { self.vendors.try_records().map(|_| purchasable) })
    }

    fn open_purchases(&self, order: Order) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            let at = self.vendors.clock.now();
            let mut records = self.vendors.try_records()?;
            for (line, sku, quantity) in purchasable_lines(&order).filter(|_| !order.closed) {
                records.open(&order, line, sku, quantity, at);
            }
            Ok(())
        })
    }

    fn list_due_purchases(
        &self,
        vendor_id: &VendorId,
        limit: usize,
    ) -> StoreFuture<'_, Result<Vec<DuePurchase>, Unavailable>> {
        let vendor_id = vendor_id.clone();
        Box::pin(async move { Ok(self.vendors.try_records()?.due(&vendor_id, limit, Instant::now())) })
    }

    fn claim_purchase(
        &self,
        purchase_id: Uuid,
    ) -> StoreFuture<'_, Result<Option<ClaimedPurchase>, Unavailable>> {
        Box::pin(async move {
            Ok(self
                .vendors
                .try_records()?
                .claim(purchase_id, self.node, Instant::now()))
        })
    }

    fn request_vouchers(
        &self,
        claimed: ClaimedPurchase,
        _: Option<ForcedResponse>,
    ) -> StoreFuture<'_, Result<PurchaseRemainder, Unavailable>> {
        Box::pin(self.vendors.request_vouchers(claimed.delivery.reservation_id))
    }

    fn release_claim(
        &self,
        purchase_id: Uuid,
        after: Option<Duration>,
    ) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            self.vendors
                .try_records()?
                .schedule_next(purchase_id, after, Instant::now());
            Ok(())
        })
    }

    fn release_own_claims(&self, vendor_id: &VendorId) -> StoreFuture<'_, Result<(), Unavailable>> {
        let vendor_id = vendor_id.clone();
        Box::pin(async move {
            self.vendors.try_records()?.release_claims(&vendor_id, self.node);
            Ok(())
        })
    }

    fn release_remainder(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<Sku>, Unavailable>> {
        Box::pin(async move {
            drop(self.vendors.try_records()?);
            Ok(self.vendors.db.release_remainder(purchase_id))
        })
    }

    fn list_reserved_stock(&self, limit: usize) -> StoreFuture<'_, Result<Vec<ReservedStock>, Unavailable>> {
        Box::pin(async move {
            let records = self.vendors.try_records()?;
            let reserved = self.vendors.db.reserved_stock().into_iter();
            let others = reserved.filter(|(reservation_id, _)| !records.is_open(*reservation_id));
            let mut by_sku = BTreeMap::<Sku, Vec<Uuid>>::new();
            others.for_each(|(reservation_id, sku)| by_sku.entry(sku).or_default().push(reservation_id));
            let share = (limit / by_sku.len().max(1)).max(1);
            let reserved = by_sku.into_iter().map(|(sku, mut reservation_ids)| {
                reservation_ids.truncate(share);
                ReservedStock { sku, reservation_ids }
            });
            Ok(reserved.collect())
        })
    }

    fn list_orders_waiting_for<'a>(
        &'a self,
        sku: &'a Sku,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreFuture<'a, Result<Vec<(PartnerId, OrderId)>, Unavailable>> {
        Box::pin(async move {
            drop(self.vendors.try_records()?);
            let is_waiting = |order: &Order| {
                order
                    .lines
                    .iter()
                    .any(|line| line.pending() > 0 && line.sku() == *sku)
            };
            let position = |order: &Order| (order.created_at, order.partner_id, order.reference.clone());
            let mut orders = self.vendors.db.orders().into_iter();
            let after = after.and_then(|after| orders.find(|order| order.order_id == after));
            let waiting = self.vendors.db.waiting_orders().into_iter().filter(is_waiting);
            let waiting = waiting.filter(|order| {
                after
                    .as_ref()
                    .is_none_or(|after| position(order) > position(after))
            });
            Ok(waiting
                .map(|order| (order.partner_id, order.order_id))
                .take(limit)
                .collect())
        })
    }

    /// A simulated order's delay is short.
    fn expedite_orders_waiting_for<'a>(
        &'a self,
        _: &'a Sku,
        _: OrderId,
    ) -> StoreFuture<'a, Result<(), Unavailable>> {
        Box::pin(async move { self.vendors.try_records().map(drop) })
    }

    fn release_reservations(&self, reservation_ids: Vec<Uuid>) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            drop(self.vendors.try_records()?);
            for reservation_id in reservation_ids {
                self.vendors.db.release_reservation(reservation_id);
            }
            Ok(())
        })
    }

    fn list_out_of_stock(&self) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>> {
        Box::pin(async move { Ok(self.vendors.try_records()?.out_of_stock(Instant::now())) })
    }
}

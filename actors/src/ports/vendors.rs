//! Vendor port: vendors and purchase records, as the engine needs them; implemented by the service.
//!
//! A code never passes through this port. The implementation requests vouchers from the vendor, encrypts them
//! and stores them as stock reserved for the purchase; the engine learns only what remains. Each method is a
//! step that may be repeated.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::{FulfilmentSource, Order};
use vouchsafe_domain::product::Sku;

use vouchsafe_domain::store_error::Unavailable;

use super::store::StoreFuture;

/// A vendor's id, chosen by its operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VendorId(pub Arc<str>);

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A vendor and its concurrency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorCapacity {
    pub vendor_id: VendorId,
    /// Maximum number of purchases in flight.
    pub concurrency: usize,
}

/// An order that waits for vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    pub purchases: OrderPurchases,
}

/// The purchases of a waiting order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderPurchases {
    None,
    /// Some are open.
    Open,
    /// Nothing more will come from them.
    Ended,
}

/// Locks of SKUs whose reserved stock this node distributes. Dropping them, or the end of the node, releases
/// them.
pub trait SkuLocks: Send {
    /// Releases the locks held so far and takes those of these SKUs. Returns the SKUs that no other node has.
    ///
    /// # Errors
    /// [`Unavailable`]: all locks are lost, and no other can be taken.
    fn lock(&mut self, skus: Vec<Sku>) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>>;
}

/// A purchase that is due for a request to its vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuePurchase {
    pub purchase_id: Uuid,
    pub order_id: OrderId,
}

/// Reserved stock and the order line it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedDelivery {
    /// The reservation's id: that of the purchase, or one of its own.
    pub reservation_id: Uuid,
    /// Whether it was bought for the order, or came into stock while the order waited.
    pub source: FulfilmentSource,
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// Line index, from 0.
    pub line: u16,
}

/// A purchase claimed by this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedPurchase {
    /// The order line it is for, and its reservation id (the purchase's key).
    pub delivery: ReservedDelivery,
    /// When the purchase was recorded.
    pub requested_at: OffsetDateTime,
    /// Whether its vendor may have received a request.
    pub was_requested: bool,
}

/// A response of the sandbox's mock vendor that a partner requests, instead of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedResponse {
    /// It sells this many further vouchers.
    Sell(u32),
    /// It sells nothing more.
    Refuse,
    /// It does not respond in time.
    TimeOut,
}

/// The part of a purchase that the vendor has not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurchaseRemainder {
    /// May still come: ask again, no sooner than after this delay if the vendor gave one.
    Pending(Option<Duration>),
    /// An operator fulfils it by hand; no vendor was asked.
    Manual,
    Done,
}

/// Stock reserved for waiting orders of a SKU, not for one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedStock {
    pub sku: Sku,
    /// Oldest first.
    pub reservation_ids: Vec<Uuid>,
}

/// Vendors and purchase records.
pub trait Vendors: Send + Sync + 'static {
    /// Lists all vendors with their current concurrency.
    ///
    /// # Errors
    /// [`Unavailable`], as for every method of this trait.
    fn list_capacities(&self) -> StoreFuture<'_, Result<Vec<VendorCapacity>, Unavailable>>;

    /// Prepares to lock SKUs; none is locked yet.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn open_sku_locks(&self) -> StoreFuture<'_, Result<Box<dyn SkuLocks>, Unavailable>>;

    /// Claims about `limit` waiting orders that are due, in equal shares for each SKU that they lack and at
    /// least one, so that a backlog of one SKU delays no other. An order is due when it was accepted or
    /// changed, when a purchase of it ended, and otherwise after a delay that grows with its age.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn claim_waiting_orders(&self, limit: usize) -> StoreFuture<'_, Result<Vec<WaitingOrder>, Unavailable>>;

    /// Whether a vendor can be asked for something the order lacks; false if operators fulfil all of it by
    /// hand.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn is_purchasable(&self, order: &Order) -> StoreFuture<'_, Result<bool, Unavailable>>;

    /// Records a purchase for each pending line that may be bought; a line that has one keeps it.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn open_purchases(&self, order: Order) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Lists up to `limit` due, unclaimed purchases of a vendor, those that are due longest first.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn list_due_purchases(
        &self,
        vendor_id: &VendorId,
        limit: usize,
    ) -> StoreFuture<'_, Result<Vec<DuePurchase>, Unavailable>>;

    /// Claims a due purchase; `None` if another node was faster. From here on the vendor may have received a
    /// request.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn claim_purchase(
        &self,
        purchase_id: Uuid,
    ) -> StoreFuture<'_, Result<Option<ClaimedPurchase>, Unavailable>>;

    /// Sends one request to the vendor: to sell or, if it may have received one before, to report what it
    /// sold. Newly sold vouchers are stored as stock reserved for the purchase before this returns. A forced
    /// response replaces that of a mock vendor.
    ///
    /// # Errors
    /// [`Unavailable`] if the service itself failed; a failure of the vendor is
    /// [`PurchaseRemainder::Pending`].
    fn request_vouchers(
        &self,
        claimed: ClaimedPurchase,
        forced: Option<ForcedResponse>,
    ) -> StoreFuture<'_, Result<PurchaseRemainder, Unavailable>>;

    /// Releases a claim. The purchase is due again after `after`; `None` if nothing more will come.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release_claim(
        &self,
        purchase_id: Uuid,
        after: Option<Duration>,
    ) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Releases the claims of earlier incarnations of this node on a vendor's purchases.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release_own_claims(&self, vendor_id: &VendorId) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Ends the reservation of a purchase's unused stock: it becomes reserved for orders that wait for the
    /// SKU, or free if there are none. Returns the SKU if any stock was left.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release_remainder(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<Sku>, Unavailable>>;

    /// Lists about `limit` reservations for waiting orders, in equal shares for each SKU and at least one.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn list_reserved_stock(&self, limit: usize) -> StoreFuture<'_, Result<Vec<ReservedStock>, Unavailable>>;

    /// Lists up to `limit` orders that wait for a SKU, oldest first, and only those behind `after`.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn list_orders_waiting_for<'a>(
        &'a self,
        sku: &'a Sku,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreFuture<'a, Result<Vec<(PartnerId, OrderId)>, Unavailable>>;

    /// Makes the oldest orders behind `after` that wait for a SKU due at once.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn expedite_orders_waiting_for<'a>(
        &'a self,
        sku: &'a Sku,
        after: OrderId,
    ) -> StoreFuture<'a, Result<(), Unavailable>>;

    /// Releases reservations: any shelf may claim the stock.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release_reservations(&self, reservation_ids: Vec<Uuid>) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Lists the SKUs that their vendors recently reported as out of stock.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn list_out_of_stock(&self) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>>;
}

//! What does the engine ask of vendors, and of the books of what is bought from them? The port that the service implements.
//!
//! Rule: a code never passes here. Whoever implements this asks the vendor, seals what it sold and makes stock of it that is
//! kept for the purchase; the engine hears what becomes of the rest. Each method is one step that may be repeated.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::domain::ids::{OrderId, PartnerId};
use crate::domain::order::Order;
use crate::domain::product::Sku;
use crate::flows::Delivery;
use crate::store::{StoreFuture, Unavailable};

/// A vendor, by the name that its operator gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VendorId(pub Arc<str>);

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A vendor that may be bought from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplier {
    pub vendor_id: VendorId,
    /// How many purchases may be under way with it at a time.
    pub concurrency: usize,
}

/// An order that waits for a vendor, and for which nothing is being bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingOrder {
    pub partner_id: PartnerId,
    pub order_id: OrderId,
    /// Whether something was bought for it, and nothing more comes of that.
    pub bought: bool,
}

/// A purchase that may be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub purchase_id: Uuid,
    pub order_id: OrderId,
}

/// A purchase that this node alone asks about for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedPurchase {
    /// What it is for, and under which key.
    pub delivery: Delivery,
    /// When it was written down.
    pub requested_at: OffsetDateTime,
    /// Whether its vendor may have heard of it.
    pub asked: bool,
}

/// What becomes of what a vendor was asked for and has not sold yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It may come: ask again, this much later at least where the vendor said so.
    ToCome(Option<Duration>),
    /// An operator brings it in: nobody else was ever told of it.
    ByHand,
    Over,
}

/// Stock that is kept for orders that wait for it, and not for one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptStock {
    pub kept_id: Uuid,
    pub sku: Sku,
}

/// Vendors and the books of purchases, as the engine sees them.
pub trait Vendors: Send + Sync + 'static {
    /// All vendors, with their terms of this moment.
    ///
    /// # Errors
    /// [`Unavailable`], as for every method here.
    fn suppliers(&self) -> StoreFuture<'_, Result<Vec<Supplier>, Unavailable>>;

    /// Up to `limit` orders that wait, oldest first, of those after `after`.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn waiting_orders(
        &self,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreFuture<'_, Result<Vec<WaitingOrder>, Unavailable>>;

    /// Whether a vendor is asked for something that the order lacks. Not where operators bring in all of it.
    fn is_asked_for(&self, order: &Order) -> StoreFuture<'_, Result<bool, Unavailable>>;

    /// Writes a purchase down for each line that waits and may be bought; a line that has one keeps it.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn open(&self, order: Order) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Up to `limit` purchases of a vendor that are due and that nobody asks about: the first of each order before the second
    /// of any.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn due(&self, vendor_id: &VendorId, limit: usize) -> StoreFuture<'_, Result<Vec<Due>, Unavailable>>;

    /// Claims a purchase that is due. From here on the vendor may have heard of it. `None` where somebody was faster.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn claim(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<ClaimedPurchase>, Unavailable>>;

    /// Asks the vendor once: to sell, or where it may have heard of it, what it sold. What is new of it is stock when this
    /// answers, kept for the purchase.
    ///
    /// # Errors
    /// [`Unavailable`], for a reason of ours: the vendor's own troubles are a rest that is to come.
    fn ask(&self, claimed: ClaimedPurchase) -> StoreFuture<'_, Result<Rest, Unavailable>>;

    /// Gives a claim back. `after` is when the purchase is due again; with none nothing more comes of it.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn note(&self, purchase_id: Uuid, after: Option<Duration>) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Gives back what an earlier incarnation on this node has claimed of a vendor's purchases.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn give_back(&self, vendor_id: &VendorId) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// What is left of a purchase is kept for its order no more: for orders that wait for the SKU, if there are any, else
    /// for nobody. Gives the SKU if anything was left.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn pass_on(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<Sku>, Unavailable>>;

    /// Up to `limit` ids under which stock is kept for whoever waits.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn kept_stock(&self, limit: usize) -> StoreFuture<'_, Result<Vec<KeptStock>, Unavailable>>;

    /// The oldest order that waits for vouchers of a SKU, of those after `after`.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn first_in_line<'a>(
        &'a self,
        sku: &'a Sku,
        after: Option<OrderId>,
    ) -> StoreFuture<'a, Result<Option<(PartnerId, OrderId)>, Unavailable>>;

    /// What is kept under this id is kept for nobody any more: any shelf may claim it.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn release(&self, kept_id: Uuid) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// The SKUs of which their vendor's last word, not too long ago, is that it has none.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn out_of_stock(&self) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>>;
}

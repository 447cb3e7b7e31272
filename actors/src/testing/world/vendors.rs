//! The vendors of a world: what they have sold, the books of what is bought from them, and what goes wrong with either.
//!
//! Rule: a vendor sells once under a key, and its own books say what it sold. The books of purchases are on disk: they
//! outlive every node, and a step of them is made whole or not at all.

mod books;
mod trouble;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use self::books::Books;
pub use self::trouble::Trouble;
use super::clock::TestClock;
use crate::domain::clock::Clock as _;
use crate::domain::ids::{OrderId, PartnerId};
use crate::domain::order::Order;
use crate::domain::product::Sku;
use crate::procurement::{ClaimedPurchase, Due, KeptStock, Rest, Supplier, VendorId, Vendors, WaitingOrder};
use crate::store::{StoreFuture, Unavailable};
use crate::testing::{MemoryDatabase, build};

/// How many purchases may be under way with each vendor: one at a time, and some.
const SUPPLIERS: [(&str, usize); 2] = [("one-by-one", 1), ("many", 3)];

/// How long a slow vendor takes at most: longer than a decision is waited for.
const SLOWEST: Duration = Duration::from_secs(4);

/// All vendors of a world; its clones are handles of the same ones.
#[derive(Clone)]
pub struct Market {
    books: Arc<Mutex<Books>>,
    db: MemoryDatabase,
    clock: Arc<TestClock>,
}

/// The vendors, as one node speaks to them.
pub(super) struct MarketOf {
    pub(super) market: Market,
    pub(super) node: &'static str,
}

/// Who sells a product of [`catalogue`](super::catalogue).
#[must_use]
pub fn vendor_of(sku: &Sku) -> VendorId {
    let (name, _) = SUPPLIERS[usize::from(sku.product_id.as_str() == "bought")];
    VendorId(name.into())
}

impl Market {
    pub(super) fn new(db: &MemoryDatabase, clock: &Arc<TestClock>) -> Self {
        Self {
            books: Arc::default(),
            db: db.clone(),
            clock: Arc::clone(clock),
        }
    }

    /// Things go wrong by chance from here on.
    pub fn make_trouble(&self, seed: u64) {
        self.books().trouble.begin(seed);
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        self.books().trouble.end();
    }

    /// From here on our books are out of reach, or are within it again.
    pub fn close_books(&self, closed: bool) {
        self.books().trouble.close_books(closed);
    }

    /// Every answer takes so long from here on.
    pub fn slow_down(&self, by: Duration) {
        self.books().trouble.slow_down(by);
    }

    /// How many were asked about at once, at most.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.books().most_at_once
    }

    /// How often each thing went wrong.
    #[must_use]
    pub fn troubles(&self) -> std::collections::BTreeMap<Trouble, u64> {
        self.books().trouble.counts()
    }

    /// The purchases of an order that go on, by their line.
    #[must_use]
    pub fn open_purchases_of(&self, order_id: OrderId) -> Vec<(u16, Uuid)> {
        self.books().open_of(order_id)
    }

    /// What is wrong with what was bought, at any moment.
    #[must_use]
    pub fn wrongs(&self) -> Vec<String> {
        self.books().wrongs()
    }

    /// What has no end though nothing goes wrong any more: orders that wait, purchases that go on, stock that is kept.
    #[must_use]
    pub fn loose_ends(&self) -> Vec<String> {
        let waiting = self.db.waiting_orders().into_iter();
        let waiting = waiting.map(|order| format!("order {:?} waits, {:?}", order.reference, order.lines));
        let kept = self.db.kept_stock().into_iter();
        let kept = kept.map(|(kept_id, sku)| format!("{sku} is kept under {kept_id}"));
        waiting.chain(kept).chain(self.books().loose_ends()).collect()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to the books, which may be out of reach.
    fn reach(&self) -> Result<MutexGuard<'_, Books>, Unavailable> {
        let mut books = self.books();
        if books.trouble.strikes(Trouble::BooksFail) {
            return Err(Unavailable("the books are out of reach".to_owned()));
        }
        Ok(books)
    }

    /// Asks the vendor, and takes in what is new.
    async fn ask(&self, purchase_id: Uuid) -> Result<Rest, Unavailable> {
        let _asking = Asking::begin(self);
        let slow = self.books().trouble.slowness(SLOWEST);
        if let Some(slow) = slow {
            tokio::time::sleep(slow).await;
        }
        let (rest, taken, sku) = {
            let mut books = self.reach()?;
            let (rest, taken) = books.sell(purchase_id);
            (rest, taken, books.sku_of(purchase_id))
        };
        if taken > 0 {
            self.db
                .add_bought(&sku, &vec![build::day(400); taken], purchase_id);
        }
        Ok(rest)
    }
}

/// Somebody asks a vendor, until it is dropped.
struct Asking<'a>(&'a Market);

impl<'a> Asking<'a> {
    fn begin(market: &'a Market) -> Self {
        let mut books = market.books();
        books.at_once += 1;
        books.most_at_once = books.most_at_once.max(books.at_once);
        Self(market)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.books().at_once -= 1;
    }
}

/// What of an order is to be bought: the line, of what, and how many.
fn may_be_bought(order: &Order) -> impl Iterator<Item = (u16, Sku, u32)> {
    let lines = (0_u16..).zip(&order.lines);
    let missing = lines.filter(|(_, line)| line.pending() > 0 && !line.stock_only);
    missing.map(|(number, line)| (number, line.sku(), line.pending()))
}

impl Vendors for MarketOf {
    fn suppliers(&self) -> StoreFuture<'_, Result<Vec<Supplier>, Unavailable>> {
        let supplier = |(name, concurrency): (&str, usize)| Supplier {
            vendor_id: VendorId(name.into()),
            concurrency,
        };
        Box::pin(async move { self.market.reach().map(|_| SUPPLIERS.map(supplier).to_vec()) })
    }

    fn waiting_orders(
        &self,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreFuture<'_, Result<Vec<WaitingOrder>, Unavailable>> {
        Box::pin(async move {
            let waiting = behind(self.market.db.waiting_orders(), after);
            let books = self.market.reach()?;
            let idle = waiting.filter(|order| books.open_of(order.order_id).is_empty());
            let found = idle.map(|order| WaitingOrder {
                partner_id: order.partner_id,
                order_id: order.order_id,
                bought: books.was_bought(order.order_id),
            });
            Ok(found.take(limit).collect())
        })
    }

    fn is_asked_for(&self, order: &Order) -> StoreFuture<'_, Result<bool, Unavailable>> {
        let asked = may_be_bought(order).next().is_some();
        Box::pin(async move { self.market.reach().map(|_| asked) })
    }

    fn open(&self, order: Order) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            let at = self.market.clock.now();
            let mut books = self.market.reach()?;
            for (line, sku, quantity) in may_be_bought(&order).filter(|_| !order.closed) {
                books.open(&order, line, sku, quantity, at);
            }
            Ok(())
        })
    }

    fn due(&self, vendor_id: &VendorId, limit: usize) -> StoreFuture<'_, Result<Vec<Due>, Unavailable>> {
        let vendor_id = vendor_id.clone();
        Box::pin(async move { Ok(self.market.reach()?.due(&vendor_id, limit, Instant::now())) })
    }

    fn claim(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<ClaimedPurchase>, Unavailable>> {
        Box::pin(async move { Ok(self.market.reach()?.claim(purchase_id, self.node, Instant::now())) })
    }

    fn ask(&self, claimed: ClaimedPurchase) -> StoreFuture<'_, Result<Rest, Unavailable>> {
        Box::pin(self.market.ask(claimed.delivery.kept_id))
    }

    fn note(&self, purchase_id: Uuid, after: Option<Duration>) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            self.market.reach()?.note(purchase_id, after, Instant::now());
            Ok(())
        })
    }

    fn give_back(&self, vendor_id: &VendorId) -> StoreFuture<'_, Result<(), Unavailable>> {
        let vendor_id = vendor_id.clone();
        Box::pin(async move {
            self.market.reach()?.give_back(&vendor_id, self.node);
            Ok(())
        })
    }

    fn pass_on(&self, purchase_id: Uuid) -> StoreFuture<'_, Result<Option<Sku>, Unavailable>> {
        Box::pin(async move {
            drop(self.market.reach()?);
            Ok(self.market.db.pass_on(purchase_id))
        })
    }

    fn kept_stock(&self, limit: usize) -> StoreFuture<'_, Result<Vec<KeptStock>, Unavailable>> {
        Box::pin(async move {
            let books = self.market.reach()?;
            let kept = self.market.db.kept_stock().into_iter();
            let others = kept.filter(|(kept_id, _)| !books.goes_on(*kept_id));
            let others = others.map(|(kept_id, sku)| KeptStock { kept_id, sku });
            Ok(others.take(limit).collect())
        })
    }

    fn first_in_line<'a>(
        &'a self,
        sku: &'a Sku,
        after: Option<OrderId>,
    ) -> StoreFuture<'a, Result<Option<(PartnerId, OrderId)>, Unavailable>> {
        Box::pin(async move {
            drop(self.market.reach()?);
            let waits = |order: &Order| {
                order
                    .lines
                    .iter()
                    .any(|line| line.pending() > 0 && line.sku() == *sku)
            };
            let first = behind(self.market.db.waiting_orders(), after).find(waits);
            Ok(first.map(|order| (order.partner_id, order.order_id)))
        })
    }

    fn release(&self, kept_id: Uuid) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            drop(self.market.reach()?);
            self.market.db.release_bought(kept_id);
            Ok(())
        })
    }

    fn out_of_stock(&self) -> StoreFuture<'_, Result<Vec<Sku>, Unavailable>> {
        Box::pin(async move { Ok(self.market.reach()?.out_of_stock(Instant::now())) })
    }
}

/// Those behind this one; all of them where it does not wait any more.
fn behind(orders: Vec<Order>, after: Option<OrderId>) -> impl Iterator<Item = Order> {
    let place = after.and_then(|after| orders.iter().position(|order| order.order_id == after));
    orders.into_iter().skip(place.map_or(0, |place| place + 1))
}

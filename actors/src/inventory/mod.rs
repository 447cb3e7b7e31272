//! Inventory: one actor per SKU decides which vouchers an order gets.

mod actor;
pub mod shelf;

use std::sync::Arc;

use actor::InventoryActor;
use actor::message::{HoldVouchers, NotifyStockChange, StockChange, VoucherRequest};
#[cfg(feature = "testing")]
use actor::probe::{GetShelf, Panic};
pub use actor::{StockHold, Supply};
use tracing::{Instrument as _, debug_span};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::StockDemand;
use vouchsafe_domain::voucher::Expiry;

use crate::ports::store::Store;
use crate::supervisor::{
    ActorScan, ActorStats, ActorTotals, BusyActor, DecisionDeadline, DecisionError, Directory, Spawner,
};
use vouchsafe_domain::spans::SPANS;
use vouchsafe_domain::store_error::Unavailable;

/// The inventory actors of this node.
pub struct Inventory {
    actors: Directory<Sku, InventoryActor>,
    store: Arc<dyn Store>,
}

impl Inventory {
    /// Creates an empty inventory; each shelf claims its stock on its first request.
    pub fn new(spawner: Spawner, store: Arc<dyn Store>) -> Self {
        let shelf_store = Arc::clone(&store);
        let factory = move |sku, lineage| InventoryActor::new(sku, Arc::clone(&shelf_store), lineage);
        Self {
            actors: Directory::new(spawner, factory),
            store,
        }
    }

    /// Holds `quantity` vouchers of a SKU, none of which expires before `not_before`.
    ///
    /// # Errors
    /// [`DecisionError`] if the shelf could not decide in time: stock is being claimed, other holds use it,
    /// or its wait queue is full.
    pub async fn hold(
        &self,
        sku: &Sku,
        quantity: usize,
        not_before: Expiry,
        deadline: &DecisionDeadline,
    ) -> Result<Supply, DecisionError> {
        let request = VoucherRequest { quantity, not_before };
        let held = deadline.ask(
            || self.actors.get(sku),
            |queued| HoldVouchers {
                request,
                slot: queued,
            },
        );
        held.instrument(debug_span!(target: SPANS, "hold inventory", %sku))
            .await
    }

    /// Notifies the SKU's shelf, if it is in memory, that new stock can be claimed; `earliest` is its
    /// earliest expiry.
    pub fn notify_restocked(&self, sku: &Sku, earliest: Expiry) {
        self.notify(sku, StockChange::Restocked(earliest));
    }

    /// Notifies the SKU's shelf, if it is in memory, that others may have taken its vouchers; it sells none
    /// of them before it has claimed them again.
    pub fn invalidate(&self, sku: &Sku) {
        self.notify(sku, StockChange::Invalidated);
    }

    /// Releases stock that orders on other nodes wait for: each SKU's shelf chooses what it gives up. Run it
    /// several times a second; the other node waits for it.
    ///
    /// # Errors
    /// [`Unavailable`] if the store does not answer; the other nodes ask again.
    pub async fn serve_demands(&self) -> Result<(), Unavailable> {
        for StockDemand { sku, quantity } in self.store.list_stock_demands().await? {
            if self.actors.find(&sku).is_some() {
                self.notify(&sku, StockChange::Demanded(quantity));
            } else {
                // Stock of a shelf that is not in memory. If it starts meanwhile, its commits find the stock
                // gone.
                self.store.release_stock(sku, Vec::new()).await?;
            }
        }
        Ok(())
    }

    #[allow(clippy::disallowed_methods)] // a shelf that is not in memory, or dies, reads the store later
    fn notify(&self, sku: &Sku, change: StockChange) {
        if let Some(shelf) = self.actors.find(sku) {
            let queued = shelf.lineage.metrics.enqueue();
            shelf.addr.do_send(NotifyStockChange { change, slot: queued });
        }
    }

    /// Makes every shelf claim its stock again before its next decision.
    pub fn reload_all(&self) {
        self.actors.reload_all();
    }

    /// The counters of every inventory actor.
    pub fn stats(&self) -> Vec<(Sku, ActorStats)> {
        self.actors.stats()
    }

    /// Totals and the busiest actors; see [`Directory::scan`].
    pub fn scan(&self, limit: usize) -> ActorScan<Sku> {
        self.actors.scan(limit)
    }

    /// The counters of one actor; see [`Directory::describe`].
    pub fn describe(&self, key: &Sku) -> Option<BusyActor<Sku>> {
        self.actors.describe(key)
    }

    /// Totals over all inventory actors.
    pub fn totals(&self) -> ActorTotals {
        self.actors.totals()
    }

    /// The shelf of a SKU as its actor knows it; `None` if no actor is alive.
    #[cfg(feature = "testing")]
    pub async fn shelf(&self, sku: &Sku) -> Option<shelf::Shelf> {
        self.actors.find(sku)?.addr.send(GetShelf).await.ok()
    }

    /// Makes a SKU's actor panic in the middle of its work.
    #[cfg(feature = "testing")]
    pub async fn panic(&self, sku: &Sku) {
        if let Some(shelf) = self.actors.get(sku) {
            let died = shelf.addr.send(Panic).await;
            assert!(died.is_err(), "a panicking actor must not reply");
        }
    }
}

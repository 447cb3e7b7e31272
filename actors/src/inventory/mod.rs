//! Inventory: one actor a SKU decides which vouchers an order gets.

mod actor;
mod hold;
pub mod shelf;

use std::sync::Arc;

use actor::InventoryActor;
pub use actor::Supply;
use actor::message::{HoldVouchers, Need, StockChange, StockChanged};
#[cfg(any(test, feature = "testing"))]
use actor::probe::{Panic, Show};
pub use hold::StockHold;
use tracing::{Instrument as _, debug_span};

use crate::SPANS;
use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::store::Store;
use crate::supervisor::{Directory, Patience, Reading, Spawner, Total, Undecided};

/// All shelves.
pub struct Inventory {
    actors: Directory<Sku, InventoryActor>,
}

impl Inventory {
    /// No shelf is in memory yet; each claims its stock when it is first asked.
    pub fn new(spawner: Spawner, store: Arc<dyn Store>) -> Self {
        let make = move |sku, lineage| InventoryActor::new(sku, Arc::clone(&store), lineage);
        Self {
            actors: Directory::new(spawner, make),
        }
    }

    /// Sets `quantity` vouchers of a SKU aside, none of which expires before `not_before`.
    ///
    /// # Errors
    /// [`Undecided`] when the shelf could not decide in time: stock is being claimed, others hold what there is, or too
    /// many wait.
    pub async fn set_aside(
        &self,
        sku: &Sku,
        quantity: usize,
        not_before: Expiry,
        patience: &Patience,
    ) -> Result<Supply, Undecided> {
        let need = Need { quantity, not_before };
        let asked = patience.ask(|| self.actors.get(sku), |queued| HoldVouchers { need, queued });
        asked
            .instrument(debug_span!(target: SPANS, "hold inventory", %sku))
            .await
    }

    /// Tells the shelf of a SKU, if it is in memory, that new stock can be claimed, and when the first of it expires.
    pub fn restocked(&self, sku: &Sku, earliest: Expiry) {
        self.tell(sku, StockChange::Restocked(earliest));
    }

    /// Tells the shelf of a SKU, if it is in memory, that its vouchers may have been taken out by others: it sells none of
    /// them before it has claimed them anew.
    pub fn doubt(&self, sku: &Sku) {
        self.tell(sku, StockChange::Doubted);
    }

    #[allow(clippy::disallowed_methods)] // a shelf that is not in memory, or dies, learns it from the store
    fn tell(&self, sku: &Sku, how: StockChange) {
        if let Some(shelf) = self.actors.find(sku) {
            let queued = shelf.lineage.meter.queue();
            shelf.addr.do_send(StockChanged { how, queued });
        }
    }

    /// The counters of every inventory actor.
    pub fn readings(&self) -> Vec<(Sku, Reading)> {
        self.actors.readings()
    }

    /// The counters of all inventory actors together.
    pub fn total(&self) -> Total {
        self.actors.total()
    }

    /// The shelf of a SKU as its actor has it; nothing if none is alive.
    #[cfg(any(test, feature = "testing"))]
    pub async fn shelf(&self, sku: &Sku) -> Option<shelf::Shelf> {
        self.actors.find(sku)?.addr.send(Show).await.ok()
    }

    /// Kills the actor of a SKU in the middle of its work.
    #[cfg(any(test, feature = "testing"))]
    pub async fn panic(&self, sku: &Sku) {
        if let Some(shelf) = self.actors.get(sku) {
            let died = shelf.addr.send(Panic).await;
            assert!(died.is_err(), "an actor that panics answers nothing");
        }
    }
}

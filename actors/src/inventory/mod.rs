//! Inventory: one actor a SKU decides which vouchers an order gets.

mod actor;
mod hold;
pub mod shelf;

use std::sync::Arc;

pub use actor::Supply;
#[cfg(any(test, feature = "testing"))]
use actor::probe::{Panic, Show};
use actor::{InventoryActor, Need, Restocked, SetAside};
pub use hold::StockHold;

use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::store::Store;
use crate::supervisor::{Directory, Found, MailboxError, Patience, Reading, Spawner, TooLong};

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
    /// [`TooLong`] when the shelf could not decide in time: stock is being claimed, or others hold what there is.
    pub async fn set_aside(
        &self,
        sku: &Sku,
        quantity: usize,
        not_before: Expiry,
        patience: &Patience,
    ) -> Result<Supply, TooLong> {
        let need = Need { quantity, not_before };
        let ask = |shelf: Option<Found<InventoryActor>>| async move {
            let shelf = shelf.ok_or(MailboxError::Closed)?;
            let queued = shelf.lineage.meter.queue();
            shelf.addr.send(SetAside { need, queued }).await
        };
        patience.ask(|| ask(self.actors.get(sku))).await
    }

    /// Tells the shelf of a SKU, if it is in memory, that new stock can be claimed, and when the first of it expires.
    #[allow(clippy::disallowed_methods)] // a shelf that is not in memory, or dies, finds the stock by itself
    pub fn restocked(&self, sku: &Sku, earliest: Expiry) {
        if let Some(shelf) = self.actors.find(sku) {
            let queued = shelf.lineage.meter.queue();
            shelf.addr.do_send(Restocked { earliest, queued });
        }
    }

    /// The counters of every inventory actor.
    pub fn readings(&self) -> Vec<(Sku, Reading)> {
        self.actors.readings()
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

//! Procurement: one actor a vendor asks about what is bought from it, and each node looks for what is to be done next.
//!
//! | who | does | when |
//! |---|---|---|
//! | the look | gives new stock to those who wait, takes orders up, gives up what never comes | four times a second |
//! | the actor of a vendor | asks about its purchases, as many at once as the vendor's terms say | at each look, and when one is done |
//!
//! Rule: nothing is known here that is not on disk. An actor that dies is rebuilt at the next look and gives back what it
//! had claimed; a node that dies leaves orders, purchases and kept stock where the next look of any node finds them.

mod actor;
pub mod last_words;
mod look;
mod port;
pub mod queue;

use std::sync::Arc;

use self::actor::ProcurementActor;
use self::actor::message::Look;
#[cfg(any(test, feature = "testing"))]
use self::actor::probe::Panic;
pub use self::port::{ClaimedPurchase, Due, KeptStock, Rest, Supplier, VendorId, Vendors, WaitingOrder};
use crate::domain::ids::{OrderId, PartnerId};
use crate::engine::Engine;
use crate::flows::{self, Stuck};
use crate::supervisor::{Directory, Reading, Spawner, Total};

/// What is bought, and by whom.
pub struct Procurement {
    actors: Directory<VendorId, ProcurementActor>,
    engine: Arc<Engine>,
    vendors: Arc<dyn Vendors>,
}

impl Procurement {
    /// Nothing is bought yet; the first look begins.
    pub fn new(spawner: Spawner, engine: Arc<Engine>, vendors: Arc<dyn Vendors>) -> Self {
        let parts = (Arc::clone(&engine), Arc::clone(&vendors));
        let make = move |vendor_id, lineage| {
            let (engine, vendors) = (Arc::clone(&parts.0), Arc::clone(&parts.1));
            ProcurementActor::new(vendor_id, engine, vendors, lineage)
        };
        Self {
            actors: Directory::new(spawner, make),
            engine,
            vendors,
        }
    }

    /// Tells the actor of a vendor to look for what is due; one that died is rebuilt.
    #[allow(clippy::disallowed_methods)] // an actor that dies meanwhile is told again at the next look
    fn tell(&self, supplier: Supplier) {
        // Where there is no room for another actor, this vendor has its turn at a later look.
        if let Some(found) = self.actors.get(&supplier.vendor_id) {
            let queued = found.lineage.meter.queue();
            let concurrency = supplier.concurrency;
            found.addr.do_send(Look { concurrency, queued });
        }
    }

    /// Begins nothing more; what is under way comes to its end. The next look begins anew.
    pub fn rest(&self) {
        for (vendor_id, _) in self.actors.readings() {
            self.tell(Supplier {
                vendor_id,
                concurrency: 0,
            });
        }
    }

    /// Takes an order up now, if it was not yet: afterwards it has its purchases, or waits for nothing.
    ///
    /// # Errors
    /// [`Stuck`]; the next look does it.
    pub async fn take_up(&self, partner_id: PartnerId, order_id: OrderId) -> Result<(), Stuck> {
        let order = WaitingOrder {
            partner_id,
            order_id,
            bought: false,
        };
        flows::settle(&self.engine, &*self.vendors, order).await
    }

    /// The counters of every vendor's actor.
    pub fn readings(&self) -> Vec<(VendorId, Reading)> {
        self.actors.readings()
    }

    /// The counters of all vendors' actors together.
    pub fn total(&self) -> Total {
        self.actors.total()
    }

    /// Kills the actor of a vendor in the middle of its work.
    #[cfg(any(test, feature = "testing"))]
    pub async fn panic(&self, vendor_id: &VendorId) {
        if let Some(found) = self.actors.get(vendor_id) {
            let died = found.addr.send(Panic).await;
            assert!(died.is_err(), "an actor that panics answers nothing");
        }
    }
}

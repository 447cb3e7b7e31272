//! Procurement: one actor per vendor buys what orders lack, and a poller on each node finds pending work.
//!
//! | component | does | when |
//! |---|---|---|
//! | poller | distributes reserved stock, starts waiting orders, ends orders that cannot be filled | four times a second |
//! | vendor actor | requests and polls purchases, with the vendor's concurrency | at each poll, and when a purchase finishes |
//!
//! All state is in the store. An actor that dies is restarted at the next poll and releases its claims; a
//! node that dies leaves orders, purchases and reserved stock to the next poll of any node.

mod actor;
mod poll;
pub mod queue;

use std::sync::Arc;

use self::actor::ProcurementActor;
use self::actor::message::Poll;
#[cfg(feature = "testing")]
use self::actor::probe::Panic;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, PartnerId};

use crate::engine::Engine;
use crate::flows::{self, ProcureError};
use crate::ports::vendors::{
    ForcedResponse, OrderPurchases, VendorCapacity, VendorId, Vendors, WaitingOrder,
};
use crate::supervisor::{ActorScan, ActorStats, ActorTotals, BusyActor, Directory, Spawner};

/// The procurement of one node.
pub struct Procurement {
    actors: Directory<VendorId, ProcurementActor>,
    engine: Arc<Engine>,
    vendors: Arc<dyn Vendors>,
}

impl Procurement {
    pub fn new(spawner: Spawner, engine: Arc<Engine>, vendors: Arc<dyn Vendors>) -> Self {
        let parts = (Arc::clone(&engine), Arc::clone(&vendors));
        let factory = move |vendor_id, lineage| {
            let (engine, vendors) = (Arc::clone(&parts.0), Arc::clone(&parts.1));
            ProcurementActor::new(vendor_id, engine, vendors, lineage)
        };
        Self {
            actors: Directory::new(spawner, factory),
            engine,
            vendors,
        }
    }

    /// Tells a vendor's actor to poll for due purchases; restarts an actor that died.
    #[allow(clippy::disallowed_methods)] // an actor that dies meanwhile is notified again at the next poll
    fn notify_actor(&self, vendor: VendorCapacity) {
        // If the directory is full, this vendor is served at a later poll.
        if let Some(actor) = self.actors.get(&vendor.vendor_id) {
            let slot = actor.lineage.metrics.enqueue();
            let concurrency = vendor.concurrency;
            actor.addr.do_send(Poll { concurrency, slot });
        }
    }

    /// Starts no more purchases; those in flight finish. The next poll resumes.
    pub fn pause(&self) {
        for (vendor_id, _) in self.actors.stats() {
            self.notify_actor(VendorCapacity {
                vendor_id,
                concurrency: 0,
            });
        }
    }

    /// Starts an order at once, if it was not started: it then has its purchases or waits for none.
    ///
    /// # Errors
    /// [`ProcureError`]; the next poll retries.
    pub async fn start_order(&self, partner_id: PartnerId, order_id: OrderId) -> Result<(), ProcureError> {
        let order = WaitingOrder {
            partner_id,
            order_id,
            purchases: OrderPurchases::None,
        };
        flows::advance_waiting_order(&self.engine, &*self.vendors, order).await
    }

    /// Advances a due purchase with this response of a mock vendor; another vendor is asked. Returns false
    /// while the purchase is claimed, or not due.
    ///
    /// # Errors
    /// [`ProcureError`]; the next poll continues.
    pub async fn force_response(
        &self,
        purchase_id: Uuid,
        forced: ForcedResponse,
    ) -> Result<bool, ProcureError> {
        flows::advance_purchase(&self.engine, &*self.vendors, purchase_id, Some(forced)).await
    }

    /// The counters of every vendor's actor.
    pub fn stats(&self) -> Vec<(VendorId, ActorStats)> {
        self.actors.stats()
    }

    /// Totals and the busiest actors; see [`Directory::scan`].
    pub fn scan(&self, limit: usize) -> ActorScan<VendorId> {
        self.actors.scan(limit)
    }

    /// The counters of one actor; see [`Directory::describe`].
    pub fn describe(&self, key: &VendorId) -> Option<BusyActor<VendorId>> {
        self.actors.describe(key)
    }

    /// Totals over all vendors' actors.
    pub fn totals(&self) -> ActorTotals {
        self.actors.totals()
    }

    /// Makes a vendor's actor panic in the middle of its work.
    #[cfg(feature = "testing")]
    pub async fn panic(&self, vendor_id: &VendorId) {
        if let Some(actor) = self.actors.get(vendor_id) {
            let died = actor.addr.send(Panic).await;
            assert!(died.is_err(), "a panicking actor must not reply");
        }
    }
}

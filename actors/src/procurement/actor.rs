//! Procurement actor of one vendor: requests its due purchases with the vendor's concurrency.
//!
//! Its futures hold no state that is not stored: purchases in flight are claimed in the store, and a
//! successor releases those claims.

pub(super) mod message;
#[cfg(feature = "testing")]
pub(super) mod probe;

use std::sync::Arc;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use tracing::warn;
use uuid::Uuid;

use self::message::Poll;
use super::queue::{MAX_QUEUED, PurchaseQueue};
use crate::engine::Engine;
use crate::flows;
use crate::ports::vendors::{DuePurchase, VendorId, Vendors};
use crate::supervisor::{ActorState, Lineage};
use vouchsafe_domain::store_error::Unavailable;

/// Whether the actor may read due purchases from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreAccess {
    /// Claims of earlier incarnations are not released yet.
    ClaimsNotReleased,
    /// A read or write is in flight.
    Busy,
    /// Due purchases may be read.
    Ready,
}

/// The procurement actor of one vendor.
pub(super) struct ProcurementActor {
    vendor_id: VendorId,
    engine: Arc<Engine>,
    vendors: Arc<dyn Vendors>,
    lineage: Lineage,
    queue: PurchaseQueue<Uuid>,
    store_access: StoreAccess,
    /// Maximum number of purchases in flight, as of the last poll.
    concurrency: usize,
    /// A claim could not be released: no purchase starts until those in flight have finished and all claims
    /// are released.
    has_unreleased_claim: bool,
}

impl ProcurementActor {
    /// Creates an actor that has not released the claims of its predecessors.
    pub(super) fn new(
        vendor_id: VendorId,
        engine: Arc<Engine>,
        vendors: Arc<dyn Vendors>,
        lineage: Lineage,
    ) -> Self {
        Self {
            vendor_id,
            engine,
            vendors,
            lineage,
            queue: PurchaseQueue::default(),
            store_access: StoreAccess::ClaimsNotReleased,
            concurrency: 0,
            has_unreleased_claim: false,
        }
    }

    fn poll(&mut self, ctx: &mut Context<Self>) {
        match self.store_access {
            StoreAccess::Busy => {}
            StoreAccess::ClaimsNotReleased => self.release_own_claims(ctx),
            StoreAccess::Ready if self.has_unreleased_claim && self.queue.in_flight_count() == 0 => {
                self.release_own_claims(ctx)
            }
            StoreAccess::Ready
                if !self.has_unreleased_claim && self.queue.in_flight_count() < self.concurrency =>
            {
                if self.queue.is_low() {
                    self.read_due(ctx)
                } else {
                    self.start_purchases(ctx)
                }
            }
            StoreAccess::Ready => {}
        }
    }

    fn release_own_claims(&mut self, ctx: &mut Context<Self>) {
        self.store_access = StoreAccess::Busy;
        let (vendors, vendor_id) = (Arc::clone(&self.vendors), self.vendor_id.clone());
        let released = async move { vendors.release_own_claims(&vendor_id).await };
        ctx.spawn(released.into_actor(self).map(|released, actor, ctx| {
            if let Err(error) = released {
                warn!(vendor.id = %actor.vendor_id, error.message = %error, "cannot release earlier purchase claims; retrying");
                actor.lineage.metrics.record_error(format!("cannot release earlier purchase claims: {error}"));
                actor.store_access = StoreAccess::ClaimsNotReleased;
                return;
            }
            actor.has_unreleased_claim = false;
            actor.lineage.metrics.set_state(ActorState::Ready);
            actor.read_due(ctx);
        }));
    }

    fn read_due(&mut self, ctx: &mut Context<Self>) {
        self.store_access = StoreAccess::Busy;
        let (vendors, vendor_id) = (Arc::clone(&self.vendors), self.vendor_id.clone());
        let read = async move { vendors.list_due_purchases(&vendor_id, MAX_QUEUED).await };
        ctx.spawn(
            read.into_actor(self)
                .map(|due, actor, ctx| actor.finish_read(due, ctx)),
        );
    }

    fn finish_read(&mut self, due: Result<Vec<DuePurchase>, Unavailable>, ctx: &mut Context<Self>) {
        self.store_access = StoreAccess::Ready;
        match due {
            Ok(due) => self
                .queue
                .replace_due(due.into_iter().map(|due| (due.purchase_id, due.order_id))),
            Err(error) => {
                warn!(vendor.id = %self.vendor_id, error.message = %error, "cannot read due purchases");
                self.lineage
                    .metrics
                    .record_error(format!("cannot read due purchases: {error}"));
            }
        }
        self.start_purchases(ctx);
    }

    /// Starts purchases up to the concurrency.
    fn start_purchases(&mut self, ctx: &mut Context<Self>) {
        while !self.has_unreleased_claim {
            let Some(purchase_id) = self.queue.start_next(self.concurrency) else {
                return;
            };
            let (engine, vendors) = (Arc::clone(&self.engine), Arc::clone(&self.vendors));
            let advanced =
                async move { flows::advance_purchase(&engine, &*vendors, purchase_id, None).await };
            ctx.spawn(advanced.into_actor(self).map(move |advanced, actor, ctx| {
                if let Err(error) = advanced {
                    warn!(purchase.id = %purchase_id, error.message = %error, "cannot release purchase claim");
                    actor.lineage.metrics.record_error(format!("cannot release purchase claim: {error}"));
                    actor.has_unreleased_claim = true;
                }
                actor.queue.finish(purchase_id);
                actor.poll(ctx);
            }));
        }
    }
}

impl Actor for ProcurementActor {
    type Context = Context<Self>;
}

impl Handler<Poll> for ProcurementActor {
    type Result = ();

    fn handle(&mut self, message: Poll, ctx: &mut Self::Context) {
        let Poll { concurrency, slot } = message;
        let handling = slot.start_handling();
        self.concurrency = concurrency;
        self.poll(ctx);
        drop(handling);
    }
}

//! The shell round the purchases of one vendor: asks about those that are due, as many at once as the vendor's terms say.
//!
//! Its futures hold nothing that is not on disk: what they are at when it dies is claimed, and its successor gives that back.

pub(super) mod message;
#[cfg(any(test, feature = "testing"))]
pub(super) mod probe;

use std::sync::Arc;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use tracing::warn;
use uuid::Uuid;

use self::message::Look;
use super::port::{Due, VendorId, Vendors};
use super::queue::{MAX_WAITING, Queue};
use crate::engine::Engine;
use crate::flows;
use crate::store::Unavailable;
use crate::supervisor::Lineage;

/// Where an actor stands with the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Books {
    /// What its predecessors claimed may still be claimed.
    Unknown,
    /// They are being read or written.
    Busy,
    /// They may be read.
    Known,
}

/// The procurement actor of one vendor.
pub(super) struct ProcurementActor {
    vendor_id: VendorId,
    engine: Arc<Engine>,
    vendors: Arc<dyn Vendors>,
    lineage: Lineage,
    queue: Queue<Uuid>,
    books: Books,
    /// How many purchases may be under way, by the last look.
    concurrency: usize,
    /// A claim could not be given back: nothing more is begun until what is under way has ended and all were.
    doubtful: bool,
}

impl ProcurementActor {
    /// An actor that has yet to give back what its predecessors claimed.
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
            queue: Queue::default(),
            books: Books::Unknown,
            concurrency: 0,
            doubtful: false,
        }
    }

    fn look(&mut self, ctx: &mut Context<Self>) {
        match self.books {
            Books::Busy => {}
            Books::Unknown => self.give_back(ctx),
            Books::Known if self.doubtful && self.queue.under_way() == 0 => self.give_back(ctx),
            Books::Known if !self.doubtful && self.queue.under_way() < self.concurrency => self.read(ctx),
            Books::Known => {}
        }
    }

    fn give_back(&mut self, ctx: &mut Context<Self>) {
        self.books = Books::Busy;
        let (vendors, vendor_id) = (Arc::clone(&self.vendors), self.vendor_id.clone());
        let given_back = async move { vendors.give_back(&vendor_id).await };
        ctx.spawn(given_back.into_actor(self).map(|given_back, actor, ctx| {
            if let Err(error) = given_back {
                warn!(vendor.id = %actor.vendor_id, %error, "what was claimed before cannot be given back yet");
                actor.books = Books::Unknown;
                return;
            }
            actor.doubtful = false;
            actor.lineage.meter.set_ready(true);
            actor.read(ctx);
        }));
    }

    fn read(&mut self, ctx: &mut Context<Self>) {
        self.books = Books::Busy;
        let (vendors, vendor_id) = (Arc::clone(&self.vendors), self.vendor_id.clone());
        let read = async move { vendors.due(&vendor_id, MAX_WAITING).await };
        ctx.spawn(
            read.into_actor(self)
                .map(|due, actor, ctx| actor.has_read(due, ctx)),
        );
    }

    fn has_read(&mut self, due: Result<Vec<Due>, Unavailable>, ctx: &mut Context<Self>) {
        self.books = Books::Known;
        match due {
            Ok(due) => self
                .queue
                .offer(due.into_iter().map(|due| (due.purchase_id, due.order_id))),
            Err(error) => warn!(vendor.id = %self.vendor_id, %error, "purchases cannot be read now"),
        }
        self.begin(ctx);
    }

    /// Asks about as many as may be under way.
    fn begin(&mut self, ctx: &mut Context<Self>) {
        while !self.doubtful {
            let Some(purchase_id) = self.queue.next(self.concurrency) else {
                return;
            };
            let (engine, vendors) = (Arc::clone(&self.engine), Arc::clone(&self.vendors));
            let pursued = async move { flows::pursue(&engine, &*vendors, purchase_id).await };
            ctx.spawn(pursued.into_actor(self).map(move |pursued, actor, ctx| {
                if let Err(error) = pursued {
                    warn!(purchase.id = %purchase_id, %error, "what became of a purchase cannot be noted now");
                    actor.doubtful = true;
                }
                actor.queue.done(purchase_id);
                // Whoever came meanwhile has its turn before those who were offered earlier.
                actor.look(ctx);
            }));
        }
    }
}

impl Actor for ProcurementActor {
    type Context = Context<Self>;
}

impl Handler<Look> for ProcurementActor {
    type Result = ();

    fn handle(&mut self, message: Look, ctx: &mut Self::Context) {
        let Look { concurrency, queued } = message;
        self.lineage.meter.handle();
        self.concurrency = concurrency;
        self.look(ctx);
        drop(queued);
    }
}

//! The shell round the shelf of one SKU: serialises allocation, claims stock when it runs low, keeps who waits.
//!
//! Every decision is a synchronous handler: between two awaits of an asynchronous one another message would run.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message, MessageResult, WrapFuture as _,
};
use tracing::warn;

use super::hold::StockHold;
use super::shelf::{Decision, Shelf};
use crate::domain::product::Sku;
use crate::domain::stock::{ClaimedStock, StockRequest};
use crate::domain::voucher::{Expiry, Shelved};
use crate::store::{Store, Unavailable};
use crate::supervisor::{Found, Lineage, Queued, Reply, WaitingLine};

/// Below how many free vouchers more is claimed ahead of need. At 10,000 vouchers a second of one SKU it is gone in
/// 200 ms, many times what a claim takes.
const LOW_WATER: usize = 2_000;

/// How many free vouchers a claim aims at: 16 chunks, so that a hot SKU claims about once a second.
const HIGH_WATER: usize = 8_000;

/// How long after a claim that failed, or brought less than was asked for, the next one is tried.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What a shelf says to a request for vouchers.
#[derive(Debug)]
pub enum Supply {
    /// They are set aside.
    Held(StockHold),
    /// There are not enough anywhere, whatever is still under way. Holds how many are left.
    SoldOut(usize),
    /// Not here; but another node has some.
    Elsewhere,
}

/// What an order needs of a SKU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    pub(super) quantity: usize,
    pub(super) not_before: Expiry,
}

/// Sets vouchers aside.
#[derive(Debug)]
pub(super) struct SetAside {
    pub(super) need: Need,
    pub(super) queued: Queued,
}

impl Message for SetAside {
    type Result = Reply<Supply>;
}

/// What became of vouchers that were set aside.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) vouchers: Vec<Shelved>,
    pub(super) fate: Fate,
    pub(super) queued: Queued,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// They are sold.
    Settled,
    /// They came back.
    Released,
    /// The commit refused one of them.
    Refuted,
}

impl Message for Resolved {
    type Result = ();
}

/// New stock can be claimed.
#[derive(Debug)]
pub(super) struct Restocked {
    pub(super) earliest: Expiry,
    pub(super) queued: Queued,
}

impl Message for Restocked {
    type Result = ();
}

/// The inventory actor of one SKU.
pub(super) struct InventoryActor {
    sku: Sku,
    store: Arc<dyn Store>,
    lineage: Lineage,
    shelf: Shelf,
    line: WaitingLine<Need, Supply>,
    /// Whether the last claim saw free vouchers at another node.
    elsewhere: bool,
    loaded: bool,
    /// Whether a claim is under way, or about to be tried again.
    claiming: bool,
    /// A decision found that more must be claimed first.
    wanted: Option<Need>,
}

impl InventoryActor {
    /// An actor with an empty shelf.
    pub(super) fn new(sku: Sku, store: Arc<dyn Store>, lineage: Lineage) -> Self {
        Self {
            sku,
            store,
            lineage,
            shelf: Shelf::new(),
            line: WaitingLine::default(),
            elsewhere: false,
            loaded: false,
            claiming: false,
            wanted: None,
        }
    }

    /// `None` when the question has to wait.
    fn decide(&mut self, need: Need, confirmed: bool, ctx: &mut Context<Self>) -> Option<Supply> {
        if !self.loaded {
            return None;
        }
        match self.shelf.hold(need.quantity, need.not_before, confirmed) {
            Decision::Held(vouchers) => {
                let shelf = Found {
                    addr: actix::AsyncContext::address(ctx),
                    lineage: self.lineage.clone(),
                };
                Some(Supply::Held(StockHold::new(shelf, self.sku.clone(), vouchers)))
            }
            Decision::Refill => {
                self.wanted = Some(need);
                None
            }
            Decision::Wait => None,
            Decision::Short(_) if self.elsewhere => Some(Supply::Elsewhere),
            Decision::Short(free) => Some(Supply::SoldOut(free)),
        }
    }

    fn ask_again(&mut self, ctx: &mut Context<Self>) {
        let mut line = std::mem::take(&mut self.line);
        line.ask_again(|need, confirmed| self.decide(*need, confirmed, ctx));
        self.line = line;
        self.claim_wanted(ctx);
    }

    fn claim_wanted(&mut self, ctx: &mut Context<Self>) {
        if let Some(need) = self.wanted.take() {
            self.claim(need, ctx);
        }
    }

    /// Claims stock for `need` and some more; whoever waits is asked again after it.
    fn claim(&mut self, mut need: Need, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.claiming, true) {
            return;
        }
        // Nobody who waits may find that what would do for it was left out.
        let waiting = self.line.questions().map(|waiting| waiting.not_before);
        need.not_before = waiting.fold(need.not_before, Expiry::min);
        self.line.round_begins();
        self.shelf.claim_begins();
        let request = StockRequest {
            sku: self.sku.clone(),
            loaded: self.shelf.loaded(),
            enough: HIGH_WATER
                .max(need.quantity)
                .saturating_sub(self.shelf.free())
                .max(1),
            not_before: need.not_before,
        };
        let store = Arc::clone(&self.store);
        let holds = (!self.loaded).then(|| Arc::clone(&self.lineage.holds));
        let claim = async move {
            // What a dead incarnation set aside is settled first: its vouchers are not to be shelved twice.
            if let Some(holds) = holds {
                holds.all_settled().await;
            }
            store.claim_stock(request).await
        };
        let claimed = claim
            .into_actor(self)
            .map(move |claimed, actor, ctx| actor.has_claimed(claimed, need, ctx));
        ctx.spawn(claimed);
    }

    fn has_claimed(
        &mut self,
        claimed: Result<ClaimedStock, Unavailable>,
        need: Need,
        ctx: &mut Context<Self>,
    ) {
        match claimed {
            Ok(claimed) => {
                self.shelf.shelve(&claimed, need.not_before);
                self.elsewhere = claimed.elsewhere;
                self.loaded = true;
                self.lineage.meter.set_ready(true);
                match (claimed.chunks.is_empty(), claimed.next) {
                    (true, Some(_)) => self.claim_later(need, ctx),
                    (brought_nothing, _) => self.conclude(brought_nothing, ctx),
                }
            }
            Err(error) => {
                warn!(sku = %self.sku, %error, "stock cannot be claimed yet");
                self.claim_later(need, ctx);
            }
        }
    }

    /// Asks those who wait. Only a claim that brought nothing says whether others own what is missing here, so only such
    /// a one confirms a shortage.
    fn conclude(&mut self, brought_nothing: bool, ctx: &mut Context<Self>) {
        self.claiming = false;
        if brought_nothing {
            self.line.round_ends();
        }
        self.ask_again(ctx);
    }

    /// Tries again, as long as somebody waits for it.
    fn claim_later(&mut self, need: Need, ctx: &mut Context<Self>) {
        self.line.forget_gone();
        ctx.run_later(CLAIM_AGAIN_AFTER, move |actor, ctx| {
            actor.claiming = false;
            if !actor.loaded || !actor.line.is_empty() {
                actor.claim(need, ctx);
            }
        });
    }

    fn claim_ahead(&mut self, need: Need, ctx: &mut Context<Self>) {
        if self.shelf.free() < LOW_WATER && self.shelf.can_grow() {
            self.claim(need, ctx);
        }
    }
}

impl Actor for InventoryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.claim(
            Need {
                quantity: 0,
                not_before: Expiry::PAST,
            },
            ctx,
        );
    }
}

impl Handler<SetAside> for InventoryActor {
    type Result = MessageResult<SetAside>;

    fn handle(&mut self, message: SetAside, ctx: &mut Self::Context) -> Self::Result {
        let SetAside { need, queued } = message;
        self.lineage.meter.handle();
        let reply = match self.decide(need, false, ctx) {
            Some(supply) => {
                self.claim_ahead(need, ctx);
                Reply::Now(supply)
            }
            None => {
                let answer = self.line.join(need);
                self.claim_wanted(ctx);
                Reply::Later(answer)
            }
        };
        drop(queued);
        MessageResult(reply)
    }
}

impl Handler<Resolved> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: Resolved, ctx: &mut Self::Context) {
        let Resolved {
            vouchers,
            fate,
            queued,
        } = message;
        self.lineage.meter.handle();
        match fate {
            Fate::Settled => self.shelf.settle(&vouchers),
            Fate::Released => self.shelf.release(&vouchers),
            Fate::Refuted => self.shelf.refute(&vouchers),
        }
        if !self.line.is_empty() {
            self.ask_again(ctx);
        }
        drop(queued);
    }
}

impl Handler<Restocked> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: Restocked, ctx: &mut Self::Context) {
        let Restocked { earliest, queued } = message;
        self.lineage.meter.handle();
        self.shelf.expect(earliest);
        self.ask_again(ctx);
        drop(queued);
    }
}

#[cfg(any(test, feature = "testing"))]
pub(super) mod probe;

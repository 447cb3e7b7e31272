//! The shell round the shelf of one SKU: serialises allocation, claims stock when it runs low, keeps who waits.
//!
//! Every decision is a synchronous handler: between two awaits of an asynchronous one another message would run.

mod claim;
pub(super) mod message;
#[cfg(any(test, feature = "testing"))]
pub(super) mod probe;

use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, MessageResult, WrapFuture as _,
};
use tracing::warn;

use self::claim::Claim;
use self::message::{HoldVouchers, Need, StockChange, StockChanged, VouchersFate, VouchersResolved};
use super::hold::StockHold;
use super::shelf::{Shelf, ShelfDecision};
use crate::domain::product::Sku;
use crate::domain::stock::{ClaimedStock, Elsewhere, StockRequest};
use crate::domain::voucher::Expiry;
use crate::store::{Store, Unavailable};
use crate::supervisor::{Found, Lineage, Reply, WaitingLine};

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
    /// There are not enough anywhere, whatever is still under way. Holds how many there may be, if all of it comes back.
    SoldOut(usize),
    /// Not here; but another node has some. Holds how many there may be here, if all of it comes back.
    Owned(usize),
    /// Not here; but some is about to be given to whoever waits, and may be left over. Holds the same.
    Kept(usize),
}

/// What is said to a question.
enum Said {
    Now(Supply),
    /// Wait: something under way may change it.
    Later,
    /// Wait: more must be claimed first.
    AfterClaim,
}

/// The inventory actor of one SKU.
pub(super) struct InventoryActor {
    sku: Sku,
    store: Arc<dyn Store>,
    lineage: Lineage,
    /// Its address in the holds that are open.
    handed_out: Weak<Addr<Self>>,
    shelf: Shelf,
    line: WaitingLine<Need, Supply>,
    claim: Claim,
}

impl InventoryActor {
    /// An actor with an empty shelf.
    pub(super) fn new(sku: Sku, store: Arc<dyn Store>, lineage: Lineage) -> Self {
        Self {
            sku,
            store,
            lineage,
            handed_out: Weak::new(),
            shelf: Shelf::new(),
            line: WaitingLine::default(),
            claim: Claim::Never,
        }
    }

    /// `confirmed` says that a claim that brought nothing began after the question came, after the last voucher was
    /// claimed and after the last one was sold: only then is it known what there is at other nodes.
    fn decide(&mut self, need: Need, confirmed: bool, ctx: &mut Context<Self>) -> Said {
        if !self.claim.knows_shelf() {
            return Said::AfterClaim;
        }
        match self.shelf.hold(need.quantity, need.not_before, confirmed) {
            ShelfDecision::Held(vouchers) => {
                let shelf = Found::own(&mut self.handed_out, &self.lineage, ctx);
                Said::Now(Supply::Held(StockHold::new(shelf, self.sku.clone(), vouchers)))
            }
            ShelfDecision::Refill => Said::AfterClaim,
            ShelfDecision::Wait => Said::Later,
            ShelfDecision::Short(left) => match self.claim {
                Claim::Exhausted(Elsewhere::Nowhere) => Said::Now(Supply::SoldOut(left)),
                Claim::Exhausted(Elsewhere::Owned) => Said::Now(Supply::Owned(left)),
                Claim::Exhausted(Elsewhere::Kept) => Said::Now(Supply::Kept(left)),
                _ => Said::AfterClaim,
            },
        }
    }

    fn ask_again(&mut self, ctx: &mut Context<Self>) {
        let mut line = std::mem::take(&mut self.line);
        let mut wanted = None;
        line.ask_again(|need, confirmed| match self.decide(*need, confirmed, ctx) {
            Said::Now(supply) => Some(supply),
            Said::Later => None,
            Said::AfterClaim => {
                wanted = Some(*need);
                None
            }
        });
        self.line = line;
        if let Some(need) = wanted {
            self.claim(need, ctx);
        }
    }

    /// Claims stock for `need` and some more; whoever waits is asked again after it.
    fn claim(&mut self, mut need: Need, ctx: &mut Context<Self>) {
        let first = !self.claim.knows_shelf();
        if !self.claim.begin() {
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
        let holds = first.then(|| Arc::clone(&self.lineage.holds));
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
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                warn!(sku = %self.sku, %error, "stock cannot be claimed yet");
                return self.claim_later(need, ctx);
            }
        };
        self.shelf.shelve(&claimed, need.not_before);
        self.lineage.meter.set_ready(true);
        match (claimed.chunks.is_empty(), claimed.next) {
            (false, _) => {
                self.claim = Claim::Answered;
                self.line.changed();
                self.ask_again(ctx);
            }
            (true, None) => {
                self.claim = Claim::Exhausted(claimed.elsewhere);
                self.line.round_ends();
                self.ask_again(ctx);
            }
            // There is something, and somebody stands on it for the moment.
            (true, Some(_)) => {
                self.claim = Claim::UnderWay { first: false };
                self.claim_later(need, ctx);
            }
        }
    }

    /// Tries again, if somebody waits for it then.
    fn claim_later(&mut self, need: Need, ctx: &mut Context<Self>) {
        ctx.run_later(CLAIM_AGAIN_AFTER, move |actor, ctx| {
            actor.claim.give_up();
            actor.line.forget_gone();
            if !actor.line.is_empty() {
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

impl Handler<HoldVouchers> for InventoryActor {
    type Result = MessageResult<HoldVouchers>;

    fn handle(&mut self, message: HoldVouchers, ctx: &mut Self::Context) -> Self::Result {
        let HoldVouchers { need, queued } = message;
        self.lineage.meter.handle();
        let reply = match self.decide(need, false, ctx) {
            Said::Now(supply) => {
                self.claim_ahead(need, ctx);
                Reply::Now(supply)
            }
            Said::Later => self.line.join(need),
            Said::AfterClaim => {
                let reply = self.line.join(need);
                self.claim(need, ctx);
                reply
            }
        };
        drop(queued);
        MessageResult(reply)
    }
}

impl Handler<VouchersResolved> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: VouchersResolved, ctx: &mut Self::Context) {
        let VouchersResolved {
            vouchers,
            fate,
            queued,
        } = message;
        self.lineage.meter.handle();
        match fate {
            VouchersFate::Settled => {
                self.shelf.settle(&vouchers);
                self.line.changed();
            }
            VouchersFate::Released => self.shelf.release(&vouchers),
            VouchersFate::Refuted => self.shelf.refute(&vouchers),
        }
        if !self.line.is_empty() {
            self.ask_again(ctx);
        }
        drop(queued);
    }
}

impl Handler<StockChanged> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: StockChanged, ctx: &mut Self::Context) {
        let StockChanged { how, queued } = message;
        self.lineage.meter.handle();
        match how {
            StockChange::Restocked(earliest) => self.shelf.expect(earliest),
            StockChange::Doubted => self.shelf.doubt_all(),
        }
        self.line.changed();
        self.ask_again(ctx);
        drop(queued);
    }
}

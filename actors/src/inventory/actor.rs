//! Inventory actor of one SKU: serializes allocation, claims stock when it runs low, and keeps waiting
//! requests.
//!
//! Every decision is made in a synchronous handler: an asynchronous one could interleave with other messages
//! at its awaits.

mod claim;
mod hold;
pub(super) mod message;
#[cfg(feature = "testing")]
pub(super) mod probe;
mod sale_rate;

use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, MessageResult, WrapFuture as _,
};
use tokio::time::Instant;
use tracing::warn;

use self::claim::ClaimState;
pub use self::hold::StockHold;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest, UnclaimableStock};
use vouchsafe_domain::voucher::Expiry;

use self::message::{
    HoldVouchers, NotifyStockChange, ResolveVouchers, StockChange, VoucherRequest, VouchersResolution,
};
use self::sale_rate::SaleRate;
use super::shelf::{Shelf, ShelfDecision};
use crate::ports::store::Store;
use crate::supervisor::{ActorRef, ActorState, Lineage, Reply, WaitQueue};
use vouchsafe_domain::store_error::Unavailable;

/// Delay before a claim that failed, brought less than requested, or waits for the stock of other nodes is
/// retried.
const CLAIM_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A shelf's reply to a request for vouchers.
#[derive(Debug)]
pub enum Supply {
    /// The vouchers are held.
    Held(StockHold),
    /// No node has enough, whatever the outcome of open holds. Contains the number available if all holds are
    /// released.
    SoldOut(usize),
    /// Some are reserved for waiting orders, which may leave a rest. Contains the number available here if
    /// all holds are released.
    Reserved(usize),
    /// The rest is quarantined: an operator has to release it. Contains the number available here if all
    /// holds are released.
    Quarantined(usize),
}

/// The decision on a request.
enum SupplyDecision {
    Now(Supply),
    /// Wait for a hold to end.
    Wait,
    /// Wait for a claim.
    AfterClaim,
}

/// The inventory actor of one SKU.
pub(super) struct InventoryActor {
    sku: Sku,
    store: Arc<dyn Store>,
    lineage: Lineage,
    /// The actor's address as its open holds share it.
    own_address: Weak<Addr<Self>>,
    shelf: Shelf,
    wait_queue: WaitQueue<VoucherRequest, Supply>,
    claim: ClaimState,
    sale_rate: SaleRate,
}

impl InventoryActor {
    /// Creates an actor with an empty shelf.
    pub(super) fn new(sku: Sku, store: Arc<dyn Store>, lineage: Lineage) -> Self {
        Self {
            sku,
            store,
            lineage,
            own_address: Weak::new(),
            shelf: Shelf::new(),
            wait_queue: WaitQueue::default(),
            claim: ClaimState::Never,
            sale_rate: SaleRate::start(Instant::now()),
        }
    }

    /// `confirmed` means that a claim which brought nothing started after the request arrived and after the
    /// last voucher was claimed or sold here: only then is the stock of other nodes known.
    fn decide(
        &mut self,
        request: VoucherRequest,
        confirmed: bool,
        ctx: &mut Context<Self>,
    ) -> SupplyDecision {
        if !self.claim.is_shelf_known() {
            return SupplyDecision::AfterClaim;
        }
        match self.shelf.hold(request.quantity, request.not_before, confirmed) {
            ShelfDecision::Held(vouchers) => {
                self.sale_rate.record_held(vouchers.len(), Instant::now());
                let shelf = ActorRef::to_self(&mut self.own_address, &self.lineage, ctx);
                SupplyDecision::Now(Supply::Held(StockHold::new(shelf, self.sku.clone(), vouchers)))
            }
            ShelfDecision::Refill => SupplyDecision::AfterClaim,
            ShelfDecision::Wait => SupplyDecision::Wait,
            ShelfDecision::Short(available) => match self.claim {
                ClaimState::Exhausted(UnclaimableStock::None) => {
                    SupplyDecision::Now(Supply::SoldOut(available))
                }
                ClaimState::Exhausted(UnclaimableStock::Reserved) => {
                    SupplyDecision::Now(Supply::Reserved(available))
                }
                ClaimState::Exhausted(UnclaimableStock::Quarantined) => {
                    SupplyDecision::Now(Supply::Quarantined(available))
                }
                _ => SupplyDecision::AfterClaim,
            },
        }
    }

    fn retry_waiting(&mut self, ctx: &mut Context<Self>) {
        let mut wait_queue = std::mem::take(&mut self.wait_queue);
        let mut claim_for = None;
        wait_queue.retry_all(|request, confirmed| match self.decide(*request, confirmed, ctx) {
            SupplyDecision::Now(supply) => Some(supply),
            SupplyDecision::Wait => None,
            SupplyDecision::AfterClaim => {
                claim_for = Some(*request);
                None
            }
        });
        self.wait_queue = wait_queue;
        if let Some(request) = claim_for {
            self.claim(request, ctx);
        }
    }

    /// Claims stock for `request` and beyond, then retries the waiting requests.
    fn claim(&mut self, mut request: VoucherRequest, ctx: &mut Context<Self>) {
        let first = !self.claim.is_shelf_known();
        if !self.claim.start() {
            return;
        }
        // No waiting request may find its acceptable stock left out.
        let waiting = self.wait_queue.requests().map(|waiting| waiting.not_before);
        request.not_before = waiting.fold(request.not_before, Expiry::min);
        self.wait_queue.start_read();
        self.shelf.start_claim();
        let target = self.sale_rate.start_claim(Instant::now()).max(request.quantity);
        let stock_request = StockRequest {
            sku: self.sku.clone(),
            loaded_chunks: self.shelf.loaded_chunks(),
            target_quantity: target.saturating_sub(self.shelf.free()).max(1),
            not_before: request.not_before,
            demanded: self.demanded(),
        };
        let store = Arc::clone(&self.store);
        let holds = first.then(|| Arc::clone(&self.lineage.holds));
        let claim = async move {
            // Holds of a dead incarnation settle first: their vouchers must not be loaded twice.
            if let Some(holds) = holds {
                holds.wait_until_none().await;
            }
            store.claim_stock(stock_request).await
        };
        let claimed = claim
            .into_actor(self)
            .map(move |claimed, actor, ctx| actor.finish_claim(claimed, request, ctx));
        ctx.spawn(claimed);
    }

    /// Vouchers that waiting requests lack. At least one if any waits: what is free may expire too soon for
    /// it.
    fn demanded(&self) -> usize {
        let waiting = self
            .wait_queue
            .requests()
            .map(|waiting| waiting.quantity)
            .sum::<usize>();
        waiting
            .saturating_sub(self.shelf.free())
            .max(usize::from(waiting > 0))
    }

    fn finish_claim(
        &mut self,
        claimed: Result<ClaimedStock, Unavailable>,
        request: VoucherRequest,
        ctx: &mut Context<Self>,
    ) {
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                warn!(sku = %self.sku, error.message = %error, "cannot claim stock; retrying");
                self.lineage
                    .metrics
                    .record_error(format!("cannot claim stock: {error}"));
                return self.schedule_claim(request, ctx);
            }
        };
        self.shelf.add_claimed(&claimed, request.not_before);
        self.lineage.metrics.set_state(ActorState::Ready);
        match (claimed.chunks.is_empty(), claimed.next_expiry) {
            (false, _) => {
                self.claim = ClaimState::Answered;
                self.wait_queue.invalidate_reads();
                self.retry_waiting(ctx);
            }
            (true, None) if claimed.unclaimable != UnclaimableStock::OwnedByOtherNode => {
                self.claim = ClaimState::Exhausted(claimed.unclaimable);
                self.wait_queue.finish_read();
                self.retry_waiting(ctx);
            }
            // Stock exists, but another transaction has locked it, or other nodes are asked to release it.
            (true, _) => {
                self.claim = ClaimState::InFlight { first: false };
                self.retry_waiting(ctx);
                self.schedule_claim(request, ctx);
            }
        }
    }

    /// Schedules another claim; it runs only if requests still wait.
    fn schedule_claim(&mut self, request: VoucherRequest, ctx: &mut Context<Self>) {
        ctx.run_later(CLAIM_RETRY_DELAY, move |actor, ctx| {
            actor.claim.abandon();
            actor.wait_queue.drop_disconnected();
            if !actor.wait_queue.is_empty() {
                actor.claim(request, ctx);
            }
        });
    }

    /// Gives up the stock that another node needs, and what this node has beyond its own need.
    fn give_up(&mut self, quantity: usize, ctx: &mut Context<Self>) {
        if !self.claim.is_shelf_known() {
            return;
        }
        let surplus = self
            .shelf
            .free()
            .saturating_sub(self.sale_rate.needed(Instant::now()));
        self.shelf.give_up(quantity.max(surplus));
        if matches!(self.claim, ClaimState::Exhausted(_)) {
            self.claim = ClaimState::Answered;
        }
        let (store, sku, kept) = (
            Arc::clone(&self.store),
            self.sku.clone(),
            self.shelf.loaded_chunks(),
        );
        let release = async move { store.release_stock(sku, kept).await };
        let released = release.into_actor(self).map(|released, actor, _| {
            if let Err(error) = released {
                warn!(sku = %actor.sku, error.message = %error, "cannot release stock; the other node asks again");
                actor.lineage.metrics.record_error(format!("cannot release stock: {error}"));
            }
        });
        ctx.spawn(released);
    }

    fn claim_ahead(&mut self, request: VoucherRequest, ctx: &mut Context<Self>) {
        if self.shelf.free() < self.sale_rate.low_water() && self.shelf.can_grow() {
            self.claim(request, ctx);
        }
    }
}

impl Actor for InventoryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.claim(
            VoucherRequest {
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
        let HoldVouchers { request, slot } = message;
        let handling = slot.start_handling();
        let reply = match self.decide(request, false, ctx) {
            SupplyDecision::Now(supply) => {
                self.claim_ahead(request, ctx);
                Reply::Now(supply)
            }
            SupplyDecision::Wait => self.wait_queue.enqueue(request),
            SupplyDecision::AfterClaim => {
                let reply = self.wait_queue.enqueue(request);
                self.claim(request, ctx);
                reply
            }
        };
        drop(handling);
        MessageResult(reply)
    }
}

impl Handler<ResolveVouchers> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: ResolveVouchers, ctx: &mut Self::Context) {
        let ResolveVouchers {
            vouchers,
            resolution,
            slot,
        } = message;
        let handling = slot.start_handling();
        match resolution {
            VouchersResolution::Settled => {
                self.shelf.settle(&vouchers);
                self.wait_queue.invalidate_reads();
            }
            VouchersResolution::Released => self.shelf.release(&vouchers),
            VouchersResolution::Invalidated => self.shelf.invalidate(&vouchers),
        }
        if !self.wait_queue.is_empty() {
            self.retry_waiting(ctx);
        }
        drop(handling);
    }
}

impl Handler<NotifyStockChange> for InventoryActor {
    type Result = ();

    fn handle(&mut self, message: NotifyStockChange, ctx: &mut Self::Context) {
        let NotifyStockChange { change, slot } = message;
        let handling = slot.start_handling();
        match change {
            StockChange::Restocked(earliest) => self.shelf.expect_stock(earliest),
            StockChange::Invalidated => self.shelf.invalidate_all(),
            StockChange::Demanded(quantity) => self.give_up(quantity, ctx),
        }
        self.wait_queue.invalidate_reads();
        self.retry_waiting(ctx);
        drop(handling);
    }
}

//! Wallet actor of one partner: serializes debits, reads the store when necessary, and keeps waiting
//! requests.
//!
//! Every decision is made in a synchronous handler: an asynchronous one could interleave with other messages
//! at its awaits.

mod hold;
pub(super) mod message;
#[cfg(feature = "testing")]
pub(super) mod probe;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, MessageResult, WrapFuture as _,
};
use tracing::warn;

pub use self::hold::WalletHold;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};

use self::message::{HoldMoney, MoneyResolution, ResolveMoney};
use super::purse::{Purse, PurseDecision, ReserveRequest};
use crate::ports::store::Store;
use crate::supervisor::{ActorRef, ActorState, Lineage, Reply, WaitQueue};
use vouchsafe_domain::store_error::Unavailable;

/// Delay before a failed read is retried.
const READ_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A wallet's reply to a [`ReserveRequest`].
#[derive(Debug)]
pub enum Funds {
    /// Granted; the debit is held.
    Held(WalletHold),
    /// Refused, whatever the outcome of open holds. Contains the balance in minor units.
    Refused(Amount),
}

/// The wallet actor of one partner.
pub(super) struct WalletActor {
    partner_id: PartnerId,
    store: Arc<dyn Store>,
    lineage: Lineage,
    /// The actor's address as its open holds share it.
    own_address: Weak<Addr<Self>>,
    purses: HashMap<Currency, Purse>,
    wait_queue: WaitQueue<(Currency, ReserveRequest), Funds>,
    loaded: bool,
    /// Whether a read is in flight or scheduled.
    read_in_flight: bool,
    /// How often a commit found less in the wallet than expected.
    contradictions: u64,
    /// The value of `contradictions` when the last successful read started.
    contradictions_read: u64,
}

impl WalletActor {
    /// Creates an actor that has not loaded its state.
    pub(super) fn new(partner_id: PartnerId, store: Arc<dyn Store>, lineage: Lineage) -> Self {
        Self {
            partner_id,
            store,
            lineage,
            own_address: Weak::new(),
            purses: HashMap::new(),
            wait_queue: WaitQueue::default(),
            loaded: false,
            read_in_flight: false,
            contradictions: 0,
            contradictions_read: 0,
        }
    }

    /// `None` if the request must wait.
    fn decide(
        &mut self,
        currency: Currency,
        request: ReserveRequest,
        confirmed: bool,
        ctx: &mut Context<Self>,
    ) -> Option<Funds> {
        if !self.is_current() {
            return None;
        }
        match self.purses.entry(currency).or_default().hold(request) {
            PurseDecision::Held => Some(Funds::Held(self.hold(currency, request.debit_amount(), ctx))),
            PurseDecision::Refused(balance) if confirmed => Some(Funds::Refused(balance)),
            PurseDecision::Refused(_) | PurseDecision::Wait => None,
        }
    }

    /// Whether the purses reflect a read that started after the last contradicting commit.
    fn is_current(&self) -> bool {
        self.loaded && self.contradictions_read == self.contradictions
    }

    fn hold(&mut self, currency: Currency, amount: Amount, ctx: &Context<Self>) -> WalletHold {
        let wallet = ActorRef::to_self(&mut self.own_address, &self.lineage, ctx);
        WalletHold::new(wallet, currency, amount)
    }

    fn retry_waiting(&mut self, ctx: &mut Context<Self>) {
        let mut wait_queue = std::mem::take(&mut self.wait_queue);
        wait_queue
            .retry_all(|(currency, request), confirmed| self.decide(*currency, *request, confirmed, ctx));
        self.wait_queue = wait_queue;
    }

    /// Reads the wallets, then retries the waiting requests.
    fn read(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.read_in_flight, true) {
            return;
        }
        self.wait_queue.start_read();
        self.purses.values_mut().for_each(Purse::start_read);
        let (store, partner_id) = (Arc::clone(&self.store), self.partner_id);
        let contradictions = self.contradictions;
        let holds = (!self.loaded).then(|| Arc::clone(&self.lineage.holds));
        let read = async move {
            // Holds of a dead incarnation settle first, so that the read misses nothing in flight.
            if let Some(holds) = holds {
                holds.wait_until_none().await;
            }
            store.load_wallets(partner_id).await
        };
        ctx.spawn(
            read.into_actor(self)
                .map(move |wallets, actor, ctx| actor.finish_read(wallets, contradictions, ctx)),
        );
    }

    fn finish_read(
        &mut self,
        wallets: Result<Vec<(Currency, WalletState)>, Unavailable>,
        contradictions: u64,
        ctx: &mut Context<Self>,
    ) {
        match wallets {
            Ok(wallets) => {
                self.read_in_flight = false;
                self.apply_read(wallets);
                self.loaded = true;
                self.contradictions_read = contradictions;
                self.lineage.metrics.set_state(ActorState::Ready);
                self.wait_queue.finish_read();
                self.retry_waiting(ctx);
                self.read_if_needed(ctx);
            }
            Err(error) => {
                warn!(partner.id = %self.partner_id, error.message = %error, "cannot read wallet; retrying");
                self.lineage
                    .metrics
                    .record_error(format!("cannot read wallet: {error}"));
                self.schedule_read(ctx);
            }
        }
    }

    /// Applies a read. A currency that is not in it has no ledger entries.
    fn apply_read(&mut self, wallets: Vec<(Currency, WalletState)>) {
        let mut wallets: HashMap<Currency, WalletState> = wallets.into_iter().collect();
        for (currency, purse) in &mut self.purses {
            purse.apply_read(wallets.remove(currency).unwrap_or(WalletState::EMPTY));
        }
        let new = wallets
            .into_iter()
            .map(|(currency, read)| (currency, Purse::new(read)));
        self.purses.extend(new);
    }

    /// Schedules another read; it runs only if requests still wait.
    fn schedule_read(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(READ_RETRY_DELAY, |actor, ctx| {
            actor.read_in_flight = false;
            actor.wait_queue.drop_disconnected();
            if !actor.wait_queue.is_empty() {
                actor.read(ctx);
            }
        });
    }

    /// Reads again after a contradicting commit, or if a request that arrived after the last read started
    /// would be refused.
    fn read_if_needed(&mut self, ctx: &mut Context<Self>) {
        let refused = |(currency, request): &(Currency, ReserveRequest)| {
            let purse = self.purses.get(currency).copied().unwrap_or_default();
            purse.can_never_grant(*request)
        };
        if !self.is_current() || self.wait_queue.requests().any(refused) {
            self.read(ctx);
        }
    }
}

impl Actor for WalletActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.read(ctx);
    }
}

impl Handler<HoldMoney> for WalletActor {
    type Result = MessageResult<HoldMoney>;

    fn handle(&mut self, message: HoldMoney, ctx: &mut Self::Context) -> Self::Result {
        let HoldMoney {
            currency,
            request,
            slot,
        } = message;
        let handling = slot.start_handling();
        let reply = match self.decide(currency, request, false, ctx) {
            Some(decision) => Reply::Now(decision),
            None => {
                let reply = self.wait_queue.enqueue((currency, request));
                self.read_if_needed(ctx);
                reply
            }
        };
        drop(handling);
        MessageResult(reply)
    }
}

impl Handler<ResolveMoney> for WalletActor {
    type Result = ();

    fn handle(&mut self, message: ResolveMoney, ctx: &mut Self::Context) {
        let ResolveMoney {
            currency,
            amount,
            resolution,
            slot,
        } = message;
        let handling = slot.start_handling();
        let purse = self.purses.entry(currency).or_default();
        match resolution {
            MoneyResolution::Settled(state) => purse.settle(amount, state),
            MoneyResolution::Released => purse.release(amount),
            MoneyResolution::Invalidated => {
                purse.release(amount);
                self.contradictions += 1;
                self.read(ctx);
            }
        }
        if !self.wait_queue.is_empty() {
            self.retry_waiting(ctx);
            self.read_if_needed(ctx);
        }
        drop(handling);
    }
}

//! The shell round the purses of one partner: serialises debits, reads the store when it must, keeps who waits.
//!
//! Every decision is a synchronous handler: between two awaits of an asynchronous one another message would run.

pub(super) mod message;
#[cfg(any(test, feature = "testing"))]
pub(super) mod probe;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, MessageResult, WrapFuture as _,
};
use tracing::warn;

use self::message::{HoldMoney, MoneyFate, MoneyResolved};
use super::hold::WalletHold;
use super::purse::{Purse, PurseDecision, Wish};
use crate::domain::ids::PartnerId;
use crate::domain::ledger::Receipt;
use crate::domain::money::{Amount, Currency};
use crate::store::{Store, Unavailable};
use crate::supervisor::{Found, Lineage, Reply, WaitingLine};

/// How long after a failed read of the store the next one is tried.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a wallet says to a [`Wish`].
#[derive(Debug)]
pub enum Funds {
    /// It is granted; what it takes is set aside.
    Held(WalletHold),
    /// It cannot be, whatever is still under way. Holds the balance, in minor units.
    Refused(Amount),
}

/// The wallet actor of one partner.
pub(super) struct WalletActor {
    partner_id: PartnerId,
    store: Arc<dyn Store>,
    lineage: Lineage,
    /// Its address in the holds that are open.
    handed_out: Weak<Addr<Self>>,
    purses: HashMap<Currency, Purse>,
    line: WaitingLine<(Currency, Wish), Funds>,
    loaded: bool,
    /// Whether a read is under way, or about to be tried again.
    reading: bool,
    /// How often a commit found less in the wallet than was thought here.
    doubts: u64,
    /// How many of these were known when the last read that was answered began.
    dispelled: u64,
}

impl WalletActor {
    /// An actor that has yet to load its state.
    pub(super) fn new(partner_id: PartnerId, store: Arc<dyn Store>, lineage: Lineage) -> Self {
        Self {
            partner_id,
            store,
            lineage,
            handed_out: Weak::new(),
            purses: HashMap::new(),
            line: WaitingLine::default(),
            loaded: false,
            reading: false,
            doubts: 0,
            dispelled: 0,
        }
    }

    /// `None` when the question has to wait.
    fn decide(
        &mut self,
        currency: Currency,
        wish: Wish,
        confirmed: bool,
        ctx: &mut Context<Self>,
    ) -> Option<Funds> {
        if !self.knows() {
            return None;
        }
        match self.purses.entry(currency).or_default().hold(wish) {
            PurseDecision::Held => Some(Funds::Held(self.hold(currency, wish.taken(), ctx))),
            PurseDecision::Refused(balance) if confirmed => Some(Funds::Refused(balance)),
            PurseDecision::Refused(_) | PurseDecision::Wait => None,
        }
    }

    /// Whether the purses are what the store said, after the last commit that contradicted them.
    fn knows(&self) -> bool {
        self.loaded && self.dispelled == self.doubts
    }

    fn hold(&mut self, currency: Currency, amount: Amount, ctx: &Context<Self>) -> WalletHold {
        let wallet = Found::own(&mut self.handed_out, &self.lineage, ctx);
        WalletHold::new(wallet, currency, amount)
    }

    fn ask_again(&mut self, ctx: &mut Context<Self>) {
        let mut line = std::mem::take(&mut self.line);
        line.ask_again(|(currency, wish), confirmed| self.decide(*currency, *wish, confirmed, ctx));
        self.line = line;
    }

    /// Reads the wallets; whoever waits is asked again after it.
    fn read(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.reading, true) {
            return;
        }
        self.line.round_begins();
        self.purses.values_mut().for_each(Purse::read_begins);
        let (store, partner_id) = (Arc::clone(&self.store), self.partner_id);
        let doubts = self.doubts;
        let holds = (!self.loaded).then(|| Arc::clone(&self.lineage.holds));
        let read = async move {
            // What a dead incarnation set aside is settled first, so that nothing under way is missed.
            if let Some(holds) = holds {
                holds.all_settled().await;
            }
            store.load_wallets(partner_id).await
        };
        ctx.spawn(
            read.into_actor(self)
                .map(move |wallets, actor, ctx| actor.has_read(wallets, doubts, ctx)),
        );
    }

    fn has_read(
        &mut self,
        wallets: Result<Vec<(Currency, Receipt)>, Unavailable>,
        doubts: u64,
        ctx: &mut Context<Self>,
    ) {
        match wallets {
            Ok(wallets) => {
                self.reading = false;
                self.believe(wallets);
                self.loaded = true;
                self.dispelled = doubts;
                self.lineage.meter.set_ready(true);
                self.line.round_ends();
                self.ask_again(ctx);
                self.read_if_needed(ctx);
            }
            Err(error) => {
                warn!(partner.id = %self.partner_id, %error, "a wallet cannot be read yet");
                self.read_later(ctx);
            }
        }
    }

    /// What the store did not name is not there.
    fn believe(&mut self, wallets: Vec<(Currency, Receipt)>) {
        let mut wallets: HashMap<Currency, Receipt> = wallets.into_iter().collect();
        for (currency, purse) in &mut self.purses {
            purse.believe(wallets.remove(currency).unwrap_or(Receipt::EMPTY));
        }
        let new = wallets
            .into_iter()
            .map(|(currency, read)| (currency, Purse::new(read)));
        self.purses.extend(new);
    }

    /// Tries again, if somebody waits for it then.
    fn read_later(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(READ_AGAIN_AFTER, |actor, ctx| {
            actor.reading = false;
            actor.line.forget_gone();
            if !actor.line.is_empty() {
                actor.read(ctx);
            }
        });
    }

    /// Reads again if a commit contradicted the last read, or if somebody is refused who came after it began.
    fn read_if_needed(&mut self, ctx: &mut Context<Self>) {
        let refused = |(currency, wish): &(Currency, Wish)| {
            let purse = self.purses.get(currency).copied().unwrap_or_default();
            purse.refuses(*wish)
        };
        if !self.knows() || self.line.questions().any(refused) {
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
            wish,
            queued,
        } = message;
        self.lineage.meter.handle();
        let reply = match self.decide(currency, wish, false, ctx) {
            Some(funds) => Reply::Now(funds),
            None => {
                let reply = self.line.join((currency, wish));
                self.read_if_needed(ctx);
                reply
            }
        };
        drop(queued);
        MessageResult(reply)
    }
}

impl Handler<MoneyResolved> for WalletActor {
    type Result = ();

    fn handle(&mut self, message: MoneyResolved, ctx: &mut Self::Context) {
        let MoneyResolved {
            currency,
            amount,
            fate,
            queued,
        } = message;
        self.lineage.meter.handle();
        let purse = self.purses.entry(currency).or_default();
        match fate {
            MoneyFate::Settled(receipt) => purse.settle(amount, receipt),
            MoneyFate::Released => purse.release(amount),
            MoneyFate::Refuted => {
                purse.release(amount);
                self.doubts += 1;
                self.read(ctx);
            }
        }
        if !self.line.is_empty() {
            self.ask_again(ctx);
            self.read_if_needed(ctx);
        }
        drop(queued);
    }
}

//! The shell round the purses of one partner: serialises debits, reads the store when it must, keeps who waits.
//!
//! Every decision is a synchronous handler: between two awaits of an asynchronous one another message would run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message, MessageResult, WrapFuture as _,
};
use tracing::warn;

use super::hold::WalletHold;
use super::purse::{Decision, Purse};
use crate::domain::ids::PartnerId;
use crate::domain::ledger::Receipt;
use crate::domain::money::{Amount, Currency};
use crate::store::{Store, Unavailable};
use crate::supervisor::{Found, Lineage, Queued, Reply, WaitingLine};

/// How long after a failed read of the store the next one is tried.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a wallet says to a request for money.
#[derive(Debug)]
pub enum Funds {
    /// It is set aside.
    Held(WalletHold),
    /// There is not enough, whatever is still under way. Holds the balance, in minor units.
    Short(Amount),
}

/// Sets money aside.
#[derive(Debug)]
pub(super) struct SetAside {
    pub(super) currency: Currency,
    /// In minor units; zero only asks to be told what the commit says of the wallet.
    pub(super) amount: Amount,
    pub(super) queued: Queued,
}

impl Message for SetAside {
    type Result = Reply<Funds>;
}

/// What became of money that was set aside.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) currency: Currency,
    pub(super) amount: Amount,
    pub(super) fate: Fate,
    pub(super) queued: Queued,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// It was spent; the receipt says what is left.
    Settled(Option<Receipt>),
    /// It came back.
    Released,
    /// It came back, since the wallet holds less than was thought.
    Refuted,
}

impl Message for Resolved {
    type Result = ();
}

/// The wallet actor of one partner.
pub(super) struct WalletActor {
    partner_id: PartnerId,
    store: Arc<dyn Store>,
    lineage: Lineage,
    purses: HashMap<Currency, Purse>,
    line: WaitingLine<(Currency, Amount), Funds>,
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
        amount: Amount,
        confirmed: bool,
        ctx: &mut Context<Self>,
    ) -> Option<Funds> {
        if !self.knows() {
            return None;
        }
        let purse = self.purses.entry(currency).or_insert(Purse::new(Receipt::EMPTY));
        match purse.hold(amount) {
            Decision::Held => Some(Funds::Held(self.hold(currency, amount, ctx))),
            Decision::Short(balance) if confirmed => Some(Funds::Short(balance)),
            Decision::Short(_) | Decision::Wait => None,
        }
    }

    /// Whether the purses are what the store said, after the last commit that contradicted them.
    fn knows(&self) -> bool {
        self.loaded && self.dispelled == self.doubts
    }

    fn hold(&self, currency: Currency, amount: Amount, ctx: &mut Context<Self>) -> WalletHold {
        let wallet = Found {
            addr: actix::AsyncContext::address(ctx),
            lineage: self.lineage.clone(),
        };
        WalletHold::new(wallet, currency, amount)
    }

    fn ask_again(&mut self, ctx: &mut Context<Self>) {
        let mut line = std::mem::take(&mut self.line);
        line.ask_again(|(currency, amount), confirmed| self.decide(*currency, *amount, confirmed, ctx));
        self.line = line;
    }

    /// Reads the wallets; whoever waits is asked again after it.
    fn read(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.reading, true) {
            return;
        }
        self.line.round_begins();
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
                for (currency, receipt) in wallets {
                    self.purses
                        .entry(currency)
                        .or_insert(Purse::new(Receipt::EMPTY))
                        .learn(receipt);
                }
                self.loaded = true;
                self.dispelled = doubts;
                self.lineage.meter.set_ready(true);
                self.line.round_ends();
                self.ask_again(ctx);
                self.read_if_needed(ctx);
            }
            Err(error) => {
                warn!(partner.id = %self.partner_id, %error, "a wallet cannot be read yet");
                self.line.forget_gone();
                ctx.run_later(READ_AGAIN_AFTER, |actor, ctx| {
                    actor.reading = false;
                    actor.read(ctx);
                });
            }
        }
    }

    /// Reads again if a commit contradicted the last read, or if somebody is short who came after it began.
    fn read_if_needed(&mut self, ctx: &mut Context<Self>) {
        let short = |(currency, amount): &(Currency, Amount)| {
            let purse = self.purses.get(currency);
            purse.is_none_or(|purse| purse.newest().balance < *amount)
        };
        if !self.knows() || self.line.questions().any(short) {
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

impl Handler<SetAside> for WalletActor {
    type Result = MessageResult<SetAside>;

    fn handle(&mut self, message: SetAside, ctx: &mut Self::Context) -> Self::Result {
        let SetAside {
            currency,
            amount,
            queued,
        } = message;
        self.lineage.meter.handle();
        let reply = match self.decide(currency, amount, false, ctx) {
            Some(funds) => Reply::Now(funds),
            None => {
                let answer = self.line.join((currency, amount));
                self.read_if_needed(ctx);
                Reply::Later(answer)
            }
        };
        drop(queued);
        MessageResult(reply)
    }
}

impl Handler<Resolved> for WalletActor {
    type Result = ();

    fn handle(&mut self, message: Resolved, ctx: &mut Self::Context) {
        let Resolved {
            currency,
            amount,
            fate,
            queued,
        } = message;
        self.lineage.meter.handle();
        let purse = self.purses.entry(currency).or_insert(Purse::new(Receipt::EMPTY));
        match fate {
            Fate::Settled(receipt) => purse.settle(amount, receipt),
            Fate::Released => purse.release(amount),
            Fate::Refuted => {
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

#[cfg(any(test, feature = "testing"))]
pub(super) mod probe;

//! Wallets: one actor per partner decides what the partner may spend.

mod actor;
pub mod purse;

use std::sync::Arc;

use actor::WalletActor;
use actor::message::HoldMoney;
#[cfg(feature = "testing")]
use actor::probe::{GetPurse, Panic};
pub use actor::{Funds, WalletHold};
use tracing::{Instrument as _, debug_span};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::Currency;

use self::purse::ReserveRequest;
use crate::ports::store::Store;
use crate::supervisor::{
    ActorScan, ActorStats, ActorTotals, BusyActor, DecisionDeadline, DecisionError, Directory, Spawner,
};
use vouchsafe_domain::spans::SPANS;

/// The wallet actors of this node.
pub struct Wallets {
    actors: Directory<PartnerId, WalletActor>,
}

impl Wallets {
    /// Creates an empty set of wallets; each is read from the store on its first request.
    pub fn new(spawner: Spawner, store: Arc<dyn Store>) -> Self {
        let factory = move |partner_id, lineage| WalletActor::new(partner_id, Arc::clone(&store), lineage);
        Self {
            actors: Directory::new(spawner, factory),
        }
    }

    /// Holds the amount of a debit, or checks that the wallet has room for a credit.
    ///
    /// # Errors
    /// [`DecisionError`] if the wallet could not decide in time: it is being read, other holds use its
    /// balance, or its wait queue is full.
    pub async fn hold(
        &self,
        partner_id: PartnerId,
        currency: Currency,
        request: ReserveRequest,
        deadline: &DecisionDeadline,
    ) -> Result<Funds, DecisionError> {
        let message = |queued| HoldMoney {
            currency,
            request,
            slot: queued,
        };
        let held = deadline.ask(|| self.actors.get(&partner_id), message);
        held.instrument(debug_span!(target: SPANS, "hold wallet", %currency))
            .await
    }

    /// Makes every wallet read the store before its next decision.
    pub fn reload_all(&self) {
        self.actors.reload_all();
    }

    /// The counters of every wallet actor.
    pub fn stats(&self) -> Vec<(PartnerId, ActorStats)> {
        self.actors.stats()
    }

    /// Totals and the busiest actors; see [`Directory::scan`].
    pub fn scan(&self, limit: usize) -> ActorScan<PartnerId> {
        self.actors.scan(limit)
    }

    /// The counters of one actor; see [`Directory::describe`].
    pub fn describe(&self, key: &PartnerId) -> Option<BusyActor<PartnerId>> {
        self.actors.describe(key)
    }

    /// Totals over all wallet actors.
    pub fn totals(&self) -> ActorTotals {
        self.actors.totals()
    }

    /// The purse of a currency as the partner's actor knows it; `None` if no actor is alive.
    #[cfg(feature = "testing")]
    pub async fn purse(&self, partner_id: PartnerId, currency: Currency) -> Option<purse::Purse> {
        let wallet = self.actors.find(&partner_id)?;
        wallet.addr.send(GetPurse(currency)).await.ok().flatten()
    }

    /// Makes a partner's actor panic in the middle of its work.
    #[cfg(feature = "testing")]
    pub async fn panic(&self, partner_id: PartnerId) {
        if let Some(wallet) = self.actors.get(&partner_id) {
            let died = wallet.addr.send(Panic).await;
            assert!(died.is_err(), "a panicking actor must not reply");
        }
    }
}

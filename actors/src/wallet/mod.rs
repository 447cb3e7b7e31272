//! Wallets: one actor a partner decides what it may spend.

mod actor;
mod hold;
pub mod purse;

use std::sync::Arc;

pub use actor::Funds;
use actor::WalletActor;
use actor::message::HoldMoney;
#[cfg(any(test, feature = "testing"))]
use actor::probe::{Panic, Show};
pub use hold::WalletHold;
use tracing::{Instrument as _, debug_span};

use self::purse::Wish;
use crate::SPANS;
use crate::domain::ids::PartnerId;
use crate::domain::money::Currency;
use crate::store::Store;
use crate::supervisor::{Directory, Patience, Reading, Spawner, Total, Undecided};

/// All wallets.
pub struct Wallets {
    actors: Directory<PartnerId, WalletActor>,
}

impl Wallets {
    /// No wallet is in memory yet; each is read from the store when it is first asked.
    pub fn new(spawner: Spawner, store: Arc<dyn Store>) -> Self {
        let make = move |partner_id, lineage| WalletActor::new(partner_id, Arc::clone(&store), lineage);
        Self {
            actors: Directory::new(spawner, make),
        }
    }

    /// Sets aside what `wish` takes, or finds room for what it adds.
    ///
    /// # Errors
    /// [`Undecided`] when the wallet could not decide in time: it is being read, others hold what it has, or too many wait.
    pub async fn set_aside(
        &self,
        partner_id: PartnerId,
        currency: Currency,
        wish: Wish,
        patience: &Patience,
    ) -> Result<Funds, Undecided> {
        let message = |queued| HoldMoney {
            currency,
            wish,
            queued,
        };
        let asked = patience.ask(|| self.actors.get(&partner_id), message);
        asked
            .instrument(debug_span!(target: SPANS, "hold wallet", %currency))
            .await
    }

    /// The counters of every wallet actor.
    pub fn readings(&self) -> Vec<(PartnerId, Reading)> {
        self.actors.readings()
    }

    /// The counters of all wallet actors together.
    pub fn total(&self) -> Total {
        self.actors.total()
    }

    /// What the actor of a partner knows of a currency; nothing if none is alive.
    #[cfg(any(test, feature = "testing"))]
    pub async fn purse(&self, partner_id: PartnerId, currency: Currency) -> Option<purse::Purse> {
        let wallet = self.actors.find(&partner_id)?;
        wallet.addr.send(Show(currency)).await.ok().flatten()
    }

    /// Kills the actor of a partner in the middle of its work.
    #[cfg(any(test, feature = "testing"))]
    pub async fn panic(&self, partner_id: PartnerId) {
        if let Some(wallet) = self.actors.get(&partner_id) {
            let died = wallet.addr.send(Panic).await;
            assert!(died.is_err(), "an actor that panics answers nothing");
        }
    }
}

//! Wallets: one actor a partner decides what it may spend.

mod actor;
mod hold;
pub mod purse;

use std::sync::Arc;

pub use actor::Funds;
#[cfg(any(test, feature = "testing"))]
use actor::probe::{Panic, Show};
use actor::{SetAside, WalletActor};
pub use hold::WalletHold;

use crate::domain::ids::PartnerId;
use crate::domain::money::{Amount, Currency};
use crate::store::Store;
use crate::supervisor::{Directory, Found, MailboxError, Patience, Reading, Spawner, TooLong};

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

    /// Sets `amount` (minor units, not negative) aside.
    ///
    /// # Errors
    /// [`TooLong`] when the wallet could not decide in time: it is being read, or others hold what it has.
    pub async fn set_aside(
        &self,
        partner_id: PartnerId,
        currency: Currency,
        amount: Amount,
        patience: &Patience,
    ) -> Result<Funds, TooLong> {
        let ask = |wallet: Option<Found<WalletActor>>| async move {
            let wallet = wallet.ok_or(MailboxError::Closed)?;
            let queued = wallet.lineage.meter.queue();
            wallet
                .addr
                .send(SetAside {
                    currency,
                    amount,
                    queued,
                })
                .await
        };
        patience.ask(|| ask(self.actors.get(&partner_id))).await
    }

    /// The counters of every wallet actor.
    pub fn readings(&self) -> Vec<(PartnerId, Reading)> {
        self.actors.readings()
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

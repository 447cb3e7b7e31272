//! The handle that the service holds: actors, journal and keys of one node, put together.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::delivery::bell::Bell;
use crate::domain::clock::Clock;
use crate::inventory::Inventory;
use crate::journal::{Journal, JournalMetrics, Spawn};
use crate::keys::Keys;
use crate::procurement::last_words::LastWords;
use crate::store::{RecoverError, Store};
use crate::supervisor::Spawner;
use crate::wallet::Wallets;
use crate::watch::Watch;

/// How many records may be under way at once, from decision to verdict. Mailboxes and lanes do not push back, so this
/// bounds all of them: a full batch in each of two lanes, or about a seventh of a second of full load. Beyond it the answer is
/// 503.
pub const MAX_ADMITTED: u32 = 1_024;

/// How many lanes a node writes with, unless it is told otherwise: two overlap their commits where fsync is slow.
pub const DEFAULT_LANES: u16 = 2;

/// What a node's engine is made from.
pub struct Parts<'a> {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub spawner: Spawner,
    pub spawn: Spawn<'a>,
    /// How many lanes; at least one.
    pub lanes: u16,
    /// What operators see of the journal.
    pub metrics: JournalMetrics,
}

/// The engine of one node.
pub struct Engine {
    pub wallets: Wallets,
    pub inventory: Inventory,
    /// Who waits for an order to change; what commits a change says so here.
    pub watch: Arc<Watch>,
    /// What vendors said last.
    pub last_words: LastWords,
    /// Whose events were committed a moment ago.
    pub bell: Arc<Bell>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) journal: Journal,
    pub(crate) admission: Arc<Semaphore>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Engine {
    /// Opens the lanes and starts the engine; actors come to life when they are first asked.
    ///
    /// # Errors
    /// [`RecoverError`] when the store cannot answer, or a later start of this node has taken over.
    pub async fn start(parts: Parts<'_>) -> Result<Self, RecoverError> {
        let mut lanes = Vec::with_capacity(usize::from(parts.lanes));
        for lane in 0..parts.lanes {
            lanes.push(parts.store.open_lane(lane).await?);
        }
        let bell = Arc::<Bell>::default();
        Ok(Self {
            wallets: Wallets::new(parts.spawner.clone(), Arc::clone(&parts.store)),
            inventory: Inventory::new(parts.spawner, Arc::clone(&parts.store)),
            watch: Watch::new(),
            last_words: LastWords::default(),
            keys: Keys::new(Arc::clone(&parts.clock)),
            journal: Journal::start(lanes, parts.metrics, Arc::clone(&bell), parts.spawn),
            bell,
            admission: Arc::new(Semaphore::new(MAX_ADMITTED as usize)),
            store: parts.store,
            clock: parts.clock,
        })
    }

    /// Whether commits flow: no lane is finding out what became of a batch.
    #[must_use]
    pub fn flows(&self) -> bool {
        self.journal.flows()
    }

    /// Whether as many records are under way as may be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.admission.available_permits() == 0
    }

    /// How many records are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        (MAX_ADMITTED as usize).saturating_sub(self.admission.available_permits())
    }

    /// Admits nothing more and waits until everything under way has its verdict.
    pub async fn drain(&self) {
        if let Ok(all) = self.admission.acquire_many(MAX_ADMITTED).await {
            // Closed while all places are taken: nobody slips in between.
            self.admission.close();
            drop(all);
        }
    }

    /// Resolves when a later start of this node has taken over, and this process must end.
    pub async fn superseded(&self) {
        self.journal.superseded().await;
    }
}

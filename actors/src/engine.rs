//! The engine of one node: its actors, journal and idempotency keys.

use std::sync::Arc;

use tokio::sync::Semaphore;
use vouchsafe_domain::clock::Clock;

use crate::delivery::commit_notifier::CommitNotifier;
use crate::idempotency::IdempotencyKeys;
use crate::inventory::Inventory;
use crate::journal::{Journal, JournalMetrics, Spawn};
use crate::long_poll::LongPollRegistry;
use crate::out_of_stock::OutOfStockSkus;
use crate::ports::store::{RecoverError, Store};
use crate::supervisor::Spawner;
use crate::wallet::Wallets;

/// Maximum number of records in flight, from decision to verdict. Mailboxes and lanes apply no backpressure, so this bounds
/// all of them: a full batch in each of two lanes, or about a seventh of a second of full load. Requests beyond it are
/// rejected with 503.
pub const MAX_ADMITTED: u32 = 1_024;

/// Default number of lanes: two overlap their commits where fsync is slow.
pub const DEFAULT_LANES: u16 = 2;

/// The parts of an engine.
pub struct EngineParts<'a> {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub spawner: Spawner,
    pub spawn: Spawn<'a>,
    /// Number of lanes; at least one.
    pub lanes: u16,
    pub metrics: JournalMetrics,
}

pub struct Engine {
    pub wallets: Wallets,
    pub inventory: Inventory,
    /// Long polls for order changes; the flow that commits a change notifies them.
    pub long_polls: Arc<LongPollRegistry>,
    /// SKUs that their vendors reported as out of stock.
    pub out_of_stock: OutOfStockSkus,
    /// Notifies the delivery poller of partners with new events.
    pub commit_notifier: Arc<CommitNotifier>,
    pub(crate) keys: Arc<IdempotencyKeys>,
    pub(crate) journal: Journal,
    pub(crate) admission: Arc<Semaphore>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Engine {
    /// Opens the lanes and starts the engine; actors start on their first request.
    ///
    /// # Errors
    /// [`RecoverError`] if the store is unavailable, or a later start of this node has taken over.
    pub async fn start(parts: EngineParts<'_>) -> Result<Self, RecoverError> {
        let mut lanes = Vec::with_capacity(usize::from(parts.lanes));
        for lane in 0..parts.lanes {
            lanes.push(parts.store.open_lane(lane).await?);
        }
        let commit_notifier = Arc::<CommitNotifier>::default();
        Ok(Self {
            wallets: Wallets::new(parts.spawner.clone(), Arc::clone(&parts.store)),
            inventory: Inventory::new(parts.spawner, Arc::clone(&parts.store)),
            long_polls: LongPollRegistry::new(),
            out_of_stock: OutOfStockSkus::default(),
            keys: IdempotencyKeys::new(Arc::clone(&parts.clock)),
            journal: Journal::start(lanes, parts.metrics, Arc::clone(&commit_notifier), parts.spawn),
            commit_notifier,
            admission: Arc::new(Semaphore::new(MAX_ADMITTED as usize)),
            store: parts.store,
            clock: parts.clock,
        })
    }

    /// Whether commits can proceed: no lane is recovering a batch with an unknown outcome.
    #[must_use]
    pub fn can_commit(&self) -> bool {
        self.journal.can_commit()
    }

    /// Whether [`MAX_ADMITTED`] records are in flight.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.admission.available_permits() == 0
    }

    /// The number of records in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        (MAX_ADMITTED as usize).saturating_sub(self.admission.available_permits())
    }

    /// Number of idempotency keys in flight.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn keys_in_flight(&self) -> usize {
        self.keys.in_flight_count()
    }

    /// Acquires all but `left` of the free admission permits.
    ///
    /// # Panics
    /// If fewer are free.
    #[cfg(feature = "testing")]
    pub fn occupy_admission(&self, left: usize) -> tokio::sync::OwnedSemaphorePermit {
        let permits = self.admission.available_permits().checked_sub(left);
        let occupied = permits.and_then(|permits| {
            let permits = u32::try_from(permits).ok()?;
            Arc::clone(&self.admission).try_acquire_many_owned(permits).ok()
        });
        occupied.unwrap_or_else(|| panic!("fewer than {left} permits are free"))
    }

    /// Stops admission and waits until every record in flight has its verdict.
    pub async fn drain(&self) {
        if let Ok(all) = self.admission.acquire_many(MAX_ADMITTED).await {
            // Closing while all permits are held leaves no gap in which another record is admitted.
            self.admission.close();
            drop(all);
        }
    }

    /// Resolves when a later start of this node has taken over; this process must then end.
    pub async fn wait_until_superseded(&self) {
        self.journal.wait_until_superseded().await;
    }
}

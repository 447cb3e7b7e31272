//! The engine of one node: its actors, journal and idempotency keys.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use vouchsafe_domain::clock::Clock;

use crate::delivery::commit_notifier::CommitNotifier;
use crate::idempotency::IdempotencyKeys;
use crate::inventory::Inventory;
use crate::journal::{Journal, JournalMetrics, LaneStats, Spawn};
use crate::long_poll::LongPollRegistry;
use crate::out_of_stock::OutOfStockSkus;
use crate::ports::store::{RecoverError, Store};
use crate::reached_caps::ReachedCaps;
use crate::supervisor::Spawner;
use crate::wallet::Wallets;

/// Default number of lanes: two overlap their commits where fsync is slow.
pub const DEFAULT_LANES: u16 = 2;

/// How long an order on another node waits for this node to notice its demand; well below the takeover delay.
const DEMAND_POLL_INTERVAL: Duration = Duration::from_millis(200);

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
    pub(crate) reached_caps: ReachedCaps,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The discontinuities of the store after which the caches were dropped.
    known_discontinuities: AtomicU64,
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
            reached_caps: ReachedCaps::default(),
            keys: IdempotencyKeys::new(Arc::clone(&parts.clock)),
            journal: Journal::start(lanes, parts.metrics, Arc::clone(&commit_notifier), parts.spawn),
            commit_notifier,
            known_discontinuities: AtomicU64::new(parts.store.discontinuities()),
            store: parts.store,
            clock: parts.clock,
        })
    }

    /// Drops what was read from the store before its last discontinuity: wallets and shelves read it again,
    /// and responses are looked up.
    pub(crate) fn drop_stale_caches(&self) {
        let discontinuities = self.store.discontinuities();
        if self.known_discontinuities.load(Ordering::Acquire) == discontinuities {
            return;
        }
        self.keys.drop_responses();
        self.wallets.reload_all();
        self.inventory.reload_all();
        // After the drop: a concurrent request repeats it rather than use a cache that is not dropped yet.
        self.known_discontinuities
            .store(discontinuities, Ordering::Release);
        info!("the database may have lost commits: wallets, shelves and responses are read again");
    }

    /// Drops the cached responses: those that are still valid are found in the store.
    pub fn forget_responses(&self) {
        self.keys.drop_responses();
    }

    /// Whether commits can proceed; see [`Journal::can_commit`].
    #[must_use]
    pub fn can_commit(&self) -> bool {
        self.journal.can_commit()
    }

    /// Whether a batch was written within the last seconds.
    #[must_use]
    pub fn has_committed(&self) -> bool {
        self.journal.has_committed()
    }

    /// Whether no lane admits another record.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.journal.is_full()
    }

    /// The number of records in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.journal.in_flight()
    }

    /// A snapshot of each lane, by number.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneStats> {
        self.journal.lanes()
    }

    /// Number of idempotency keys in flight.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn keys_in_flight(&self) -> usize {
        self.keys.in_flight_count()
    }

    /// Acquires all but `left` of the free admission permits of this partner's lane.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn occupy_admission(
        &self,
        partner_id: vouchsafe_domain::ids::PartnerId,
        left: usize,
    ) -> Vec<tokio::sync::OwnedSemaphorePermit> {
        self.journal.occupy_admission(partner_id, left)
    }

    /// Releases stock that orders on other nodes wait for. Never returns.
    pub async fn share_stock(&self) -> Infallible {
        let mut tick = interval(DEMAND_POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if let Err(error) = self.inventory.serve_demands().await {
                warn!(error.message = %error, "cannot poll for stock demands of other nodes");
            }
        }
    }

    /// Stops admission and waits until every record in flight has its verdict.
    pub async fn drain(&self) {
        self.journal.drain().await;
    }

    /// Resolves when a later start of this node has taken over; this process must then end.
    pub async fn wait_until_superseded(&self) {
        self.journal.wait_until_superseded().await;
    }
}

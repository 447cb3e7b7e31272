//! Group commit: the journal writes decisions in batches and gives each record its own verdict.
//!
//! A flow submits a [`Record`] with the [`Hold`]s it rests on. A lane, chosen by partner, writes the records
//! that were queued during its last commit in one transaction: one round trip, no timer.
//! [`MAX_BATCH_RECORDS`] and [`MAX_BATCH_VOUCHERS`] bound a batch; [`MAX_ADMITTED`] bounds each lane's queue,
//! so that a lane that hangs takes nothing from the others.
//!
//! Two lanes overlap their commits where fsync is slow. All records of a partner go through one lane: a
//! wallet's states arrive in order, and two lanes of a node never wait for the same wallet.

mod batch;
mod checks;
mod commit_health;
mod lane;
mod metrics;
mod money;
mod order_log;
mod submission;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug_span};

pub use batch::{MAX_BATCH_RECORDS, MAX_BATCH_VOUCHERS};
use lane::{Lane, SupersededError};
use metrics::LaneMetrics;
pub use metrics::{JournalMetrics, LaneStats};
use submission::{Completion, Submission};
pub use submission::{Hold, RecordOutcome, Ticket};

use vouchsafe_domain::ids::PartnerId;

use crate::delivery::commit_notifier::CommitNotifier;
use crate::ports::record::Record;
use crate::ports::store::{LaneStore, StoreFuture};
use vouchsafe_domain::spans::SPANS;

/// Maximum number of records of a lane in flight, from decision to verdict: a full batch at the database and
/// one behind it. Mailboxes and lanes apply no backpressure, so this bounds all of them. Requests beyond it
/// are rejected with 503.
pub const MAX_ADMITTED: usize = 2 * MAX_BATCH_RECORDS;

/// Spawns a task on the store's runtime; the task outlives every request.
pub type Spawn<'a> = &'a dyn Fn(StoreFuture<'static, ()>);

/// The journal. Cheap to share; submitting never waits.
#[derive(Debug)]
pub struct Journal {
    lanes: Vec<LaneHandle>,
    superseded: watch::Receiver<bool>,
}

#[derive(Debug)]
struct LaneHandle {
    inbox: mpsc::UnboundedSender<Submission>,
    metrics: Arc<LaneMetrics>,
    admission: Arc<Semaphore>,
}

impl LaneHandle {
    fn in_flight(&self) -> usize {
        MAX_ADMITTED.saturating_sub(self.admission.available_permits())
    }
}

impl Journal {
    /// Starts a task for each lane. After a commit, a lane notifies `commit_notifier` of the partners with
    /// new events.
    pub fn start(
        lanes: Vec<Box<dyn LaneStore>>,
        metrics: JournalMetrics,
        commit_notifier: Arc<CommitNotifier>,
        spawn: Spawn<'_>,
    ) -> Self {
        assert!(!lanes.is_empty(), "a journal needs at least one lane");
        let (superseded_sender, superseded) = watch::channel(false);
        let superseded_sender = Arc::new(superseded_sender);
        let start = |(number, store): (u16, Box<dyn LaneStore>)| {
            let (sender, inbox) = mpsc::unbounded_channel();
            let meter = Arc::new(LaneMetrics::new(metrics.clone()));
            let lane = Lane::new(
                number,
                store,
                inbox,
                Arc::clone(&meter),
                Arc::clone(&commit_notifier),
            );
            spawn(Box::pin(run_lane(lane, Arc::clone(&superseded_sender))));
            LaneHandle {
                inbox: sender,
                metrics: meter,
                admission: Arc::new(Semaphore::new(MAX_ADMITTED)),
            }
        };
        Self {
            lanes: (0..).zip(lanes).map(start).collect(),
            superseded,
        }
    }

    /// Submits a record. From here on the lane owns record, holds and ticket, even if the returned receiver
    /// is dropped.
    pub fn submit(
        &self,
        record: Record,
        holds: Vec<Box<dyn Hold>>,
        ticket: Ticket,
    ) -> oneshot::Receiver<RecordOutcome> {
        let (reply, outcome) = oneshot::channel();
        let number = self.lane_of(record.partner_id);
        self.lanes[number].metrics.record_submission();
        // A closed lane belongs to a superseded process: dropping the submission closes the flow's receiver.
        drop(self.lanes[number].inbox.send(Submission {
            record,
            completion: Completion {
                holds,
                ticket,
                reply,
                submitted_at: Instant::now(),
                span: Span::current(),
                commit_span: commit_span(number),
            },
        }));
        outcome
    }

    /// Whether every lane can commit: none is recovering a batch with an unknown outcome, waits for a commit
    /// for seconds, or has failed to write its last batch.
    #[must_use]
    pub fn can_commit(&self) -> bool {
        self.lanes.iter().all(|lane| lane.metrics.can_commit())
    }

    /// Whether a lane has written a batch within the last seconds.
    #[must_use]
    pub fn has_committed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.metrics.has_committed())
    }

    /// Admits a record of this partner to its lane; `None` while the lane has [`MAX_ADMITTED`] records in
    /// flight.
    #[must_use]
    pub fn try_admit(&self, partner_id: PartnerId) -> Option<OwnedSemaphorePermit> {
        let admission = &self.lanes[self.lane_of(partner_id)].admission;
        Arc::clone(admission).try_acquire_owned().ok()
    }

    /// Whether every lane has [`MAX_ADMITTED`] records in flight.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lanes
            .iter()
            .all(|lane| lane.admission.available_permits() == 0)
    }

    /// The number of records in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lanes.iter().map(LaneHandle::in_flight).sum()
    }

    /// A snapshot of each lane, by number.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneStats> {
        let stats = |lane: &LaneHandle| lane.metrics.stats(lane.in_flight());
        self.lanes.iter().map(stats).collect()
    }

    /// Acquires all but `left` of the free admission permits of this partner's lane.
    #[cfg(feature = "testing")]
    pub fn occupy_admission(&self, partner_id: PartnerId, left: usize) -> Vec<OwnedSemaphorePermit> {
        let free = self.lanes[self.lane_of(partner_id)].admission.available_permits();
        (left..free).map_while(|_| self.try_admit(partner_id)).collect()
    }

    /// Stops admission and waits until every record in flight has its verdict.
    pub async fn drain(&self) {
        let mut drained = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let all = u32::try_from(MAX_ADMITTED).unwrap_or(u32::MAX);
            drained.push(lane.admission.acquire_many(all).await);
        }
        // Closing while all permits are held leaves no gap in which another record is admitted.
        self.lanes.iter().for_each(|lane| lane.admission.close());
        drop(drained);
    }

    /// Resolves when a later start of this node has taken over; this process must then end.
    pub async fn wait_until_superseded(&self) {
        let mut superseded = self.superseded.clone();
        if superseded.wait_for(|superseded| *superseded).await.is_err() {
            // All lanes have ended without being superseded.
            std::future::pending::<()>().await;
        }
    }

    fn lane_of(&self, partner_id: PartnerId) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(partner_id);
        let lanes = self.lanes.len() as u64;
        usize::try_from(hash % lanes).unwrap_or_default()
    }
}

/// A batch serves many requests: each record has its own span, which records the batch that contained it.
fn commit_span(lane: usize) -> Span {
    debug_span!(
        target: SPANS,
        "commit",
        lane = i64::try_from(lane).unwrap_or(i64::MAX),
        batch.number = Empty,
        batch.records = Empty,
        verdict = Empty,
    )
}

/// Runs a lane. After a panic the state of money in memory is not trustworthy: the process aborts, and the
/// next start loads the committed state.
async fn run_lane(lane: Lane, superseded: Arc<watch::Sender<bool>>) {
    match AssertUnwindSafe(lane.run()).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(SupersededError)) => drop(superseded.send_replace(true)),
        Err(_) => {
            tracing::error!("journal lane panicked; aborting the process");
            std::process::abort();
        }
    }
}

//! Group commit: the journal writes decisions in batches and gives each record its own verdict.
//!
//! A flow submits a [`Record`] with the [`Hold`]s it rests on. A lane, chosen by partner, writes the records that were
//! queued during its last commit in one transaction: one round trip, no timer. [`MAX_BATCH_RECORDS`] and
//! [`MAX_BATCH_VOUCHERS`] bound a batch; the engine's admission bounds the queue.
//!
//! Two lanes overlap their commits where fsync is slow. All records of a partner go through one lane: a wallet's states
//! arrive in order, and two lanes of a node never wait for the same wallet.

mod batch;
mod lane;
mod metrics;
mod submission;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::field::Empty;
use tracing::{Span, debug_span};

pub use batch::{MAX_BATCH_RECORDS, MAX_BATCH_VOUCHERS};
use lane::{Lane, SupersededError};
pub use metrics::JournalMetrics;
use metrics::LaneMetrics;
use submission::{Completion, Submission};
pub use submission::{Hold, RecordOutcome, Ticket};

use vouchsafe_domain::ids::PartnerId;

use crate::SPANS;
use crate::delivery::commit_notifier::CommitNotifier;
use crate::ports::record::Record;
use crate::ports::store::{LaneStore, StoreFuture};

/// Spawns a task on the store's runtime; the task outlives every request.
pub type Spawn<'a> = &'a dyn Fn(StoreFuture<'static, ()>);

/// The journal. Cheap to share; submitting never waits.
#[derive(Debug)]
pub struct Journal {
    lanes: Vec<(mpsc::UnboundedSender<Submission>, Arc<LaneMetrics>)>,
    metrics: JournalMetrics,
    superseded: watch::Receiver<bool>,
}

impl Journal {
    /// Starts a task for each lane. After a commit, a lane notifies `commit_notifier` of the partners with new events.
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
            (sender, meter)
        };
        Self {
            lanes: (0..).zip(lanes).map(start).collect(),
            metrics,
            superseded,
        }
    }

    /// Submits a record. From here on the lane owns record, holds and ticket, even if the returned receiver is dropped.
    pub fn submit(
        &self,
        record: Record,
        holds: Vec<Box<dyn Hold>>,
        ticket: Ticket,
    ) -> oneshot::Receiver<RecordOutcome> {
        let (reply, outcome) = oneshot::channel();
        let number = self.lane_of(record.partner_id);
        let (lane, _) = &self.lanes[number];
        self.metrics.record_submission();
        // A closed lane belongs to a superseded process: dropping the submission closes the flow's receiver.
        drop(lane.send(Submission {
            record,
            completion: Completion {
                holds,
                ticket,
                reply,
                span: Span::current(),
                commit_span: commit_span(number),
            },
        }));
        outcome
    }

    /// Whether no lane is recovering a batch with an unknown outcome.
    #[must_use]
    pub fn can_commit(&self) -> bool {
        self.lanes.iter().all(|(_, meter)| meter.can_commit())
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

/// Runs a lane. After a panic the state of money in memory is not trustworthy: the process aborts, and the next start loads
/// the committed state.
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

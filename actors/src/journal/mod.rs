//! Group commit: decisions become durable in batches, each with a verdict of its own.
//!
//! A flow hands over a [`Record`] with the [`Hold`]s it rests on. A lane, picked by the partner, writes what has gathered
//! while its last commit was under way as one transaction: one round trip, no timer. What bounds a batch is
//! [`MAX_BATCH_RECORDS`] and [`MAX_BATCH_VOUCHERS`]; what bounds the queue in front of it is the engine's admission.
//!
//! Two lanes overlap their commits where fsync is slow. All records of a partner go through one lane, so the receipts of
//! a wallet come in order, and two lanes of a node never wait for one wallet.

mod batch;
mod entry;
mod lane;
mod meter;
mod record;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::field::Empty;
use tracing::{Span, debug_span};

pub use batch::{MAX_BATCH_RECORDS, MAX_BATCH_VOUCHERS};
use entry::{Entry, Open};
pub use entry::{Hold, Outcome, Ticket};
use lane::{Lane, Superseded};
pub use meter::JournalMetrics;
use meter::LaneMeter;
pub use record::{KeyClaim, OrderChange, PayoutChange, Record, Return, Stale, Verdict};

use crate::SPANS;
use crate::delivery::bell::Bell;
use crate::domain::ids::PartnerId;
use crate::store::{LaneStore, StoreFuture};

/// Starts a task that outlives every request, on the runtime that the store's work lives on.
pub type Spawn<'a> = &'a dyn Fn(StoreFuture<'static, ()>);

/// The way to the disk. Cheap to share; submitting never waits.
#[derive(Debug)]
pub struct Journal {
    lanes: Vec<(mpsc::UnboundedSender<Entry>, Arc<LaneMeter>)>,
    metrics: JournalMetrics,
    superseded: watch::Receiver<bool>,
}

impl Journal {
    /// Starts a task for each lane; `bell` rings for whoever has new events.
    pub fn start(
        lanes: Vec<Box<dyn LaneStore>>,
        metrics: JournalMetrics,
        bell: Arc<Bell>,
        spawn: Spawn<'_>,
    ) -> Self {
        assert!(!lanes.is_empty(), "a journal needs a lane");
        let (superseded_sender, superseded) = watch::channel(false);
        let superseded_sender = Arc::new(superseded_sender);
        let start = |(number, store): (u16, Box<dyn LaneStore>)| {
            let (sender, inbox) = mpsc::unbounded_channel();
            let meter = Arc::new(LaneMeter::new(metrics.clone()));
            let lane = Lane::new(number, store, inbox, Arc::clone(&meter), Arc::clone(&bell));
            spawn(Box::pin(keep_running(lane, Arc::clone(&superseded_sender))));
            (sender, meter)
        };
        Self {
            lanes: (0..).zip(lanes).map(start).collect(),
            metrics,
            superseded,
        }
    }

    /// Hands a record over. The fate of record, holds and ticket is the lane's from here on, whatever becomes of the
    /// receiver that is returned.
    pub fn submit(
        &self,
        record: Record,
        holds: Vec<Box<dyn Hold>>,
        ticket: Ticket,
    ) -> oneshot::Receiver<Outcome> {
        let (reply, outcome) = oneshot::channel();
        let number = self.lane_of(record.partner_id);
        let (lane, _) = &self.lanes[number];
        self.metrics.submitted();
        // A closed lane belongs to a superseded process: the entry is dropped, and the flow hears "closed".
        drop(lane.send(Entry {
            record,
            open: Open {
                holds,
                ticket,
                reply,
                span: Span::current(),
                commit: commit_span(number),
            },
        }));
        outcome
    }

    /// Whether no lane is busy finding out what became of a batch.
    #[must_use]
    pub fn flows(&self) -> bool {
        self.lanes.iter().all(|(_, meter)| meter.flows())
    }

    /// Resolves when a later start of this node has taken over, and this process must end.
    pub async fn superseded(&self) {
        let mut superseded = self.superseded.clone();
        if superseded.wait_for(|yes| *yes).await.is_err() {
            // No lane is left that could say so.
            std::future::pending::<()>().await;
        }
    }

    fn lane_of(&self, partner_id: PartnerId) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(partner_id);
        let lanes = self.lanes.len() as u64;
        usize::try_from(hash % lanes).unwrap_or_default()
    }
}

/// A batch belongs to many requests: so each record has a span of its own, and learns there which batch had it.
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

/// Runs a lane to its end. One that panics has lost track of money: the process ends, and the next start loads the truth.
async fn keep_running(lane: Lane, superseded: Arc<watch::Sender<bool>>) {
    match AssertUnwindSafe(lane.run()).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(Superseded)) => drop(superseded.send_replace(true)),
        Err(_) => {
            tracing::error!("a lane of the journal panicked: the process ends now");
            std::process::abort();
        }
    }
}

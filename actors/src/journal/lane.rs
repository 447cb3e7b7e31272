//! A journal lane: collects the records queued during its last commit and writes them in one transaction.
//!
//! | after | in memory | on disk |
//! |---|---|---|
//! | collect | records with their holds, owned by the lane | nothing |
//! | commit | the same | all records of the batch, or none |
//! | settle | holds settled or released, flows notified | the same |
//!
//! The lane sends the next batch before it settles the previous one, since the server is idle until then.
//!
//! A lane is a task of its own and is never cancelled. A batch with an unknown outcome is resolved by the
//! fence before anything else is written; until then its holds stay held and its keys stay taken.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tracing::{Instrument as _, error, info, warn};

use super::batch::Batch;
use super::checks::{check_records, check_verdicts};
use super::metrics::LaneMetrics;
use super::order_log::OrderLog;
use super::submission::{RecordOutcome, Submission};
use crate::delivery::commit_notifier::CommitNotifier;
use crate::ports::record::{Record, Verdict};
use crate::ports::store::{BatchOutcome, LaneStore, RecoverError};
use vouchsafe_domain::store_error::CommitError;

/// How often a batch is rewritten when its connection breaks each time and the fence reports it as not
/// written.
const MAX_REWRITES: u32 = 3;

/// First and longest delay between attempts to reach the store.
const RECOVERY_BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long a batch that ran into a lock is split and retried. A part that conflicts takes as long as the
/// store's lock timeout, 2 s, so this ends within 9 s, and flows wait for 10 s. The remaining records are not
/// written, and their clients retry.
const CONTENTION_BUDGET: Duration = Duration::from_secs(5);

/// A committed batch that is not settled yet.
struct CommittedBatch {
    batch: Batch,
    number: i64,
    verdicts: Vec<Verdict>,
    /// The duration of its commit, with the resolution of an unknown outcome.
    duration: Duration,
}

impl CommittedBatch {
    /// Notifies the delivery poller, then delivers the verdicts.
    fn settle(self, commit_notifier: &CommitNotifier, order_log: &mut OrderLog) {
        commit_notifier.notify(self.batch.partners_with_events(&self.verdicts));
        order_log.report(&self.batch, &self.verdicts, self.duration);
        self.batch.settle(self.number, self.verdicts);
    }
}

/// The result of one attempt to write a batch.
enum WriteResult {
    Written(Vec<Verdict>),
    Rejected(BatchRejection),
    Busy,
    /// Not written: the connection was lost before.
    NotWritten,
    Superseded,
}

/// Why a batch was not written, though parts of it may be writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchRejection {
    /// A record in it can never be written.
    Poisoned,
    /// A record in it conflicted with another transaction.
    Contended,
}

/// A later start of this node has taken over: the lane writes nothing more.
#[derive(Debug)]
pub(super) struct SupersededError;

/// The state of a lane's task.
pub(super) struct Lane {
    number: u16,
    store: Box<dyn LaneStore>,
    inbox: UnboundedReceiver<Submission>,
    /// Taken from the inbox, but did not fit the previous batch.
    deferred: Option<Submission>,
    /// Settled after the next batch is sent, and before the lane waits for a record.
    committed: Option<CommittedBatch>,
    batch_number: i64,
    metrics: Arc<LaneMetrics>,
    commit_notifier: Arc<CommitNotifier>,
    order_log: OrderLog,
}

impl Lane {
    pub(super) fn new(
        number: u16,
        store: Box<dyn LaneStore>,
        inbox: UnboundedReceiver<Submission>,
        metrics: Arc<LaneMetrics>,
        commit_notifier: Arc<CommitNotifier>,
    ) -> Self {
        Self {
            number,
            store,
            inbox,
            deferred: None,
            committed: None,
            batch_number: 0,
            metrics,
            commit_notifier,
            order_log: OrderLog::default(),
        }
    }

    /// Writes batches until the journal is closed.
    pub(super) async fn run(mut self) -> Result<(), SupersededError> {
        while let Some(batch) = self.collect_batch().await {
            self.metrics.record_batch(batch.len());
            self.write_batch(batch).await?;
        }
        Ok(())
    }

    async fn collect_batch(&mut self) -> Option<Batch> {
        let ready = self.deferred.take().or_else(|| self.inbox.try_recv().ok());
        let first = match ready {
            Some(submission) => submission,
            None => {
                self.settle_committed();
                self.inbox.recv().await?
            }
        };
        let mut batch = Batch::default();
        batch.push(first);
        while !batch.is_full() {
            match self.inbox.try_recv() {
                Ok(submission) if batch.has_room_for(&submission) => batch.push(submission),
                Ok(submission) => {
                    self.deferred = Some(submission);
                    break;
                }
                Err(_) => break,
            }
        }
        Some(batch)
    }

    fn settle_committed(&mut self) {
        if let Some(written) = self.committed.take() {
            written.settle(&self.commit_notifier, &mut self.order_log);
        }
    }

    /// Writes a batch whole or, if it is rejected, in ever smaller parts until the offending record is alone.
    /// Parts that were not tried yet come first, so writable records do not wait for others.
    async fn write_batch(&mut self, batch: Batch) -> Result<(), SupersededError> {
        let mut parts = VecDeque::from([batch]);
        let (mut may_retry, mut contention_deadline) = (true, None);
        while let Some(part) = parts.pop_front() {
            if contention_deadline.is_some_and(|end| Instant::now() >= end) {
                part.abort(|| RecordOutcome::Busy);
                continue;
            }
            let Some((part, rejection)) = self.write_part(part, may_retry).await? else {
                continue;
            };
            may_retry = false;
            if rejection == BatchRejection::Contended {
                contention_deadline.get_or_insert_with(|| Instant::now() + CONTENTION_BUDGET);
            }
            match rejection {
                _ if part.len() > 1 => parts.extend(part.split()),
                BatchRejection::Contended => part.abort(|| RecordOutcome::Busy),
                BatchRejection::Poisoned => {
                    self.metrics.record_poisoned();
                    part.abort(|| RecordOutcome::Poisoned);
                }
            }
        }
        Ok(())
    }

    /// Writes a batch, or returns it if parts of it may be writable. With `may_retry`, a rejected batch is
    /// tried once more first, unless it waited for a lock and can be split.
    async fn write_part(
        &mut self,
        mut batch: Batch,
        mut may_retry: bool,
    ) -> Result<Option<(Batch, BatchRejection)>, SupersededError> {
        let mut losses = 0;
        loop {
            let started = Instant::now();
            batch.finish_queueing(started);
            match self.try_write(batch.records()).instrument(batch.span()).await {
                WriteResult::Written(verdicts) => {
                    self.metrics.record_verdicts(&verdicts);
                    self.metrics.record_committed(batch.records(), &verdicts);
                    self.committed = Some(CommittedBatch {
                        batch,
                        number: self.batch_number,
                        verdicts,
                        duration: started.elapsed(),
                    });
                    return Ok(None);
                }
                WriteResult::NotWritten => {
                    losses += 1;
                    may_retry = false;
                    batch = batch.drop_abandoned();
                    if batch.len() == 0 {
                        return Ok(None);
                    }
                    if losses == MAX_REWRITES {
                        batch.abort(|| RecordOutcome::Busy);
                        return Ok(None);
                    }
                }
                WriteResult::Rejected(BatchRejection::Contended) if batch.len() > 1 => {
                    return Ok(Some((batch, BatchRejection::Contended)));
                }
                WriteResult::Rejected(_) | WriteResult::Busy if may_retry => may_retry = false,
                WriteResult::Rejected(rejection) => return Ok(Some((batch, rejection))),
                WriteResult::Busy => {
                    batch.abort(|| RecordOutcome::Busy);
                    return Ok(None);
                }
                WriteResult::Superseded => return Err(SupersededError),
            }
        }
    }

    async fn try_write(&mut self, records: &[Record]) -> WriteResult {
        self.batch_number += 1;
        check_records(records);
        let written = self.commit(records).await;
        match written {
            Ok(verdicts) => {
                check_verdicts(records, &verdicts);
                if self.metrics.record_written() {
                    info!(lane = self.number, "batches are written again");
                }
                WriteResult::Written(verdicts)
            }
            Err(CommitError::Poisoned(reason)) => {
                error!(
                    lane = self.number,
                    batch.records = records.len(),
                    error.message = reason,
                    "batch rejected"
                );
                WriteResult::Rejected(BatchRejection::Poisoned)
            }
            Err(CommitError::Contended(reason)) => {
                warn!(
                    lane = self.number,
                    batch.records = records.len(),
                    error.message = reason,
                    "batch conflicted with another transaction"
                );
                WriteResult::Rejected(BatchRejection::Contended)
            }
            Err(CommitError::Busy(reason)) => {
                self.metrics.record_busy();
                warn!(
                    lane = self.number,
                    batch.records = records.len(),
                    error.message = reason,
                    "batch not written"
                );
                WriteResult::Busy
            }
            Err(unresolved @ (CommitError::Fenced | CommitError::Unknown(_))) => {
                warn!(
                    lane = self.number,
                    batch.records = records.len(),
                    error.message = %unresolved,
                    "batch outcome unknown; recovering the lane"
                );
                self.recover(records).await
            }
        }
    }

    /// Sends a batch, settles the previous one, and waits for the verdicts.
    async fn commit(&mut self, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        let previous = self.committed.take();
        let _timer = self.metrics.start_commit_timer();
        let mut commit = self.store.commit(self.batch_number, records);
        let first_poll = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
        if let Some(previous) = previous {
            previous.settle(&self.commit_notifier, &mut self.order_log);
        }
        match first_poll {
            Poll::Ready(written) => written,
            Poll::Pending => commit.await,
        }
    }

    /// Resolves a batch with an unknown outcome; retries until the store is available.
    async fn recover(&mut self, records: &[Record]) -> WriteResult {
        self.metrics.start_recovery();
        let mut backoff = recovery_backoff();
        let outcome = loop {
            match self.store.recover(self.batch_number).await {
                Ok(outcome) => break outcome,
                Err(RecoverError::Superseded) => return WriteResult::Superseded,
                Err(RecoverError::Unavailable(reason)) => {
                    warn!(lane = self.number, error.message = %reason, "cannot recover the lane; retrying");
                    sleep(&mut backoff).await;
                }
            }
        };
        let attempt = match outcome {
            BatchOutcome::Committed => WriteResult::Written(self.load_verdicts(records, &mut backoff).await),
            BatchOutcome::NotWritten => WriteResult::NotWritten,
        };
        info!(lane = self.number, batch.outcome = ?outcome, batch.records = records.len(), "batch outcome resolved");
        self.metrics.finish_recovery();
        attempt
    }

    async fn load_verdicts(&mut self, records: &[Record], backoff: &mut ExponentialBackoff) -> Vec<Verdict> {
        loop {
            match self.store.load_verdicts(records).await {
                Ok(verdicts) => return verdicts,
                Err(reason) => {
                    warn!(lane = self.number, error.message = %reason, "cannot read verdicts; retrying");
                    sleep(backoff).await;
                }
            }
        }
    }
}

fn recovery_backoff() -> ExponentialBackoff {
    let (first, longest) = RECOVERY_BACKOFF;
    ExponentialBackoff {
        initial_interval: first,
        current_interval: first,
        max_interval: longest,
        max_elapsed_time: None,
        // No jitter: a node has few lanes, and tests stay deterministic.
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    }
}

async fn sleep(backoff: &mut ExponentialBackoff) {
    tokio::time::sleep(backoff.next_backoff().unwrap_or(RECOVERY_BACKOFF.1)).await;
}

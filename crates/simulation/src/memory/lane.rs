//! Lane over the in-memory database: commits batches with injected faults and recovers unknown outcomes.
//!
//! The lane knows no more than a client of Postgres would. It must recover after an unknown outcome.

use vouchsafe_actors::journal::{MAX_BATCH_RECORDS, MAX_BATCH_VOUCHERS};
use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, LaneStore, RecoverError, StoreFuture};
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::store_error::{CommitError, Unavailable};

use super::MemoryDatabase;
use super::batch::{BatchHeader, SentBatch};
use super::commit::execute;
use super::fault::{Fault, FaultKind};
use super::guard::Guard;
use super::lock::{Lock, LockMode};
use super::state::State;
use super::tables::{DbTime, KeyRow, LaneId, Owner};
use super::transaction::Transaction;

/// A lane of one incarnation of a node.
pub(super) struct MemoryLane {
    db: MemoryDatabase,
    owner: Owner,
    id: LaneId,
    generation: i64,
    /// Number of the last batch; the next number is greater.
    last_batch: i64,
    must_recover: bool,
}

impl MemoryLane {
    pub(super) async fn open(db: &MemoryDatabase, by: &Owner, lane: u16) -> Result<Self, RecoverError> {
        let id = LaneId {
            node: by.node.clone(),
            lane,
        };
        let (generation, _) = fence_lane(db, by, &id, Some(0)).await?;
        deliver_delayed_batches(db, &id).await;
        Ok(Self {
            db: db.clone(),
            owner: by.clone(),
            id,
            generation,
            last_batch: 0,
            must_recover: false,
        })
    }

    async fn send(&mut self, batch: i64, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        assert!(
            !self.must_recover,
            "a lane recovers before it sends another batch after an unknown outcome"
        );
        assert!(
            batch > self.last_batch,
            "batch numbers increase: got {batch} after {}",
            self.last_batch
        );
        assert!(
            records.len() <= MAX_BATCH_RECORDS
                && records.iter().map(Record::voucher_count).sum::<usize>() <= MAX_BATCH_VOUCHERS,
            "a batch exceeds its limits"
        );
        self.last_batch = batch;
        deliver_delayed_batches(&self.db, &self.id).await;
        let header = BatchHeader {
            owner: self.owner.clone(),
            lane: self.id.clone(),
            generation: self.generation,
            batch,
        };
        let fault = self.db.faults().next_commit_fault(&self.owner.node);
        let outcome = execute_with_fault(&self.db, header, records, fault).await;
        self.must_recover = matches!(outcome, Err(CommitError::Unknown(_) | CommitError::Fenced));
        outcome
    }

    async fn recover_batch(&mut self, batch: i64) -> Result<BatchOutcome, RecoverError> {
        let (generation, written) = fence_lane(&self.db, &self.owner, &self.id, None).await?;
        self.generation = generation;
        self.must_recover = false;
        Ok(if written == batch {
            BatchOutcome::Committed
        } else {
            BatchOutcome::NotWritten
        })
    }
}

impl LaneStore for MemoryLane {
    fn commit<'a>(
        &'a mut self,
        batch: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        Box::pin(self.send(batch, records))
    }

    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>> {
        Box::pin(self.recover_batch(batch))
    }

    fn load_verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            let now = self.db.now();
            let read = |state: &mut State| {
                let verdicts = records.iter().map(|record| read_verdict(state, record, now));
                verdicts.collect()
            };
            Ok(self.db.with(read))
        })
    }
}

/// Runs the statement with the fault, if any.
async fn execute_with_fault(
    db: &MemoryDatabase,
    header: BatchHeader,
    records: &[Record],
    fault: Option<Fault>,
) -> Result<Vec<Verdict>, CommitError> {
    let lost = |how: &str| Err(CommitError::Unknown(how.to_owned()));
    let now = std::time::Duration::ZERO;
    match fault {
        None => execute(db, &header, records, now).await,
        Some(Fault::Slow(span)) => execute(db, &header, records, span).await,
        Some(Fault::Busy) => Err(CommitError::Busy("no space left on device".to_owned())),
        Some(Fault::Contended) => Err(CommitError::Contended("deadlock detected".to_owned())),
        Some(Fault::Poisoned) => Err(CommitError::Poisoned("invalid input".to_owned())),
        Some(Fault::ResponseLost) => {
            // The response is lost, whatever it was.
            let _ = execute(db, &header, records, now).await;
            lost("the connection was closed before the response")
        }
        Some(Fault::NeverSent) => lost("the connection was closed"),
        Some(Fault::Detached(delay)) => {
            run_detached(
                db.clone(),
                SentBatch {
                    header,
                    records: records.to_vec(),
                },
                delay,
            );
            lost("the connection was closed while the statement ran")
        }
        Some(Fault::Delayed) => {
            db.faults().delayed.push_back(SentBatch {
                header,
                records: records.to_vec(),
            });
            lost("the connection hung")
        }
    }
}

/// Continues a statement on the server after its connection was lost.
fn run_detached(db: MemoryDatabase, sent: SentBatch, delay: std::time::Duration) {
    // Not joined, as a client cannot join a Postgres backend: that makes the outcome unknown.
    #[allow(clippy::disallowed_methods)]
    drop(tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        let _ = execute(&db, &sent.header, &sent.records, std::time::Duration::ZERO).await;
    }));
}

/// Increments the lane's generation when no batch runs in it; returns the new generation and the last
/// committed batch.
async fn fence_lane(
    db: &MemoryDatabase,
    by: &Owner,
    id: &LaneId,
    first_batch: Option<i64>,
) -> Result<(i64, i64), RecoverError> {
    if db.faults().should_fail(&by.node, FaultKind::RecoveryError) {
        return Err(Unavailable("the connection was refused".to_owned()).into());
    }
    let mut tx = Transaction::begin(db);
    tx.lock(Lock::Lane(id.clone()), LockMode::Exclusive)
        .await
        .map_err(|_| Unavailable("lock timeout".to_owned()))?;
    if tx.read(|state| state.has_guard(Guard::Incarnation) && !state.tables.is_current(by)) {
        return Err(RecoverError::Superseded);
    }
    Ok(tx.commit(|state| {
        let row = state.tables.lanes.entry(id.clone()).or_default();
        row.generation += 1;
        row.batch = first_batch.unwrap_or(row.batch);
        (row.generation, row.batch)
    }))
}

/// Delivers delayed batches after the lane was recovered; the fence must reject them all.
async fn deliver_delayed_batches(db: &MemoryDatabase, id: &LaneId) {
    for sent in db.take_delayed_batches(|sent| sent.header.lane == *id) {
        let outcome = execute(db, &sent.header, &sent.records, std::time::Duration::ZERO).await;
        assert_eq!(
            outcome,
            Err(CommitError::Fenced),
            "a statement of an older generation of its lane was not fenced"
        );
    }
}

/// The verdict of a record, read from its key. An expired key says nothing about the record.
fn read_verdict(state: &State, record: &Record, now: DbTime) -> Verdict {
    let claim = &record.claim;
    let own = StoredResponse {
        fingerprint: claim.fingerprint,
        response: claim.response.clone(),
    };
    let unexpired = |row: &&KeyRow| row.expires_at.is_none_or(|at| at > now);
    match state.tables.keys.get(&claim.key).filter(unexpired) {
        Some(row) if row.known == own => Verdict::Committed(
            record
                .wallet()
                .filter(|_| record.movement.is_some())
                .map(|wallet| state.tables.newest(&wallet)),
        ),
        Some(row) => Verdict::KeyKnown(row.known.clone()),
        None => Verdict::Stale(StaleReason::Unclear),
    }
}

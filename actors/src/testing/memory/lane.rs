//! A lane over the database in memory: sends batches, loses some, and finds out what became of them.
//!
//! Rule: the lane knows no more than a client of Postgres would. After an outcome that it cannot know it must recover.

use super::MemoryDatabase;
use super::commit::{Header, Sent, execute};
use super::fault::{Fault, FaultKind};
use super::guard::Guard;
use super::lock::{Lock, Transaction};
use super::state::State;
use super::tables::{DbTime, KeyRow, LaneId, Owner};
use crate::domain::answer::KnownAnswer;
use crate::journal::{MAX_BATCH_RECORDS, MAX_BATCH_VOUCHERS, Record, Stale, Verdict};
use crate::store::{BatchFate, CommitError, LaneStore, RecoverError, StoreFuture, Unavailable};

/// One lane of one start of one node.
pub(super) struct MemoryLane {
    db: MemoryDatabase,
    by: Owner,
    id: LaneId,
    generation: i64,
    /// The number of the last batch; the next one is greater.
    last: i64,
    must_recover: bool,
}

impl MemoryLane {
    pub(super) async fn open(db: &MemoryDatabase, by: &Owner, lane: u16) -> Result<Self, RecoverError> {
        let id = LaneId {
            node: by.node.clone(),
            lane,
        };
        let (generation, _) = shut_out(db, by, &id, Some(0)).await?;
        deliver_late(db, &id).await;
        Ok(Self {
            db: db.clone(),
            by: by.clone(),
            id,
            generation,
            last: 0,
            must_recover: false,
        })
    }

    async fn send(&mut self, batch: i64, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        assert!(
            !self.must_recover,
            "a lane that does not know what became of its batch recovers first"
        );
        assert!(
            batch > self.last,
            "the number of a batch grows: {batch} came after {}",
            self.last
        );
        assert!(
            records.len() <= MAX_BATCH_RECORDS
                && records.iter().map(Record::vouchers).sum::<usize>() <= MAX_BATCH_VOUCHERS,
            "a batch is bounded"
        );
        self.last = batch;
        deliver_late(&self.db, &self.id).await;
        let header = Header {
            by: self.by.clone(),
            lane: self.id.clone(),
            generation: self.generation,
            batch,
        };
        let fault = self.db.faults().draw_commit(&self.by.node);
        let outcome = befall(&self.db, header, records, fault).await;
        self.must_recover = matches!(outcome, Err(CommitError::Unknown(_) | CommitError::Fenced));
        outcome
    }

    async fn find_out(&mut self, batch: i64) -> Result<BatchFate, RecoverError> {
        let (generation, written) = shut_out(&self.db, &self.by, &self.id, None).await?;
        self.generation = generation;
        self.must_recover = false;
        Ok(if written == batch {
            BatchFate::Committed
        } else {
            BatchFate::NotWritten
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

    fn recover(&mut self, batch: i64) -> StoreFuture<'_, Result<BatchFate, RecoverError>> {
        Box::pin(self.find_out(batch))
    }

    fn verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(async move {
            self.db.reach(&self.by.node).await?;
            let now = self.db.now();
            let read = |state: &mut State| {
                let verdicts = records.iter().map(|record| read_verdict(state, record, now));
                verdicts.collect()
            };
            Ok(self.db.with(read))
        })
    }
}

/// Runs the statement, or lets befall it what the fault says.
async fn befall(
    db: &MemoryDatabase,
    header: Header,
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
        Some(Fault::AnswerLost) => {
            // Whatever it was: nobody hears it.
            let _ = execute(db, &header, records, now).await;
            lost("the connection was closed before the answer")
        }
        Some(Fault::NeverSent) => lost("the connection was closed"),
        Some(Fault::Adrift(delay)) => {
            run_adrift(
                db.clone(),
                Sent {
                    header,
                    records: records.to_vec(),
                },
                delay,
            );
            lost("the connection was closed while the statement ran")
        }
        Some(Fault::Late) => {
            db.faults().late.push_back(Sent {
                header,
                records: records.to_vec(),
            });
            lost("the connection hung")
        }
    }
}

/// The server's side of a connection that was lost: it runs on by itself.
fn run_adrift(db: MemoryDatabase, sent: Sent, delay: std::time::Duration) {
    // Nobody waits for it, as nobody waits for a backend of Postgres: that is what makes its outcome unknown.
    #[allow(clippy::disallowed_methods)]
    drop(tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        let _ = execute(&db, &sent.header, &sent.records, std::time::Duration::ZERO).await;
    }));
}

/// Bumps the lane's generation, once nothing runs in it: the new generation, and the last batch that was written.
async fn shut_out(
    db: &MemoryDatabase,
    by: &Owner,
    id: &LaneId,
    first_batch: Option<i64>,
) -> Result<(i64, i64), RecoverError> {
    if db.faults().draw(&by.node, FaultKind::RecoverFails) {
        return Err(Unavailable("the connection was refused".to_owned()).into());
    }
    let mut tx = Transaction::begin(db);
    tx.lock(Lock::Lane(id.clone()))
        .await
        .map_err(|_| Unavailable("lock timeout".to_owned()))?;
    if tx.read(|state| state.verifies(Guard::Incarnation) && !state.tables.is_current(by)) {
        return Err(RecoverError::Superseded);
    }
    Ok(tx.commit(|state| {
        let row = state.tables.lanes.entry(id.clone()).or_default();
        row.generation += 1;
        row.batch = first_batch.unwrap_or(row.batch);
        (row.generation, row.batch)
    }))
}

/// What was late arrives, after the lane was taken up again: the fence stands before all of it.
async fn deliver_late(db: &MemoryDatabase, id: &LaneId) {
    for sent in db.take_late(|sent| sent.header.lane == *id) {
        let outcome = execute(db, &sent.header, &sent.records, std::time::Duration::ZERO).await;
        assert_eq!(
            outcome,
            Err(CommitError::Fenced),
            "a statement of an older generation of its lane was let through"
        );
    }
}

/// The verdict of a record by what its key says, if its time is not over: an expired one says nothing of this record.
fn read_verdict(state: &State, record: &Record, now: DbTime) -> Verdict {
    let claim = &record.claim;
    let own = KnownAnswer {
        fingerprint: claim.fingerprint,
        answer: claim.answer.clone(),
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
        None => Verdict::Stale(Stale::Unclear),
    }
}

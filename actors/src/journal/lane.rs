//! One lane: takes whatever has gathered while its last commit was under way, and writes it as one transaction.
//!
//! | after | in memory | on disk |
//! |---|---|---|
//! | gather | records with their holds, in the lane's hands | nothing |
//! | commit | the same | all of the batch's records, or none |
//! | settle | holds settled or released, waiters answered | the same |
//!
//! Rule: a lane is a task of its own and is never cancelled. A batch whose outcome is unknown is settled by the fence
//! before anything else is written; until then its holds stay held and its keys stay taken.

use std::sync::Arc;
use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{error, info, warn};

use super::entry::{Entry, Open, Outcome};
use super::meter::LaneMeter;
use super::record::{Record, Verdict};
use crate::store::{BatchFate, CommitError, LaneStore, RecoverError};

/// Most records of a batch. Beyond some 500 the time per record no longer falls (it is flat from 256), and latency grows.
pub const MAX_BATCH_RECORDS: usize = 512;

/// Most voucher rows of a batch: bounds the statement's memory and its time where orders are large.
pub const MAX_BATCH_VOUCHERS: usize = 4_096;

/// How often a batch is written while its connection breaks each time and the fence says "not written".
const MAX_REWRITES: u32 = 3;

/// First and longest pause between attempts to reach the store again.
const RECOVERY_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The records of one commit, with what waits for each.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    open: Vec<Open>,
    vouchers: usize,
}

impl Batch {
    fn push(&mut self, entry: Entry) {
        self.vouchers += entry.record.vouchers();
        self.records.push(entry.record);
        self.open.push(entry.open);
    }

    fn len(&self) -> usize {
        self.records.len()
    }

    fn has_room_for(&self, entry: &Entry) -> bool {
        let vouchers = self.vouchers + entry.record.vouchers();
        self.records.is_empty() || vouchers <= MAX_BATCH_VOUCHERS
    }

    fn halves(mut self) -> [Self; 2] {
        let middle = self.len() / 2;
        let (records, open) = (self.records.split_off(middle), self.open.split_off(middle));
        [
            self,
            Self {
                records,
                open,
                vouchers: 0,
            },
        ]
    }

    /// Drops what nobody waits for: it is certainly not written, and its client was told to come again.
    fn forget_abandoned(self) -> Self {
        let mut kept = Self::default();
        for (record, open) in self.records.into_iter().zip(self.open) {
            if open.abandoned() {
                open.give_up(Outcome::Busy);
            } else {
                kept.push(Entry { record, open });
            }
        }
        kept
    }

    fn settle(self, verdicts: Vec<Verdict>) {
        assert_eq!(
            self.len(),
            verdicts.len(),
            "the store gives a verdict for each record"
        );
        for ((record, open), verdict) in self.records.into_iter().zip(self.open).zip(verdicts) {
            open.settle(record, verdict);
        }
    }

    fn give_up(self, outcome: fn() -> Outcome) {
        self.open.into_iter().for_each(|open| open.give_up(outcome()));
    }
}

/// How an attempt to write a batch ended.
enum Attempt {
    Written(Vec<Verdict>),
    Poisoned,
    Busy,
    /// Certainly not written: the connection was lost before.
    Lost,
    Superseded,
}

/// A later start of this node has taken over: the lane writes nothing more.
#[derive(Debug)]
pub(super) struct Superseded;

/// A lane, as its task owns it.
pub(super) struct Lane {
    number: u16,
    store: Box<dyn LaneStore>,
    inbox: UnboundedReceiver<Entry>,
    /// Taken from the inbox, but the batch before it had no room.
    carried: Option<Entry>,
    batch: i64,
    meter: Arc<LaneMeter>,
}

impl Lane {
    pub(super) fn new(
        number: u16,
        store: Box<dyn LaneStore>,
        inbox: UnboundedReceiver<Entry>,
        meter: Arc<LaneMeter>,
    ) -> Self {
        Self {
            number,
            store,
            inbox,
            carried: None,
            batch: 0,
            meter,
        }
    }

    /// Writes batches until the journal is closed.
    pub(super) async fn run(mut self) -> Result<(), Superseded> {
        while let Some(batch) = self.gather().await {
            self.meter.batch_begins(batch.len());
            self.write(batch).await?;
        }
        Ok(())
    }

    async fn gather(&mut self) -> Option<Batch> {
        let first = match self.carried.take() {
            Some(entry) => entry,
            None => self.inbox.recv().await?,
        };
        let mut batch = Batch::default();
        batch.push(first);
        while batch.len() < MAX_BATCH_RECORDS {
            match self.inbox.try_recv() {
                Ok(entry) if batch.has_room_for(&entry) => batch.push(entry),
                Ok(entry) => {
                    self.carried = Some(entry);
                    break;
                }
                Err(_) => break,
            }
        }
        Some(batch)
    }

    /// Writes a batch whole if that is possible: once more when it fails, then in halves, until what cannot be written
    /// stands by itself.
    async fn write(&mut self, batch: Batch) -> Result<(), Superseded> {
        let mut to_write = vec![(batch, true)];
        while let Some((batch, once_more)) = to_write.pop() {
            let mut rewrites = 0;
            let mut batch = batch;
            loop {
                match self.attempt(&batch.records).await {
                    Attempt::Written(verdicts) => {
                        self.meter.written(&verdicts);
                        batch.settle(verdicts);
                        break;
                    }
                    Attempt::Lost => {
                        rewrites += 1;
                        batch = batch.forget_abandoned();
                        if batch.len() == 0 {
                            break;
                        }
                        if rewrites == MAX_REWRITES {
                            batch.give_up(|| Outcome::Busy);
                            break;
                        }
                    }
                    Attempt::Poisoned | Attempt::Busy if once_more && rewrites == 0 => rewrites += 1,
                    Attempt::Poisoned if batch.len() > 1 => {
                        let [earlier, later] = batch.halves();
                        to_write.extend([(later, false), (earlier, false)]);
                        break;
                    }
                    Attempt::Poisoned => {
                        self.meter.poisoned();
                        batch.give_up(|| Outcome::Poisoned);
                        break;
                    }
                    Attempt::Busy => {
                        batch.give_up(|| Outcome::Busy);
                        break;
                    }
                    Attempt::Superseded => return Err(Superseded),
                }
            }
        }
        Ok(())
    }

    async fn attempt(&mut self, records: &[Record]) -> Attempt {
        self.batch += 1;
        let timer = self.meter.commit_begins();
        let written = self.store.commit(self.batch, records).await;
        drop(timer);
        match written {
            Ok(verdicts) => Attempt::Written(verdicts),
            Err(CommitError::Poisoned(reason)) => {
                error!(
                    lane = self.number,
                    batch.records = records.len(),
                    reason,
                    "a batch was refused"
                );
                Attempt::Poisoned
            }
            Err(CommitError::Busy(reason)) => {
                warn!(
                    lane = self.number,
                    batch.records = records.len(),
                    reason,
                    "a batch could not be written now"
                );
                Attempt::Busy
            }
            Err(unsettled @ (CommitError::Fenced | CommitError::Unknown(_))) => {
                warn!(lane = self.number, batch.records = records.len(), reason = %unsettled, "a batch must be settled");
                self.recover(records).await
            }
        }
    }

    /// Settles a batch whose outcome is unknown. Takes as long as the store takes to answer.
    async fn recover(&mut self, records: &[Record]) -> Attempt {
        self.meter.recovery_begins();
        let mut pause = recovery_pauses();
        let fate = loop {
            match self.store.recover(self.batch).await {
                Ok(fate) => break fate,
                Err(RecoverError::Superseded) => return Attempt::Superseded,
                Err(RecoverError::Unavailable(reason)) => {
                    warn!(lane = self.number, %reason, "the lane cannot be taken up yet");
                    sleep(&mut pause).await;
                }
            }
        };
        let attempt = match fate {
            BatchFate::Committed => Attempt::Written(self.verdicts(records, &mut pause).await),
            BatchFate::NotWritten => Attempt::Lost,
        };
        info!(lane = self.number, batch.fate = ?fate, batch.records = records.len(), "a batch was settled");
        self.meter.recovery_ends();
        attempt
    }

    async fn verdicts(&mut self, records: &[Record], pause: &mut ExponentialBackoff) -> Vec<Verdict> {
        loop {
            match self.store.verdicts(records).await {
                Ok(verdicts) => return verdicts,
                Err(reason) => {
                    warn!(lane = self.number, %reason, "the verdicts cannot be read yet");
                    sleep(pause).await;
                }
            }
        }
    }
}

fn recovery_pauses() -> ExponentialBackoff {
    let (first, longest) = RECOVERY_PAUSE;
    ExponentialBackoff {
        initial_interval: first,
        current_interval: first,
        max_interval: longest,
        max_elapsed_time: None,
        // Without chance: a node has a few lanes alone, and a test repeats what it saw.
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    }
}

async fn sleep(pause: &mut ExponentialBackoff) {
    tokio::time::sleep(pause.next_backoff().unwrap_or(RECOVERY_PAUSE.1)).await;
}

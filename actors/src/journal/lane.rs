//! One lane: takes whatever has gathered while its last commit was under way, and writes it as one transaction.
//!
//! | after | in memory | on disk |
//! |---|---|---|
//! | gather | records with their holds, in the lane's hands | nothing |
//! | commit | the same | all of the batch's records, or none |
//! | settle | holds settled or released, waiters answered | the same |
//!
//! A batch is settled while the server works on the next one: what gathered meanwhile is sent first, since the server has
//! nothing to do until then.
//!
//! Rule: a lane is a task of its own and is never cancelled. A batch whose outcome is unknown is settled by the fence
//! before anything else is written; until then its holds stay held and its keys stay taken.

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
use super::entry::{Entry, Outcome};
use super::meter::LaneMeter;
use super::record::{Record, Verdict};
use crate::delivery::bell::Bell;
use crate::store::{BatchFate, CommitError, LaneStore, RecoverError};

/// How often a batch is written while its connection breaks each time and the fence says "not written".
const MAX_REWRITES: u32 = 3;

/// First and longest pause between attempts to reach the store again.
const RECOVERY_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// For how long the parts of a batch that collided with somebody else are told apart. A part that collides takes as long as
/// the store's lock timeout, 2 s: so it ends within 9 s, and flows wait for 10. What is left is not written, and its
/// clients come again.
const CONTENTION_BUDGET: Duration = Duration::from_secs(5);

/// A batch that is durable, and that nobody has heard of yet.
struct Written {
    batch: Batch,
    number: i64,
    verdicts: Vec<Verdict>,
}

impl Written {
    /// Says whose events are durable now, and each record's verdict.
    fn settle(self, bell: &Bell) {
        bell.ring(self.batch.told(&self.verdicts));
        self.batch.settle(self.number, self.verdicts);
    }
}

/// How an attempt to write a batch ended.
enum Attempt {
    Written(Vec<Verdict>),
    Spoiled(Spoiled),
    Busy,
    /// Certainly not written: the connection was lost before.
    Lost,
    Superseded,
}

/// Why a batch was certainly not written, though parts of it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoiled {
    /// Something in it can never be written.
    Poisoned,
    /// Something in it collided with somebody else.
    Contended,
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
    /// Settled once the next batch is on its way, and before anything is waited for.
    written: Option<Written>,
    batch: i64,
    meter: Arc<LaneMeter>,
    bell: Arc<Bell>,
}

impl Lane {
    pub(super) fn new(
        number: u16,
        store: Box<dyn LaneStore>,
        inbox: UnboundedReceiver<Entry>,
        meter: Arc<LaneMeter>,
        bell: Arc<Bell>,
    ) -> Self {
        Self {
            number,
            store,
            inbox,
            carried: None,
            written: None,
            batch: 0,
            meter,
            bell,
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
        let ready = self.carried.take().or_else(|| self.inbox.try_recv().ok());
        let first = match ready {
            Some(entry) => entry,
            None => {
                self.settle();
                self.inbox.recv().await?
            }
        };
        let mut batch = Batch::default();
        batch.push(first);
        while !batch.is_full() {
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

    fn settle(&mut self) {
        if let Some(written) = self.written.take() {
            written.settle(&self.bell);
        }
    }

    /// Writes a batch whole if that is possible, and otherwise in ever smaller parts, until what spoils it stands by
    /// itself. Parts that were not tried yet come first: what can be written does not wait for what cannot.
    async fn write(&mut self, batch: Batch) -> Result<(), Superseded> {
        let mut parts = VecDeque::from([batch]);
        let (mut once_more, mut contended_until) = (true, None);
        while let Some(part) = parts.pop_front() {
            if contended_until.is_some_and(|end| Instant::now() >= end) {
                part.give_up(|| Outcome::Busy);
                continue;
            }
            let Some((part, spoiled)) = self.write_part(part, once_more).await? else {
                continue;
            };
            once_more = false;
            if spoiled == Spoiled::Contended {
                contended_until.get_or_insert_with(|| Instant::now() + CONTENTION_BUDGET);
            }
            match spoiled {
                _ if part.len() > 1 => parts.extend(part.parts()),
                Spoiled::Contended => part.give_up(|| Outcome::Busy),
                Spoiled::Poisoned => {
                    self.meter.poisoned();
                    part.give_up(|| Outcome::Poisoned);
                }
            }
        }
        Ok(())
    }

    /// Writes a batch as it is, or gives it back where parts of it may be written. `once_more`: what fails for certain is
    /// tried again, unless it waited for others, and can be tried in parts instead.
    async fn write_part(
        &mut self,
        mut batch: Batch,
        mut once_more: bool,
    ) -> Result<Option<(Batch, Spoiled)>, Superseded> {
        let mut lost = 0;
        loop {
            match self.attempt(batch.records()).instrument(batch.span()).await {
                Attempt::Written(verdicts) => {
                    self.meter.written(&verdicts);
                    self.written = Some(Written {
                        batch,
                        number: self.batch,
                        verdicts,
                    });
                    return Ok(None);
                }
                Attempt::Lost => {
                    lost += 1;
                    once_more = false;
                    batch = batch.forget_abandoned();
                    if batch.len() == 0 {
                        return Ok(None);
                    }
                    if lost == MAX_REWRITES {
                        batch.give_up(|| Outcome::Busy);
                        return Ok(None);
                    }
                }
                Attempt::Spoiled(Spoiled::Contended) if batch.len() > 1 => {
                    return Ok(Some((batch, Spoiled::Contended)));
                }
                Attempt::Spoiled(_) | Attempt::Busy if once_more => once_more = false,
                Attempt::Spoiled(spoiled) => return Ok(Some((batch, spoiled))),
                Attempt::Busy => {
                    batch.give_up(|| Outcome::Busy);
                    return Ok(None);
                }
                Attempt::Superseded => return Err(Superseded),
            }
        }
    }

    async fn attempt(&mut self, records: &[Record]) -> Attempt {
        self.batch += 1;
        let written = self.commit(records).await;
        match written {
            Ok(verdicts) => Attempt::Written(verdicts),
            Err(CommitError::Poisoned(reason)) => {
                error!(
                    lane = self.number,
                    batch.records = records.len(),
                    reason,
                    "a batch was refused"
                );
                Attempt::Spoiled(Spoiled::Poisoned)
            }
            Err(CommitError::Contended(reason)) => {
                warn!(
                    lane = self.number,
                    batch.records = records.len(),
                    reason,
                    "a batch collided with somebody else"
                );
                Attempt::Spoiled(Spoiled::Contended)
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

    /// Sends a batch, settles the one before it, and waits for the verdicts.
    async fn commit(&mut self, records: &[Record]) -> Result<Vec<Verdict>, CommitError> {
        let before = self.written.take();
        let _timer = self.meter.commit_begins();
        let mut commit = self.store.commit(self.batch, records);
        let at_once = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
        if let Some(before) = before {
            before.settle(&self.bell);
        }
        match at_once {
            Poll::Ready(written) => written,
            Poll::Pending => commit.await,
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

//! A lane as the journal drives it, with an eye on whether what it is told is true.

use vouchsafe_actors::journal::{Record, Verdict};
use vouchsafe_actors::store::{BatchFate, CommitError, LaneStore, RecoverError, Store};
use vouchsafe_actors::testing::MemoryStore;

use crate::{PAUSE, Walk};

/// Opens a lane, however often the store does not answer; `None` when this start was superseded.
pub(crate) async fn open(store: &MemoryStore, number: u16) -> Option<Box<dyn LaneStore>> {
    loop {
        match store.open_lane(number).await {
            Ok(lane) => return Some(lane),
            Err(RecoverError::Superseded) => return None,
            Err(RecoverError::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// A lane as the journal drives it.
pub(crate) struct Writer<'a> {
    pub(crate) walk: &'a Walk,
    pub(crate) lane: Box<dyn LaneStore>,
    pub(crate) batch: i64,
}

impl Writer<'_> {
    /// Writes a batch until something is certain about it; `None` when this node was superseded.
    pub(crate) async fn write(&mut self, records: &[Record]) -> Option<()> {
        while !self.attempt(records).await? {}
        Some(())
    }

    /// Whether the batch is over and done with.
    async fn attempt(&mut self, records: &[Record]) -> Option<bool> {
        self.batch += 1;
        let (verdicts, why) = match self.lane.commit(self.batch, records).await {
            Ok(verdicts) => (Some(verdicts), ""),
            Err(CommitError::Busy(_)) => (None, "busy"),
            Err(CommitError::Contended(_)) => (None, "contended"),
            Err(CommitError::Poisoned(_)) => (None, "poisoned"),
            Err(CommitError::Fenced | CommitError::Unknown(_)) => match self.recover().await? {
                BatchFate::Committed => (Some(self.verdicts(records).await), ""),
                BatchFate::NotWritten => (None, "not written"),
            },
        };
        match &verdicts {
            Some(verdicts) => self.told(records, verdicts),
            None => self.assert_absent(records, why),
        }
        Some(verdicts.is_some() || why == "poisoned")
    }

    async fn recover(&mut self) -> Option<BatchFate> {
        loop {
            match self.lane.recover(self.batch).await {
                Ok(fate) => return Some(fate),
                Err(RecoverError::Superseded) => return None,
                Err(RecoverError::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn verdicts(&mut self, records: &[Record]) -> Vec<Verdict> {
        loop {
            match self.lane.verdicts(records).await {
                Ok(verdicts) => return verdicts,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// A verdict is the truth: what committed is there, what did not is not.
    fn told(&self, records: &[Record], verdicts: &[Verdict]) {
        for (record, verdict) in records.iter().zip(verdicts) {
            let committed = matches!(verdict, Verdict::Committed(_));
            assert!(
                self.is_there(record).is_none_or(|there| there == committed),
                "{verdict:?}: {record:?}"
            );
        }
        self.walk.note(format!("batch {}: {verdicts:?}", self.batch));
    }

    fn assert_absent(&self, records: &[Record], why: &str) {
        let written = records.iter().find(|record| self.is_there(record) == Some(true));
        assert!(written.is_none(), "{why}, and yet there: {written:?}");
        self.walk.note(format!("batch {}: {why}", self.batch));
    }

    fn is_there(&self, record: &Record) -> Option<bool> {
        record
            .order
            .as_ref()
            .map(|order| self.walk.db.order(order.order_id).is_some())
    }
}

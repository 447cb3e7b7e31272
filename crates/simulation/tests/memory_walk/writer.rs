//! Lane driver that checks verdicts against the rows.

use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, CommitError, LaneStore, RecoverError, Store};
use vouchsafe_simulation::MemoryStore;

use crate::{PAUSE, Walk};

/// Opens a lane, retrying while the store is unavailable; `None` if this incarnation is superseded.
pub(crate) async fn open(store: &MemoryStore, number: u16) -> Option<Box<dyn LaneStore>> {
    loop {
        match store.open_lane(number).await {
            Ok(lane) => return Some(lane),
            Err(RecoverError::Superseded) => return None,
            Err(RecoverError::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Drives a lane as the journal does.
pub(crate) struct LaneWriter<'a> {
    pub(crate) walk: &'a Walk,
    pub(crate) lane: Box<dyn LaneStore>,
    pub(crate) batch: i64,
}

impl LaneWriter<'_> {
    /// Writes a batch until its outcome is final; `None` if this node is superseded.
    pub(crate) async fn write(&mut self, records: &[Record]) -> Option<()> {
        while !self.try_write(records).await? {}
        Some(())
    }

    /// Whether the batch's outcome is final.
    async fn try_write(&mut self, records: &[Record]) -> Option<bool> {
        self.batch += 1;
        let (verdicts, reason) = match self.lane.commit(self.batch, records).await {
            Ok(verdicts) => (Some(verdicts), ""),
            Err(CommitError::Busy(_)) => (None, "busy"),
            Err(CommitError::Contended(_)) => (None, "contended"),
            Err(CommitError::Poisoned(_)) => (None, "poisoned"),
            Err(CommitError::Fenced | CommitError::Unknown(_)) => match self.recover().await? {
                BatchOutcome::Committed => (Some(self.verdicts(records).await), ""),
                BatchOutcome::NotWritten => (None, "not written"),
            },
        };
        match &verdicts {
            Some(verdicts) => self.assert_verdicts(records, verdicts),
            None => self.assert_absent(records, reason),
        }
        Some(verdicts.is_some() || reason == "poisoned")
    }

    async fn recover(&mut self) -> Option<BatchOutcome> {
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
            match self.lane.load_verdicts(records).await {
                Ok(verdicts) => return verdicts,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Checks verdicts: committed records exist, others do not.
    fn assert_verdicts(&self, records: &[Record], verdicts: &[Verdict]) {
        for (record, verdict) in records.iter().zip(verdicts) {
            let committed = matches!(verdict, Verdict::Committed(_));
            assert!(
                self.is_there(record).is_none_or(|exists| exists == committed),
                "{verdict:?}: {record:?}"
            );
        }
        self.walk
            .record_step(format!("batch {}: {verdicts:?}", self.batch));
    }

    fn assert_absent(&self, records: &[Record], reason: &str) {
        let written = records.iter().find(|record| self.is_there(record) == Some(true));
        assert!(written.is_none(), "{reason}, but written: {written:?}");
        self.walk.record_step(format!("batch {}: {reason}", self.batch));
    }

    fn is_there(&self, record: &Record) -> Option<bool> {
        record
            .order
            .as_ref()
            .map(|order| self.walk.db.order(order.order_id).is_some())
    }
}

//! Client of a lane, which numbers its batches.

use std::sync::Arc;

use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, LaneStore, RecoverError, Store, StoreFuture};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::store_error::CommitError;

pub struct LaneClient {
    lane: Box<dyn LaneStore>,
    pub batch: i64,
}

impl LaneClient {
    pub async fn open(store: &Arc<dyn Store>, lane: u16) -> Self {
        Self {
            lane: store
                .open_lane(lane)
                .await
                .expect("the newest incarnation opens its lanes"),
            batch: 0,
        }
    }

    pub fn send<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        self.batch += 1;
        self.lane.commit(self.batch, records)
    }

    /// Sends a batch that must return verdicts.
    pub async fn commit(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.send(records).await.expect("the batch returns verdicts")
    }

    /// Sends a batch of one record that must return a verdict.
    pub async fn commit_one(&mut self, record: &Record) -> Verdict {
        let mut verdicts = self.commit(std::slice::from_ref(record)).await;
        assert_eq!(verdicts.len(), 1, "one verdict per record");
        verdicts.remove(0)
    }

    /// Sends a batch of one record that must commit, and returns its receipt.
    pub async fn must_commit(&mut self, record: &Record) -> Option<WalletState> {
        match self.commit_one(record).await {
            Verdict::Committed(receipt) => receipt,
            refused => panic!("expected a commit, got {refused:?}"),
        }
    }

    pub fn recover(&mut self) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>> {
        self.lane.recover(self.batch)
    }

    pub async fn read_verdicts(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.lane
            .load_verdicts(records)
            .await
            .expect("the store is readable")
    }
}

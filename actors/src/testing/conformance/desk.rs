//! Where a case sits: one node with a lane, one partner with money, and the few moves that every case makes.

use std::future::Future;
use std::sync::Arc;

use super::subject::{CommitFault, Subject};
use crate::domain::answer::KnownAnswer;
use crate::domain::ids::PartnerId;
use crate::domain::ledger::{Receipt, WalletKey};
use crate::domain::product::Sku;
use crate::domain::stock::{ClaimedStock, StockRequest};
use crate::domain::voucher::{Expiry, Shelved};
use crate::journal::{Record, Stale, Verdict};
use crate::store::{BatchFate, CommitError, LaneStore, RecoverError, Store, StoreFuture};
use crate::testing::build;
use crate::testing::facts::Holder;

/// What a desk's partner begins with, in minor units.
pub(super) const FUNDS: i64 = 10_000;

/// The face value of [`gift`].
pub(super) const PRICE: i64 = 1_000;

/// The verdicts of records whose wallet is short, or whose voucher is gone.
pub(super) const SHORT: Verdict = Verdict::Stale(Stale::Balance);
pub(super) const GONE: Verdict = Verdict::Stale(Stale::Stock);

/// The verdict of a record whose order, payout or retrieval is not what it was.
pub(super) const MOVED: Verdict = Verdict::Stale(Stale::Moved);

/// What most cases sell.
pub(super) fn gift() -> Sku {
    build::sku("gift", PRICE)
}

/// A lane with the number of its last batch.
pub(super) struct Line {
    lane: Box<dyn LaneStore>,
    pub(super) batch: i64,
}

impl Line {
    pub(super) async fn open(store: &Arc<dyn Store>, lane: u16) -> Self {
        Self {
            lane: store
                .open_lane(lane)
                .await
                .expect("a lane of the newest start opens"),
            batch: 0,
        }
    }

    /// Sends a batch under the next number.
    pub(super) fn send<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        self.batch += 1;
        self.lane.commit(self.batch, records)
    }

    /// Sends a batch that has verdicts.
    pub(super) async fn commit(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.send(records)
            .await
            .expect("nothing stands in the way of this batch")
    }

    /// Sends a record by itself that has a verdict.
    pub(super) async fn commit_one(&mut self, record: &Record) -> Verdict {
        let mut verdicts = self.commit(std::slice::from_ref(record)).await;
        assert_eq!(verdicts.len(), 1, "one verdict a record");
        verdicts.remove(0)
    }

    /// Sends a record by itself that commits, and returns its receipt.
    pub(super) async fn must_commit(&mut self, record: &Record) -> Option<Receipt> {
        match self.commit_one(record).await {
            Verdict::Committed(receipt) => receipt,
            refused => panic!("expected a commit, got {refused:?}"),
        }
    }

    /// Sends a batch whose outcome is lost.
    pub(super) async fn lose(&mut self, records: &[Record]) {
        let outcome = self.send(records).await;
        assert!(
            matches!(outcome, Err(CommitError::Unknown(_))),
            "nobody can know the outcome, got {outcome:?}"
        );
    }

    /// Asks what became of the last batch.
    pub(super) fn recover(&mut self) -> StoreFuture<'_, Result<BatchFate, RecoverError>> {
        self.lane.recover(self.batch)
    }

    /// The verdicts of the last batch, by reads.
    pub(super) async fn verdicts(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.lane.verdicts(records).await.expect("the store can be read")
    }
}

/// Node "one" with lane 0, and partner 1 with [`FUNDS`].
pub(super) struct Desk<'s, S> {
    pub(super) subject: &'s S,
    pub(super) store: Arc<dyn Store>,
    pub(super) line: Line,
    pub(super) partner: PartnerId,
}

/// The node of a desk.
pub(super) const NODE: &str = "one";

impl<'s, S: Subject> Desk<'s, S> {
    pub(super) async fn open(subject: &'s S) -> Self {
        let partner = build::partner(1);
        subject.add_partner(partner).await;
        subject.top_up(build::usd_of(partner), build::minor(FUNDS)).await;
        let store = subject.start_node(NODE).await;
        let line = Line::open(&store, 0).await;
        Self {
            subject,
            store,
            line,
            partner,
        }
    }

    /// The partner's wallet.
    pub(super) fn wallet(&self) -> WalletKey {
        build::usd_of(self.partner)
    }

    /// So many vouchers of [`gift`] in one chunk, claimed by this desk's node.
    pub(super) async fn stock(&self, count: i64) -> Vec<Shelved> {
        let expiries: Vec<_> = (0..count).map(build::day).collect();
        let vouchers = self.subject.add_chunk(&gift(), &expiries).await;
        let claimed = self.claim(&[]).await;
        assert!(
            claimed
                .chunks
                .iter()
                .any(|chunk| chunk.chunk_id == vouchers[0].chunk_id),
            "{claimed:?}"
        );
        vouchers
    }

    /// Claims all there is of [`gift`] but what is loaded.
    pub(super) async fn claim(&self, loaded: &[Shelved]) -> ClaimedStock {
        claim(&self.store, loaded).await
    }

    /// A delivered order of [`gift`].
    pub(super) fn order(&self, name: &str, vouchers: &[Shelved]) -> Record {
        build::delivered(self.partner, name, &[(&gift(), vouchers)])
    }

    /// An order over this amount that waits for the vendor.
    pub(super) fn debit(&self, name: &str, amount: i64) -> Record {
        build::pending(self.partner, name, amount)
    }

    /// Lets this befall the next commit, after one that prepares the lane.
    pub(super) async fn arm(&mut self, fault: CommitFault) {
        let warm_up = build::refusal(self.partner, "before the fault");
        self.line.must_commit(&warm_up).await;
        self.subject.fail_next_commit(NODE, fault).await;
    }

    /// Checks that nothing of the record is there.
    pub(super) async fn assert_absent(&self, record: &Record) {
        let subject = self.subject;
        assert_eq!(subject.kept(record.claim.key).await, None, "its key is free");
        if let Some(order) = &record.order {
            assert_eq!(
                subject.order(order.order_id).await,
                None,
                "its order is not there"
            );
            let holders = subject.allocations().await;
            let own: Vec<_> = holders
                .iter()
                .filter(|(_, h)| *h == Holder::Order(order.order_id))
                .collect();
            assert!(own.is_empty(), "it holds {own:?}");
            let told = subject.events(record.partner_id).await;
            assert!(
                told.iter().all(|row| row.bundle.order_id != order.order_id),
                "the partner was told: {told:?}"
            );
        }
        if let Some(movement) = &record.movement {
            let wallet = WalletKey {
                partner_id: record.partner_id,
                currency: movement.currency,
            };
            let ledger = subject.ledger(wallet).await;
            let booked = ledger
                .iter()
                .any(|entry| entry.movement.transaction_id == movement.transaction_id);
            assert!(!booked, "its money moved: {ledger:?}");
        }
    }

    /// Checks that all of the record is there.
    pub(super) async fn assert_present(&self, record: &Record) {
        let subject = self.subject;
        let kept = subject.kept(record.claim.key).await.expect("its key is known");
        assert_eq!(kept.known, own_answer(record), "under its key stands its answer");
        if let Some(order) = &record.order {
            assert_eq!(
                subject.order(order.order_id).await.as_ref(),
                Some(order),
                "its order reads back whole"
            );
            let holders = subject.allocations().await;
            let mine = |stock_id| holders.contains(&(stock_id, Holder::Order(order.order_id)));
            assert!(
                order.vouchers.iter().all(|a| mine(a.voucher.stock_id)),
                "its vouchers are its own: {holders:?}"
            );
        }
        if let Some(movement) = &record.movement {
            let wallet = WalletKey {
                partner_id: record.partner_id,
                currency: movement.currency,
            };
            let ledger = subject.ledger(wallet).await;
            assert!(
                ledger.iter().any(|entry| entry.movement == *movement),
                "its money moved: {ledger:?}"
            );
        }
        let told = subject.events(record.partner_id).await;
        assert!(
            record
                .events
                .iter()
                .all(|events| told.iter().any(|row| row.bundle == *events)),
            "told: {told:?}"
        );
    }
}

/// Claims all there is of [`gift`] but what is loaded.
pub(super) async fn claim(store: &Arc<dyn Store>, loaded: &[Shelved]) -> ClaimedStock {
    claim_of(store, request(loaded, 1_000)).await
}

/// Claims stock, and sorts what came: a shelf puts it in order, so the answer need not be.
pub(super) async fn claim_of(store: &Arc<dyn Store>, request: StockRequest) -> ClaimedStock {
    let mut claimed = store
        .claim_stock(request)
        .await
        .expect("the store can be reached");
    claimed.chunks.sort_by_key(|chunk| chunk.chunk_id);
    let vouchers = claimed.chunks.iter_mut().map(|chunk| &mut chunk.vouchers);
    vouchers.for_each(|vouchers| vouchers.sort_by_key(|(stock_id, _)| *stock_id));
    claimed
}

/// Asks for [`gift`].
pub(super) fn request(loaded: &[Shelved], enough: usize) -> StockRequest {
    let loaded = loaded.iter().map(|voucher| voucher.chunk_id).collect();
    StockRequest {
        sku: gift(),
        loaded,
        enough,
        not_before: build::day(0),
    }
}

/// A chunk's expiries: so many vouchers that end on one day.
pub(super) fn ending_on(day: i64, count: usize) -> Vec<Expiry> {
    vec![build::day(day); count]
}

/// What the record itself keeps under its key.
pub(super) fn own_answer(record: &Record) -> KnownAnswer {
    KnownAnswer {
        fingerprint: record.claim.fingerprint,
        answer: record.claim.answer.clone(),
    }
}

/// What somebody else answered, to another request.
pub(super) fn another_answer() -> KnownAnswer {
    KnownAnswer {
        fingerprint: build::fingerprint("another"),
        answer: build::answer("{\"by\": \"another\"}"),
    }
}

/// Checks that what is under way waits for a lock, so that so many transactions do.
pub(super) async fn must_wait<S: Subject, T: std::fmt::Debug>(
    subject: &S,
    transactions: usize,
    under_way: &mut (impl Future<Output = T> + Unpin),
) {
    tokio::select! {
        biased;
        outcome = under_way => panic!("it should have waited for a lock, but ended with {outcome:?}"),
        () = subject.until_waiting(transactions) => {}
    }
}

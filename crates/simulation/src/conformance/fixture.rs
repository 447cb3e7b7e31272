//! Fixture of a conformance case: one node with a lane, one partner with a balance, and common operations.

use std::future::Future;
use std::sync::Arc;

use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::{
    BatchOutcome, CommitError, LaneStore, RecoverError, Store, StoreFuture,
};
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::{WalletKey, WalletState};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::subject::{CommitFault, Subject};
use crate::build;
use crate::rows::Holder;

/// Initial balance of the fixture's partner, in minor units.
pub(super) const INITIAL_BALANCE: i64 = 10_000;

/// Face value of [`gift`], in minor units.
pub(super) const PRICE: i64 = 1_000;

pub(super) const STALE_BALANCE: Verdict = Verdict::Stale(StaleReason::Balance);
pub(super) const STALE_STOCK: Verdict = Verdict::Stale(StaleReason::Stock);

pub(super) const STALE_STATE: Verdict = Verdict::Stale(StaleReason::StateChanged);

pub(super) fn gift() -> Sku {
    build::sku("gift", PRICE)
}

pub(super) struct LaneClient {
    lane: Box<dyn LaneStore>,
    pub(super) batch: i64,
}

impl LaneClient {
    pub(super) async fn open(store: &Arc<dyn Store>, lane: u16) -> Self {
        Self {
            lane: store
                .open_lane(lane)
                .await
                .expect("the newest incarnation opens its lanes"),
            batch: 0,
        }
    }

    pub(super) fn send<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        self.batch += 1;
        self.lane.commit(self.batch, records)
    }

    /// Sends a batch that must return verdicts.
    pub(super) async fn commit(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.send(records).await.expect("the batch returns verdicts")
    }

    /// Sends a batch of one record that must return a verdict.
    pub(super) async fn commit_one(&mut self, record: &Record) -> Verdict {
        let mut verdicts = self.commit(std::slice::from_ref(record)).await;
        assert_eq!(verdicts.len(), 1, "one verdict per record");
        verdicts.remove(0)
    }

    /// Sends a batch of one record that must commit, and returns its receipt.
    pub(super) async fn must_commit(&mut self, record: &Record) -> Option<WalletState> {
        match self.commit_one(record).await {
            Verdict::Committed(receipt) => receipt,
            refused => panic!("expected a commit, got {refused:?}"),
        }
    }

    pub(super) async fn commit_with_unknown_outcome(&mut self, records: &[Record]) {
        let outcome = self.send(records).await;
        assert!(
            matches!(outcome, Err(CommitError::Unknown(_))),
            "expected an unknown outcome, got {outcome:?}"
        );
    }

    pub(super) fn recover(&mut self) -> StoreFuture<'_, Result<BatchOutcome, RecoverError>> {
        self.lane.recover(self.batch)
    }

    pub(super) async fn read_verdicts(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.lane
            .load_verdicts(records)
            .await
            .expect("the store is readable")
    }
}

/// Node "one" with lane 0, and partner 1 with the initial balance.
pub(super) struct Fixture<'s, S> {
    pub(super) subject: &'s S,
    pub(super) store: Arc<dyn Store>,
    pub(super) lane: LaneClient,
    pub(super) partner: PartnerId,
}

pub(super) const NODE: &str = "one";

impl<'s, S: Subject> Fixture<'s, S> {
    pub(super) async fn create(subject: &'s S) -> Self {
        let partner = build::partner(1);
        subject.add_partner(partner).await;
        subject
            .top_up(build::usd_wallet(partner), build::minor(INITIAL_BALANCE))
            .await;
        let store = subject.start_node(NODE).await;
        let lane = LaneClient::open(&store, 0).await;
        Self {
            subject,
            store,
            lane,
            partner,
        }
    }

    pub(super) fn wallet(&self) -> WalletKey {
        build::usd_wallet(self.partner)
    }

    /// Adds `count` vouchers of [`gift`] as one chunk, claimed by the fixture's node.
    pub(super) async fn add_stock(&self, count: i64) -> Vec<StockVoucher> {
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

    /// Claims all stock of [`gift`] except what is loaded.
    pub(super) async fn claim(&self, loaded: &[StockVoucher]) -> ClaimedStock {
        claim(&self.store, loaded).await
    }

    pub(super) fn delivered_order(&self, name: &str, vouchers: &[StockVoucher]) -> Record {
        build::delivered_order(self.partner, name, &[(&gift(), vouchers)])
    }

    pub(super) fn pending_order(&self, name: &str, amount: i64) -> Record {
        build::pending_order(self.partner, name, amount)
    }

    /// Injects a fault into the next commit, after a commit that prepares the lane's statement.
    pub(super) async fn inject_fault(&mut self, fault: CommitFault) {
        let warm_up = build::refusal(self.partner, "before the fault");
        self.lane.must_commit(&warm_up).await;
        self.subject.fail_next_commit(NODE, fault).await;
    }

    /// Checks that no row of the record exists.
    pub(super) async fn assert_absent(&self, record: &Record) {
        let subject = self.subject;
        assert_eq!(
            subject.stored_key(record.claim.key).await,
            None,
            "the key is free"
        );
        if let Some(order) = &record.order {
            assert_eq!(
                subject.order(order.order_id).await,
                None,
                "the order does not exist"
            );
            let holders = subject.allocations().await;
            let own: Vec<_> = holders
                .iter()
                .filter(|(_, h)| *h == Holder::Order(order.order_id))
                .collect();
            assert!(own.is_empty(), "the order holds {own:?}");
            let events = subject.events(record.partner_id).await;
            assert!(
                events.iter().all(|row| row.bundle.order_id != order.order_id),
                "events were written: {events:?}"
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
            assert!(!booked, "the movement is in the ledger: {ledger:?}");
        }
    }

    /// Checks that every row of the record exists.
    pub(super) async fn assert_present(&self, record: &Record) {
        let subject = self.subject;
        let stored = subject
            .stored_key(record.claim.key)
            .await
            .expect("the key is known");
        assert_eq!(stored.known, own_response(record), "the key stores its response");
        if let Some(order) = &record.order {
            assert_eq!(
                subject.order(order.order_id).await.as_ref(),
                Some(order),
                "the order reads back as written"
            );
            let holders = subject.allocations().await;
            let is_allocated = |stock_id| holders.contains(&(stock_id, Holder::Order(order.order_id)));
            assert!(
                order.vouchers.iter().all(|a| is_allocated(a.voucher.stock_id)),
                "the vouchers are allocated to the order: {holders:?}"
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
                "the movement is in the ledger: {ledger:?}"
            );
        }
        let events = subject.events(record.partner_id).await;
        assert!(
            record
                .events
                .iter()
                .all(|bundle| events.iter().any(|row| row.bundle == *bundle)),
            "events: {events:?}"
        );
    }
}

/// Claims all stock of [`gift`] except what is loaded.
pub(super) async fn claim(store: &Arc<dyn Store>, loaded: &[StockVoucher]) -> ClaimedStock {
    claim_sorted(store, stock_request(loaded, 1_000)).await
}

/// Claims stock and sorts the result, because the order of the response is unspecified.
pub(super) async fn claim_sorted(store: &Arc<dyn Store>, request: StockRequest) -> ClaimedStock {
    let mut claimed = store.claim_stock(request).await.expect("the store is reachable");
    claimed.chunks.sort_by_key(|chunk| chunk.chunk_id);
    let vouchers = claimed.chunks.iter_mut().map(|chunk| &mut chunk.vouchers);
    vouchers.for_each(|vouchers| vouchers.sort_by_key(|(stock_id, _)| *stock_id));
    claimed
}

pub(super) fn stock_request(loaded: &[StockVoucher], target_quantity: usize) -> StockRequest {
    let loaded_chunks = loaded.iter().map(|voucher| voucher.chunk_id).collect();
    StockRequest {
        sku: gift(),
        loaded_chunks,
        target_quantity,
        not_before: build::day(0),
    }
}

/// Expiries of a chunk of `count` vouchers that expire on one day.
pub(super) fn expiries_on(day: i64, count: usize) -> Vec<Expiry> {
    vec![build::day(day); count]
}

/// The response that the record stores under its key.
pub(super) fn own_response(record: &Record) -> StoredResponse {
    StoredResponse {
        fingerprint: record.claim.fingerprint,
        response: record.claim.response.clone(),
    }
}

/// A stored response to a different request.
pub(super) fn other_response() -> StoredResponse {
    StoredResponse {
        fingerprint: build::fingerprint("another"),
        response: build::response("{\"by\": \"another\"}"),
    }
}

/// Checks that the future blocks on a lock, as the last of `transactions` blocked transactions.
pub(super) async fn assert_blocked<S: Subject, T: std::fmt::Debug>(
    subject: &S,
    transactions: usize,
    blocked: &mut (impl Future<Output = T> + Unpin),
) {
    tokio::select! {
        biased;
        outcome = blocked => panic!("expected a lock wait, but it ended with {outcome:?}"),
        () = subject.wait_for_blocked(transactions) => {}
    }
}

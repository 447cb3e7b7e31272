//! Fixture of a conformance case: one node with a lane, one partner with a balance, and common operations.

use std::future::Future;
use std::sync::Arc;

use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::{WalletKey, WalletState};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::lane_client::LaneClient;
use super::subject::{CaseFixture, CommitFault, OtherTransaction, Subject};
use crate::build;
use crate::rows::Holder;

/// Initial balance of the fixture's partner, in minor units.
pub const INITIAL_BALANCE: i64 = 10_000;

/// Face value of [`gift`], in minor units.
pub const PRICE: i64 = 1_000;

pub const STALE_BALANCE: Verdict = Verdict::Stale(StaleReason::Balance);
pub const STALE_CAP: Verdict = Verdict::Stale(StaleReason::Cap);
pub const STALE_STOCK: Verdict = Verdict::Stale(StaleReason::Stock);

pub const STALE_STATE: Verdict = Verdict::Stale(StaleReason::StateChanged);

pub fn gift() -> Sku {
    build::sku("gift", PRICE)
}

/// Node "one" with lane 0, and partner 1 with the initial balance.
pub struct Fixture<'s, S> {
    pub subject: &'s S,
    pub store: Arc<dyn Store>,
    pub lane: LaneClient,
    pub partner: PartnerId,
}

pub const NODE: &str = "one";

impl<'s, S: Subject> CaseFixture<'s, S> for Fixture<'s, S> {
    async fn create(subject: &'s S) -> Self {
        let store = subject.start_node(NODE).await;
        let lane = LaneClient::open(&store, 0).await;
        let fixture = Self {
            subject,
            store,
            lane,
            partner: build::partner(1),
        };
        fixture.add_partner(1, INITIAL_BALANCE).await;
        fixture
    }
}

impl<S: Subject> Fixture<'_, S> {
    /// Adds a partner with this balance; without a wallet if it is 0.
    pub async fn add_partner(&self, number: u64, balance: i64) -> PartnerId {
        let partner = build::partner(number);
        self.subject.add_partner(partner).await;
        if balance > 0 {
            let wallet = build::usd_wallet(partner);
            self.subject.top_up(wallet, build::minor(balance)).await;
        }
        partner
    }

    /// Starts the node's next incarnation and opens its lane.
    pub async fn restart(&mut self) {
        self.store = self.subject.start_node(NODE).await;
        self.lane = LaneClient::open(&self.store, 0).await;
    }

    /// Opens a second lane of the node.
    pub async fn second_lane(&self) -> LaneClient {
        LaneClient::open(&self.store, 1).await
    }

    /// State of the partner's wallet.
    pub async fn wallet_state(&self) -> Option<WalletState> {
        self.wallet_state_of(self.wallet()).await
    }

    pub(super) async fn wallet_state_of(&self, wallet: WalletKey) -> Option<WalletState> {
        self.subject.wallet(wallet).await.map(|wallet| wallet.newest)
    }

    /// Balance of the partner's wallet, in minor units.
    pub(super) async fn balance(&self) -> i64 {
        self.wallet_state()
            .await
            .expect("the wallet exists")
            .balance
            .minor()
    }

    /// Amounts debited from the partner's wallet for undelivered order lines and unpaid payouts.
    pub(super) async fn pending(&self) -> (i64, i64) {
        let wallet = self
            .subject
            .wallet(self.wallet())
            .await
            .expect("the wallet exists");
        (wallet.pending_orders.minor(), wallet.pending_payouts.minor())
    }

    /// Number of entries in the ledger of the partner's wallet.
    pub(super) async fn count_entries(&self) -> usize {
        self.subject.ledger(self.wallet()).await.len()
    }

    /// Begins another transaction that has inserted the record's key, with another response.
    pub(super) async fn begin_insert_key_of(&self, record: &Record) -> S::Transaction {
        let (key, other) = (record.claim.key, other_response());
        self.subject.begin_insert_key(key, &other).await
    }

    /// Sends a batch and runs `meanwhile`, which ends the wait, once it is blocked on a lock; returns its
    /// verdicts.
    pub async fn commit_blocked(
        &mut self,
        records: &[Record],
        meanwhile: impl Future<Output = ()>,
    ) -> Vec<Verdict> {
        let mut blocked = self.lane.send(records);
        assert_blocked(self.subject, 1, &mut blocked).await;
        meanwhile.await;
        blocked.await.expect("the batch returns verdicts")
    }

    /// Sends a record that blocks on its key, and commits `competitor` in a second lane meanwhile.
    pub(super) async fn commit_overtaken(&mut self, record: &Record, competitor: &Record) -> Verdict {
        let mut second = self.second_lane().await;
        let transaction = self.begin_insert_key_of(record).await;
        let overtake = async {
            second.must_commit(competitor).await;
            transaction.rollback().await;
        };
        let mut verdicts = self.commit_blocked(std::slice::from_ref(record), overtake).await;
        verdicts.remove(0)
    }

    pub async fn commit(&mut self, records: &[Record]) -> Vec<Verdict> {
        self.lane.commit(records).await
    }

    pub async fn commit_one(&mut self, record: &Record) -> Verdict {
        self.lane.commit_one(record).await
    }

    pub async fn must_commit(&mut self, record: &Record) -> Option<WalletState> {
        self.lane.must_commit(record).await
    }

    /// Commits a record that must be rejected with this verdict and leave no rows.
    pub(super) async fn assert_rejected(&mut self, record: &Record, verdict: Verdict) {
        assert_eq!(self.commit_one(record).await, verdict);
        self.assert_absent(record).await;
    }

    /// Commits a record whose key is known with the response of another.
    pub(super) async fn assert_known(&mut self, record: &Record, known: &Record) {
        let verdict = self.commit_one(record).await;
        assert_eq!(verdict, Verdict::KeyKnown(own_response(known)));
    }

    /// Checks that the key stores the response of this record.
    pub(super) async fn assert_stored(&self, key: KeyHash, record: &Record) {
        assert_eq!(self.find_response(key).await, Some(own_response(record)));
    }

    /// Commits a batch whose outcome stays unknown because of the fault.
    pub(super) async fn commit_lost(&mut self, fault: CommitFault, records: &[Record]) {
        self.subject.fail_next_commit(NODE, fault).await;
        let outcome = self.lane.send(records).await;
        assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    }

    /// The stored response of a key.
    pub(super) async fn find_response(&self, key: KeyHash) -> Option<StoredResponse> {
        self.store
            .find_response(key)
            .await
            .expect("the store is readable")
    }

    pub fn wallet(&self) -> WalletKey {
        build::usd_wallet(self.partner)
    }

    /// Adds `count` vouchers of [`gift`] as one chunk, claimed by the fixture's node.
    pub async fn add_stock(&self, count: i64) -> Vec<StockVoucher> {
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
    pub async fn claim(&self, loaded: &[StockVoucher]) -> ClaimedStock {
        claim(&self.store, loaded).await
    }

    pub fn delivered_order(&self, name: &str, vouchers: &[StockVoucher]) -> Record {
        build::delivered_order(self.partner, name, &[(&gift(), vouchers)])
    }

    pub fn pending_order(&self, name: &str, amount: i64) -> Record {
        build::pending_order(self.partner, name, amount)
    }

    /// Commits a record, so that the lane's statement is prepared before a fault is injected.
    pub(super) async fn warm_up(&mut self) {
        let refusal = build::refusal(self.partner, "before the fault");
        self.must_commit(&refusal).await;
    }

    /// Checks that no row of the record exists.
    pub(super) async fn assert_absent(&self, record: &Record) {
        let subject = self.subject;
        let stored = subject.stored_key(record.claim.key).await;
        assert_eq!(stored, None, "the key is free");
        if let Some(order) = &record.order {
            let order_id = order.order_id;
            assert_eq!(subject.order(order_id).await, None, "the order does not exist");
            let holders = subject.allocations().await;
            let holds_none = holders
                .iter()
                .all(|(_, holder)| *holder != Holder::Order(order_id));
            assert!(holds_none, "the order holds vouchers: {holders:?}");
            let events = subject.events(record.partner_id).await;
            let has_none = events.iter().all(|row| row.bundle.order_id != order_id);
            assert!(has_none, "events were written: {events:?}");
        }
        if let Some((wallet, movement)) = record.wallet().zip(record.movement.as_ref()) {
            let ledger = subject.ledger(wallet).await;
            let mut ids = ledger.iter().map(|entry| entry.movement.transaction_id);
            let booked = ids.any(|id| id == movement.transaction_id);
            assert!(!booked, "the movement is in the ledger: {ledger:?}");
        }
    }

    /// Checks that every row of the record exists.
    pub(super) async fn assert_present(&self, record: &Record) {
        let subject = self.subject;
        let stored = subject.stored_key(record.claim.key).await;
        let known = stored.expect("the key is known").known;
        assert_eq!(known, own_response(record), "the key stores its response");
        if let Some(order) = &record.order {
            let stored = subject.order(order.order_id).await;
            assert_eq!(stored.as_ref(), Some(order), "the order reads back as written");
            let holders = subject.allocations().await;
            let holder = Holder::Order(order.order_id);
            let mut sold = order.vouchers.iter().map(|sold| sold.voucher.stock_id);
            let holds_all = sold.all(|stock_id| holders.contains(&(stock_id, holder)));
            assert!(holds_all, "the vouchers are allocated to the order: {holders:?}");
        }
        if let Some((wallet, movement)) = record.wallet().zip(record.movement.as_ref()) {
            let ledger = subject.ledger(wallet).await;
            let booked = ledger.iter().any(|entry| entry.movement == *movement);
            assert!(booked, "the movement is in the ledger: {ledger:?}");
        }
        let events = subject.events(record.partner_id).await;
        let is_written = |bundle: &EventBundle| events.iter().any(|row| row.bundle == *bundle);
        assert!(record.events.iter().all(is_written), "events: {events:?}");
    }
}

/// Claims all stock of [`gift`] except what is loaded.
pub async fn claim(store: &Arc<dyn Store>, loaded: &[StockVoucher]) -> ClaimedStock {
    claim_sorted(store, stock_request(loaded, 1_000)).await
}

/// Claims stock and sorts the result, because the order of the response is unspecified.
pub async fn claim_sorted(store: &Arc<dyn Store>, request: StockRequest) -> ClaimedStock {
    let mut claimed = store.claim_stock(request).await.expect("the store is reachable");
    claimed.chunks.sort_by_key(|chunk| chunk.chunk_id);
    let vouchers = claimed.chunks.iter_mut().map(|chunk| &mut chunk.vouchers);
    vouchers.for_each(|vouchers| vouchers.sort_by_key(|(stock_id, _)| *stock_id));
    claimed
}

pub fn stock_request(loaded: &[StockVoucher], target_quantity: usize) -> StockRequest {
    let loaded_chunks = loaded.iter().map(|voucher| voucher.chunk_id).collect();
    StockRequest {
        sku: gift(),
        loaded_chunks,
        target_quantity,
        not_before: build::day(0),
        demanded: 0,
    }
}

/// Expiries of a chunk of `count` vouchers that expire on one day.
pub fn expiries_on(day: i64, count: usize) -> Vec<Expiry> {
    vec![build::day(day); count]
}

/// State of a wallet, with its balance in minor units.
pub const fn wallet_state(sequence: i64, balance: i64) -> WalletState {
    WalletState {
        sequence,
        balance: build::minor(balance),
    }
}

/// Checks that all records moved money and committed.
pub fn assert_committed(verdicts: &[Verdict]) {
    let committed = |verdict: &Verdict| matches!(verdict, Verdict::Committed(Some(_)));
    assert!(verdicts.iter().all(committed), "{verdicts:?}");
}

/// Vouchers of a claim, in the order of its chunks.
pub fn claimed_vouchers(claimed: &ClaimedStock) -> Vec<StockVoucher> {
    let vouchers = claimed.chunks.iter().flat_map(|chunk| {
        let voucher = |(stock_id, expiry): &(_, _)| StockVoucher {
            expiry: *expiry,
            stock_id: *stock_id,
            chunk_id: chunk.chunk_id,
        };
        chunk.vouchers.iter().map(voucher)
    });
    vouchers.collect()
}

/// The response that the record stores under its key.
pub fn own_response(record: &Record) -> StoredResponse {
    StoredResponse {
        fingerprint: record.claim.fingerprint,
        response: record.claim.response.clone(),
    }
}

/// A stored response to a different request.
pub fn other_response() -> StoredResponse {
    StoredResponse {
        fingerprint: build::fingerprint("another"),
        response: build::response("{\"by\": \"another\"}"),
    }
}

/// Checks that the future blocks on a lock, as the last of `transactions` blocked transactions.
pub async fn assert_blocked<S: Subject, T: std::fmt::Debug>(
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

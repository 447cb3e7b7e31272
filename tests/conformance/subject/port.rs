//! Operations and reads of the conformance cases, over Postgres.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId, WebhookId};
use vouchsafe_domain::ledger::WalletKey;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::conformance::{CommitFault, EndpointChange, OtherTransaction as _, Subject};
use vouchsafe_simulation::{
    DeliveryRow, EndpointStatus, FeedEntry, Holder, LedgerEntry, StoredKey, StoredWallet,
};
use vouchsafe_store::{PgNode, PgOutbox, PgStore, ReplayOutcome, RetrievalOutcome};

use super::{OtherTransaction, POLL_INTERVAL, PgSubject};
use crate::{invariants, outbox, rows};

impl Subject for PgSubject {
    type Transaction = OtherTransaction;

    async fn start_node(&self, node: &str) -> Arc<dyn Store> {
        let store = self.start(node).await;
        sqlx::query("UPDATE nodes SET lease_until = clock_timestamp() + interval '1 day' WHERE node = $1")
            .bind(node)
            .execute(&self.pool)
            .await
            .unwrap();
        store
    }

    async fn expire_lease(&self, node: &str) {
        sqlx::query("UPDATE nodes SET lease_until = clock_timestamp() - interval '1 second' WHERE node = $1")
            .bind(node)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    async fn advance_lease(&self, node: &str) {
        sqlx::query(
            "UPDATE nodes
                SET renewed_at = renewed_at + interval '1 hour', lease_until = lease_until + interval '1 hour'
              WHERE node = $1",
        )
        .bind(node)
        .execute(&self.pool)
        .await
        .unwrap();
    }

    async fn age_demand(&self, sku: &Sku, node: &str, by: Duration) {
        sqlx::query(
            "UPDATE stock_demands
                SET demanded_at = demanded_at - make_interval(secs => $4), renewed_at = clock_timestamp() + interval '9 seconds'
              WHERE product_id = $1 AND denomination = $2 AND node = $3",
        )
        .bind(sku.product_id.as_str())
        .bind(sku.denomination.minor())
        .bind(node)
        .bind(by.as_secs_f64())
        .execute(&self.pool)
        .await
        .unwrap();
    }

    async fn add_partner(&self, partner_id: PartnerId) {
        sqlx::query("INSERT INTO partners (partner_id, name, allowlist) VALUES ($1, 'A partner', '{}')")
            .bind(partner_id.as_uuid())
            .execute(&self.pool)
            .await
            .unwrap();
    }

    async fn add_chunk(&self, sku: &Sku, expiries: &[Expiry]) -> Vec<StockVoucher> {
        rows::add_chunk(&self.pool, sku, expiries).await
    }

    async fn reserve_for(&self, vouchers: &[StockVoucher], purchase_id: Option<Uuid>) {
        let chunks: Vec<i64> = vouchers.iter().map(|voucher| voucher.chunk_id.0).collect();
        sqlx::query("UPDATE chunks SET reservation_id = $2 WHERE chunk_id = ANY ($1)")
            .bind(chunks)
            .bind(purchase_id)
            .execute(&self.pool)
            .await
            .unwrap();
        self.set_open_purchase(purchase_id).await;
    }

    async fn void(&self, stock_id: StockId) {
        self.begin_void(stock_id).await.commit().await;
    }

    async fn retrieve(&self, partner_id: PartnerId, order_id: OrderId) {
        let retrieval = self.retrieval(partner_id, order_id).await;
        let store = PgStore::open(self.options(), Handle::current());
        let reader = PgNode::start(&store.database, "reader".to_owned()).await.unwrap();
        let retrieved = reader.retrieve_codes(retrieval).await.unwrap();
        assert!(
            matches!(retrieved, RetrievalOutcome::Vouchers(_)),
            "{retrieved:?}"
        );
    }

    async fn top_up(&self, wallet: WalletKey, amount: Amount) {
        rows::top_up(&self.pool, wallet, amount).await;
    }

    async fn age_key(&self, key: KeyHash, by: Duration) {
        sqlx::query(
            "UPDATE idempotency_keys SET expires_at = expires_at - make_interval(secs => $2) WHERE key = $1",
        )
        .bind(key.0)
        .bind(by.as_secs_f64())
        .execute(&self.pool)
        .await
        .unwrap();
    }

    async fn begin_insert_key(&self, key: KeyHash, known: &StoredResponse) -> OtherTransaction {
        let insert = sqlx::query(
            "INSERT INTO idempotency_keys (key, fingerprint, status, body, expires_at)
             VALUES ($1, $2, $3, $4, 'infinity')",
        );
        let insert = insert.bind(key.0).bind(known.fingerprint.0.to_vec());
        let response = &known.response;
        self.begin_with(
            insert
                .bind(response.status.cast_signed())
                .bind(response.body.to_vec()),
        )
        .await
    }

    async fn begin_void(&self, stock_id: StockId) -> OtherTransaction {
        let insert = sqlx::query("INSERT INTO allocations (stock_id, withdrawal_reason) VALUES ($1, 'void')");
        self.begin_with(insert.bind(stock_id.0)).await
    }

    async fn wait_for_blocked(&self, transactions: usize) {
        let transactions = i64::try_from(transactions).unwrap();
        while rows::count_blocked(&self.pool).await < transactions {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn fail_next_commit(&self, node: &str, fault: CommitFault) {
        match fault {
            CommitFault::Aborted => self.cancel_next_commit().await,
            lost => self.proxy(node).inject_fault(lost),
        }
    }

    async fn deliver_delayed_commits(&self) {
        let proxies: Vec<_> = self.proxies.lock().unwrap().values().cloned().collect();
        for proxy in proxies {
            proxy.deliver_delayed().await;
        }
    }

    async fn wallet(&self, wallet: WalletKey) -> Option<StoredWallet> {
        rows::wallet(&self.pool, wallet).await
    }

    async fn ledger(&self, wallet: WalletKey) -> Vec<LedgerEntry> {
        rows::ledger(&self.pool, wallet).await
    }

    async fn order(&self, order_id: OrderId) -> Option<Order> {
        let owner: Option<Uuid> = sqlx::query_scalar("SELECT partner_id FROM orders WHERE order_id = $1")
            .bind(order_id.as_uuid())
            .fetch_optional(&self.pool)
            .await
            .unwrap();
        let owner = PartnerId::from_uuid(owner?);
        self.newest_node().find_order(owner, order_id).await.unwrap()
    }

    async fn allocations(&self) -> Vec<(StockId, Holder)> {
        rows::allocations(&self.pool).await
    }

    async fn stored_key(&self, key: KeyHash) -> Option<StoredKey> {
        rows::stored_key(&self.pool, key).await
    }

    async fn events(&self, partner_id: PartnerId) -> Vec<FeedEntry> {
        rows::events(&self.pool, partner_id).await
    }

    async fn start_outbox(&self, node: &str) -> Arc<dyn Outbox> {
        Arc::new(PgOutbox::new(&*self.start(node).await))
    }

    async fn add_endpoint(&self, partner_id: PartnerId) -> WebhookId {
        let webhook_id = WebhookId::generate();
        outbox::put(self, outbox::put_request(partner_id, webhook_id)).await;
        webhook_id
    }

    async fn change_endpoint(&self, webhook_id: WebhookId, change: EndpointChange) {
        outbox::change(self, webhook_id, change).await;
    }

    async fn append_event(&self, partner_id: PartnerId, order: u32) -> i64 {
        outbox::append_event(&self.pool, partner_id, order).await
    }

    async fn replay(&self, webhook_id: WebhookId, numbers: RangeInclusive<i64>) {
        let events = usize::try_from(numbers.end() - numbers.start() + 1).unwrap();
        let outcome = outbox::try_replay(self, webhook_id, numbers).await;
        assert_eq!(outcome, ReplayOutcome::Scheduled(events));
    }

    async fn advance_time(&self, by: Duration) {
        outbox::advance_time(&self.superuser_options(), by).await;
    }

    async fn delivery(&self, webhook_id: WebhookId, number: i64) -> Option<DeliveryRow> {
        outbox::delivery(&self.pool, webhook_id, number).await
    }

    async fn endpoint(&self, webhook_id: WebhookId) -> Option<EndpointStatus> {
        outbox::status(&self.pool, webhook_id).await
    }

    async fn violations(&self) -> Vec<String> {
        invariants::find_all(&self.pool).await
    }
}

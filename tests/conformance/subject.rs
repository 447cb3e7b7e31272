//! Conformance subject over Postgres: the service's store under test, plain SQL for setup and reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};
use vouchsafe_domain::ids::{CredentialId, OrderId, PartnerId, StockId};
use vouchsafe_domain::ledger::{WalletKey, WalletState};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::conformance::{self, CommitFault, Subject};
use vouchsafe_simulation::{FeedEntry, Holder, LedgerEntry, StoredKey};
use vouchsafe_store::{CodeRetrieval, PgNode, PgStore, RetrievalOutcome};

use crate::proxy::{Edit, Proxy};
use crate::server::Database;
use crate::{invariants, rows, spawn};

/// Interval between polls of the database.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A database with a proxy for each node.
pub(crate) struct PgSubject {
    database: Database,
    pool: PgPool,
    edit: Option<Edit>,
    proxies: Mutex<BTreeMap<String, Arc<Proxy>>>,
    newest_node: Mutex<Option<Arc<PgNode>>>,
}

impl PgSubject {
    pub(crate) async fn new() -> Self {
        Self::with_edit(None).await
    }

    /// Same, with the proxies replacing a text in the nodes' statements.
    pub(crate) async fn with_edit(edit: Option<Edit>) -> Self {
        let database = Database::create().await;
        let pool = PgPoolOptions::new().max_connections(4);
        let pool = pool.connect_with(database.options()).await.unwrap();
        Self {
            database,
            pool,
            edit,
            proxies: Mutex::default(),
            newest_node: Mutex::default(),
        }
    }

    pub(crate) async fn remove(self) {
        self.database.remove().await;
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        self.database.options()
    }

    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.database.superuser_options()
    }

    /// Content of the server's log.
    pub(crate) fn log(&self) -> String {
        self.database.log()
    }

    /// Starts a node as the service does; returns its concrete type.
    pub(crate) async fn start(&self, node: &str) -> Arc<PgNode> {
        let options = self.options();
        let options = options.socket(self.proxy(node).directory());
        let store = PgNode::start(
            &PgStore::open(options, Handle::current()).database,
            node.to_owned(),
        )
        .await
        .unwrap();
        let store = Arc::new(store);
        *self.newest_node.lock().unwrap() = Some(Arc::clone(&store));
        store
    }

    /// Begins a transaction that has run this statement.
    pub(crate) async fn begin_with(
        &self,
        query: sqlx::query::Query<'_, Postgres, sqlx::postgres::PgArguments>,
    ) -> OtherTransaction {
        let mut connection = PgConnection::connect_with(&self.options()).await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        query.execute(&mut connection).await.unwrap();
        OtherTransaction(connection)
    }

    fn proxy(&self, node: &str) -> Arc<Proxy> {
        let open = || {
            let options = self.options();
            let server = options
                .get_socket()
                .expect("the private server listens on a socket");
            Arc::new(Proxy::open(server, options.get_port(), self.edit))
        };
        let mut proxies = self.proxies.lock().unwrap();
        Arc::clone(proxies.entry(node.to_owned()).or_insert_with(open))
    }

    /// Request for an order's codes, with a new credential of the partner.
    pub(crate) async fn retrieval(&self, partner_id: PartnerId, order_id: OrderId) -> CodeRetrieval {
        let credential_id = CredentialId::generate();
        sqlx::query("INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash) VALUES ($1, $2, $3, $3)")
            .bind(credential_id.as_uuid())
            .bind(partner_id.as_uuid())
            .bind(credential_id.as_uuid().as_bytes().repeat(2))
            .execute(&self.pool)
            .await
            .unwrap();
        CodeRetrieval {
            partner_id,
            order_id,
            credential_id,
            address: "127.0.0.1".to_owned(),
            trace_id: String::new(),
        }
    }

    /// Replaces all open purchases by this one, or by none.
    async fn set_open_purchase(&self, purchase_id: Option<Uuid>) {
        let mut connection = self.pool.acquire().await.unwrap();
        connection.execute("DELETE FROM purchases").await.unwrap();
        sqlx::query(
            "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency,
                                    quantity, expiry_policy, requested_at)
             SELECT p.purchase_id, gen_random_uuid(), gen_random_uuid(), 0, 'a vendor', 'gift', 1000, 'USD', 1, '{}', now()
               FROM (VALUES ($1::uuid)) AS p (purchase_id)
              WHERE p.purchase_id IS NOT NULL",
        )
        .bind(purchase_id)
        .execute(&mut *connection)
        .await
        .unwrap();
    }

    /// Cancels the next commit: a table lock blocks it at its fence until the cancellation is sent.
    async fn cancel_next_commit(&self) {
        let fence = self
            .begin_with(sqlx::query("LOCK TABLE lanes IN EXCLUSIVE MODE"))
            .await;
        let pool = self.pool.clone();
        spawn(async move {
            while !cancel_waiting_commit(&pool).await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            conformance::OtherTransaction::rollback(fence).await;
        });
    }
}

async fn cancel_waiting_commit(pool: &PgPool) -> bool {
    let cancelled: Option<bool> = sqlx::query_scalar(
        "SELECT pg_cancel_backend(a.pid)
           FROM pg_stat_activity AS a
          WHERE a.datname = current_database()
            AND a.wait_event_type = 'Lock'
            AND a.query LIKE '%commit_batch(%'",
    )
    .fetch_optional(pool)
    .await
    .unwrap();
    cancelled.is_some()
}

/// An open transaction on another connection.
pub(crate) struct OtherTransaction(PgConnection);

impl conformance::OtherTransaction for OtherTransaction {
    async fn commit(mut self) {
        self.0.execute("COMMIT").await.unwrap();
    }

    async fn rollback(mut self) {
        self.0.execute("ROLLBACK").await.unwrap();
    }
}

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
        sqlx::query("UPDATE chunks SET purchase_id = $2 WHERE chunk_id = ANY ($1)")
            .bind(chunks)
            .bind(purchase_id)
            .execute(&self.pool)
            .await
            .unwrap();
        self.set_open_purchase(purchase_id).await;
    }

    async fn void(&self, stock_id: StockId) {
        conformance::OtherTransaction::commit(self.begin_void(stock_id).await).await;
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
        let insert = sqlx::query("INSERT INTO allocations (stock_id, taken_out) VALUES ($1, 'void')");
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

    async fn wallet(&self, wallet: WalletKey) -> Option<WalletState> {
        rows::wallet(&self.pool, wallet).await.map(|(receipt, _)| receipt)
    }

    async fn pending_orders(&self, wallet: WalletKey) -> Amount {
        rows::wallet(&self.pool, wallet)
            .await
            .map_or(Amount::ZERO, |(_, pending)| pending.0)
    }

    async fn pending_payouts(&self, wallet: WalletKey) -> Amount {
        rows::wallet(&self.pool, wallet)
            .await
            .map_or(Amount::ZERO, |(_, pending)| pending.1)
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
        let newest = self.newest_node.lock().unwrap().clone();
        let store = newest.expect("a node was started before the read");
        let owner = PartnerId::from_uuid(owner?);
        store.find_order(owner, order_id).await.unwrap()
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

    async fn violations(&self) -> Vec<String> {
        invariants::find_all(&self.pool).await
    }
}

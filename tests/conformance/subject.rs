//! Conformance subject over Postgres: the service's store under test, plain SQL for setup and reads.

mod port;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_domain::ids::{CredentialId, OrderId, PartnerId};
use vouchsafe_simulation::conformance;
use vouchsafe_store::{CodeRetrieval, PgNode, PgStore};
use vouchsafe_test_harness::{Database, spawn};

use crate::proxy::{Edit, Proxy};

/// Interval between polls of the database.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Rows that the service inserts at its first start: environment and data keys.
const INITIAL_ROWS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO data_keys (purpose, wrapped, wrapped_by) VALUES ('codes', '', ''), ('blind_index', '', '');";

/// A database with a proxy for each node.
pub(crate) struct PgSubject {
    database: Database,
    pool: PgPool,
    edit: Option<Edit>,
    proxies: Mutex<BTreeMap<String, Arc<Proxy>>>,
    newest_node: Mutex<Option<Arc<PgNode>>>,
    store: PgStore,
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
        pool.execute(INITIAL_ROWS).await.unwrap();
        Self {
            store: PgStore::open(database.options(), Handle::current()),
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

    /// The service's store, connected directly.
    pub(crate) fn store(&self) -> &PgStore {
        &self.store
    }

    /// The service's store, connected through the node's proxy, which edits its statements.
    pub(crate) fn proxied_store(&self, node: &str) -> PgStore {
        let options = self.options().socket(self.proxy(node).directory());
        PgStore::open(options, Handle::current())
    }

    /// The node that was started last.
    pub(crate) fn newest_node(&self) -> Arc<PgNode> {
        let newest = self.newest_node.lock().unwrap().clone();
        newest.expect("a node was started")
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
        let store = PgNode::start(&self.proxied_store(node).database, node.to_owned())
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
        sqlx::query(
            "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, family_id) \
            VALUES ($1, $2, $3, $3, $1)",
        )
        .bind(credential_id.as_uuid())
        .bind(partner_id.as_uuid())
        .bind(credential_id.as_uuid().as_bytes().repeat(2))
        .execute(&self.pool)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO audit_log (operator, action, subject, partner_id)
             VALUES ('service', 'credential.issue', $1, $2)",
        )
        .bind(credential_id.to_string())
        .bind(partner_id.as_uuid())
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
            AND a.query LIKE '%commit_batch_v2(%'",
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

//! Storage in Postgres: the engine's port, and what HTTP reads besides.
//!
//! All database work lives on one runtime of its own: sockets that belong to a web worker's runtime die with the worker.
//! Every operation runs there as a task, so that a caller who goes away cancels nothing; a transaction that is cancelled
//! half-way would leave its connection in the pool with the transaction open.

mod audit;
mod availability;
mod categories;
mod codes;
mod commit;
mod credentials;
mod data_keys;
mod deployment;
mod error;
mod inventory;
mod keys;
mod lane;
mod nodes;
mod orders;
mod partners;
mod period;
mod products;
mod stock;
mod transactions;
pub mod verify;
mod wallets;

use std::future::Future;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::runtime::Handle;
use vouchsafe_actors::domain::answer::{KeyHash, KnownAnswer};
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::Currency;
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::store::{LaneStore, RecoverError, Store, StoreFuture, Unavailable};

pub use audit::{AuditFilter, AuditRow, By, Deed};
pub use availability::FreeVouchers;
pub use categories::{Category, PutCategory};
pub use codes::{Retrieval, Retrieved, SealedVoucher};
pub use credentials::{CredentialSummary, Issued, MAX_LIVE_CREDENTIALS, Papers};
pub use data_keys::{DataKeys, Wrap};
pub(crate) use error::describe;
use error::unavailable;
pub use inventory::CHUNK_VOUCHERS;
use lane::PgLane;
pub use nodes::{LEASE_S, NodeIdentity};
pub use orders::OrderFilter;
pub use partners::terms::{ApprovalRule, Limit, Limits, OtherCurrencies, Thresholds};
pub use partners::{Change, DEFAULT_CANCEL_WINDOW_S, Partner};
pub use period::Period;
pub use products::{PutProduct, ShownProduct};
pub use stock::{
    FreshIds, ImportOutcome, ImportTarget, Imported, NewVoucher, StockBatch, StockLevel, VoidOutcome,
    VoidTarget, Voided,
};
pub use transactions::{LedgerPage, LedgerPlace, Transaction, TransactionFilter};
pub use wallets::WalletRow;

/// Connections beside those of the lanes.
const MAX_CONNECTIONS: u32 = 12;

/// How long a request waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Server-side limits: a statement that waits or runs longer is an error, and certain. None of them covers a COMMIT.
const SERVER_LIMITS: [(&str, &str); 3] = [
    ("statement_timeout", "15s"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "10s"),
];

/// Postgres, as one node writes to it.
#[derive(Debug, Clone)]
pub struct PgStore {
    options: PgConnectOptions,
    pool: PgPool,
    runtime: Handle,
    node: NodeIdentity,
}

impl PgStore {
    /// Connects, brings the schema up to date, and takes the next incarnation of the node called `name`. Everything runs
    /// on `runtime`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database cannot be reached or its schema is not ours.
    pub async fn open(options: PgConnectOptions, runtime: Handle, name: String) -> Result<Self, sqlx::Error> {
        let options = options.options(SERVER_LIMITS);
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone());
        let opened = {
            let pool = pool.clone();
            on(&runtime, async move {
                sqlx::migrate!().run(&pool).await?;
                nodes::start(&pool, name).await
            })
        };
        let node = opened.await?;
        Ok(Self {
            options,
            pool,
            runtime,
            node,
        })
    }

    /// Who this process is.
    #[must_use]
    pub const fn node(&self) -> &NodeIdentity {
        &self.node
    }

    /// Renews the node's lease. `false` when a later start of this node has taken over.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn renew_lease(&self) -> Result<bool, sqlx::Error> {
        let node = self.node.clone();
        self.run(|pool| async move { nodes::renew(&pool, &node).await })
            .await
    }

    /// Removes some of the answers whose time is over; says how many.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn purge_expired_keys(&self) -> Result<u64, sqlx::Error> {
        self.run(|pool| async move { keys::purge_expired(&pool).await })
            .await
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// [`sqlx::Error`] when it does not.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        self.run(|pool| async move { sqlx::query("SELECT 1").execute(&pool).await.map(drop) })
            .await
    }

    /// Runs work that changes the database, and then what is kept of it in memory: to its end, whether or not its caller
    /// waits for it.
    pub(crate) async fn to_the_end<T, F>(&self, work: F) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
    {
        on(&self.runtime, work).await
    }

    /// Runs database work as a task of its own on the database's runtime.
    fn run<T, F, W>(&self, work: W) -> impl Future<Output = Result<T, sqlx::Error>> + Send + use<T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
        W: FnOnce(PgPool) -> F,
    {
        on(&self.runtime, work(self.pool.clone()))
    }
}

#[allow(clippy::disallowed_methods)] // the one place that starts tasks on the database's runtime
fn on<T, F>(runtime: &Handle, work: F) -> impl Future<Output = Result<T, sqlx::Error>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
{
    let task = runtime.spawn(work);
    // The caller's future holds the task's handle alone, however large the work is.
    async move { task.await.unwrap_or(Err(sqlx::Error::WorkerCrashed)) }
}

impl Store for PgStore {
    fn open_lane(&self, lane: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        Box::pin(async move {
            let (options, NodeIdentity { name, incarnation }) = (self.options.clone(), self.node.clone());
            let opened = self.run(|_| async move {
                Ok(PgLane::open(options, name, incarnation, lane.cast_signed()).await)
            });
            let lane = opened.await.map_err(|error| unavailable(&error))??;
            Ok(Box::new(lane) as Box<dyn LaneStore>)
        })
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        let node = self.node.clone();
        Box::pin(async move {
            let claimed = self
                .run(|pool| async move { inventory::claim(&pool, &node, request).await })
                .await;
            claimed.map_err(|error| unavailable(&error))
        })
    }

    fn load_wallets(
        &self,
        partner_id: PartnerId,
    ) -> StoreFuture<'_, Result<Vec<(Currency, Receipt)>, Unavailable>> {
        Box::pin(async move {
            let receipts = self
                .run(|pool| async move { wallets::receipts(&pool, partner_id).await })
                .await;
            receipts.map_err(|error| unavailable(&error))
        })
    }

    fn find_answer(&self, key: KeyHash) -> StoreFuture<'_, Result<Option<KnownAnswer>, Unavailable>> {
        Box::pin(async move {
            let found = self
                .run(|pool| async move { keys::find_answer(&pool, key).await })
                .await;
            found.map_err(|error| unavailable(&error))
        })
    }
}

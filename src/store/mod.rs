//! Postgres storage: the engine's `Store` port, and the reads and writes of HTTP, CLI and background jobs.
//!
//! All database work runs on a dedicated runtime: a socket dies with the runtime that opened it, and web workers have their
//! own. Each operation is a spawned task, so a disconnected caller cancels nothing: a transaction cancelled half-way would
//! return its connection to the pool with the transaction open.

mod audit;
mod audit_checkpoints;
mod availability;
mod batcher;
mod categories;
mod certification;
mod codes;
mod commit;
mod connection_pool;
mod credentials;
mod data_keys;
mod deliveries;
mod deployment;
mod error;
mod events;
mod idempotency_keys;
mod inventory;
mod lane;
mod node;
mod node_identity;
mod orders;
mod partner_creation;
mod partners;
mod payouts;
mod period;
mod products;
mod purchases;
pub(crate) mod reconciliation;
mod reserved_stock;
mod rotation;
pub mod schema;
mod stock;
mod stock_claims;
mod transactions;
mod vendors;
pub mod verify;
mod wallets;
mod webhooks;

use std::future::Future;
use std::sync::Arc;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;
use tracing::Instrument as _;

use self::connection_pool::{ConnectionPool, DEADLINE};

pub use audit::{AuditActor, AuditFilter, AuditRow};
pub use audit_checkpoints::AuditCheckpoint;
pub use availability::FreeVouchers;
pub use categories::{Category, PutCategoryOutcome};
pub use codes::{CodeRetrieval, RetrievalOutcome, SealedVoucher};
pub use credentials::{CertificationPolicy, CredentialSummary, IssueOutcome, MAX_LIVE_CREDENTIALS};
pub use data_keys::{DataKeys, KeyWrapper};
pub use deliveries::{
    DeliveryFilter, DeliveryState, DeliveryView, DueEndpoints, MAX_REPLAYED, PgOutbox, ReplayOutcome,
    ReplayRequest,
};
pub(crate) use error::{describe, unavailable};
pub use events::{FEED_DAYS, FeedPage, FeedPosition};
pub use node::PgNode;
pub use node_identity::{LEASE_S, NodeIdentity};
pub use orders::OrderFilter;
pub use partners::approval_rule::{ApprovalRule, OtherCurrencies, Thresholds};
pub use partners::{DEFAULT_CANCEL_WINDOW_S, Partner, PartnerChange};
pub use payouts::PayoutFilter;
pub use period::Period;
pub use products::{ProductView, PutProductOutcome};
pub use purchases::answers::{LastAnswer, PurchaseUpdate};
pub use purchases::view::{EndPurchaseOutcome, PurchaseFilter, PurchaseState, PurchaseView};
pub use purchases::{NewPurchase, Purchase};
pub use reconciliation::{
    ClaimedDay, Drift, DriftFilter, DriftResolution, PAGE_ROWS as RECORDS_PAGE, PartnerDay, Reconciliation,
    ReconciliationOutcome, ReconciliationResult, ReconciliationRun, ReconciliationStatus,
    ReconciliationSummary, RecordsMessage, RecordsSource, ResolveDriftRequest,
};
pub use rotation::{RotationOutcome, RotationRequest, RotationResult};
pub use stock::{
    CodeVoidOutcome, ExpiryBatch, ImportOutcome, ImportSummary, ImportTarget, NewStockIds, NewVoucher,
    StockBatch, StockLevel, StockOrigin, VoidOutcome, VoidTarget,
};
pub use transactions::{LedgerCursor, LedgerPage, Transaction, TransactionFilter};
pub use vendors::{PutVendorOutcome, Vendor, VendorConfig, VendorWithCredential};
pub use wallets::WalletRow;
pub use webhooks::{
    DisabledReason, MAX_WEBHOOKS, PutWebhookOutcome, PutWebhookRequest, Webhook, WebhookFilter,
    WebhookSecretRotation, WebhookStatus,
};

/// Settings of every connection. A statement that exceeds a timeout fails for certain; no timeout covers COMMIT. A commit is
/// durable whatever the role's default says, and `commit_batch` relies on one snapshot per statement. JIT compilation is off
/// because the planner overestimates most statements.
const SESSION_SETTINGS: [(&str, &str); 6] = [
    ("statement_timeout", "15s"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("jit", "off"),
];

/// Size of the shared pool. Lanes and batchers have connections of their own.
const MAX_CONNECTIONS: u32 = 12;

/// Handle to Postgres, shared by all parts of the service.
#[derive(Debug, Clone)]
pub struct PgStore {
    database: PgConnectOptions,
    connections: Arc<ConnectionPool>,
    runtime: Handle,
}

impl PgStore {
    /// Creates a store without connecting. All database work runs on `runtime`.
    #[must_use]
    pub fn open(database: PgConnectOptions, runtime: Handle) -> Self {
        let connections = ConnectionPool::new(
            database.clone().options(SESSION_SETTINGS),
            MAX_CONNECTIONS,
            DEADLINE,
        );
        Self {
            database,
            connections: Arc::new(connections),
            runtime,
        }
    }

    /// Connection options of lanes and batchers.
    fn session_options(&self) -> PgConnectOptions {
        self.database.clone().options(SESSION_SETTINGS)
    }

    /// Deletes the expired idempotency keys and returns their number.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn purge_expired_keys(&self) -> Result<u64, sqlx::Error> {
        let mut removed = 0;
        loop {
            let batch = self.run(|pool| async move { idempotency_keys::purge_batch(&pool).await });
            let batch = batch.await?;
            removed += batch;
            if batch < idempotency_keys::PURGE_ROWS {
                return Ok(removed);
            }
        }
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// [`sqlx::Error`] when it does not respond.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        self.run(|pool| async move { sqlx::query("SELECT 1").execute(&pool).await.map(drop) })
            .await
    }

    /// Runs work to completion even if the caller stops waiting: it changes the database and then the copy in memory.
    pub(crate) async fn run_detached<T, F>(&self, work: F) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
    {
        spawn_on(&self.runtime, work).await
    }

    /// Runs work on the shared pool, as a task of the database runtime.
    fn run<T, F, W>(&self, work: W) -> impl Future<Output = Result<T, sqlx::Error>> + Send + use<T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
        W: FnOnce(PgPool) -> F + Send + 'static,
    {
        let connections = Arc::clone(&self.connections);
        spawn_on(&self.runtime, async move { connections.run(work).await })
    }
}

/// Spawns a task in the current tracing span, so that its log events belong to the request.
#[allow(clippy::disallowed_methods)] // the only place that spawns on the database runtime
fn spawn_on<T, F>(
    runtime: &Handle,
    work: F,
) -> impl Future<Output = Result<T, sqlx::Error>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
{
    let task = runtime.spawn(work.in_current_span());
    // Keeps the caller's future small: it holds only the task handle.
    async move { task.await.unwrap_or(Err(sqlx::Error::WorkerCrashed)) }
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::*;

    #[test]
    fn spawned_work_keeps_the_span_of_its_request() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry(), || {
            let request = tracing::error_span!("request");
            let work =
                request.in_scope(|| spawn_on(&runtime.handle().clone(), async { Ok(Span::current().id()) }));
            let inside = runtime.block_on(work).unwrap();
            assert!(inside.is_some() && inside == request.id(), "{inside:?}");
        });
    }
}

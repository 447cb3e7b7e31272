//! Storage in Postgres: the engine's port, and what HTTP reads besides.
//!
//! All database work lives on one runtime of its own: sockets that belong to a web worker's runtime die with the worker.
//! Every operation runs there as a task, so that a caller who goes away cancels nothing; a transaction that is cancelled
//! half-way would leave its connection in the pool with the transaction open.

mod audit;
mod availability;
mod categories;
mod certification;
mod claims;
mod codes;
mod commit;
mod connections;
mod credentials;
mod data_keys;
mod deliveries;
mod deployment;
mod error;
mod events;
mod inventory;
mod kept;
mod keys;
mod lane;
mod node;
mod nodes;
mod orders;
mod partners;
mod payouts;
mod period;
mod products;
mod purchases;
pub(crate) mod reconciliation;
mod rotation;
pub mod schema;
mod seals;
mod stock;
mod together;
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

use self::connections::{Connections, DEADLINE};

pub use audit::{AuditFilter, AuditRow, By};
pub use availability::FreeVouchers;
pub use categories::{Category, PutCategory};
pub use codes::{Retrieval, Retrieved, SealedVoucher};
pub use credentials::{CredentialSummary, Issued, MAX_LIVE_CREDENTIALS, Papers};
pub use data_keys::{DataKeys, Wrap};
pub use deliveries::{
    DeliveryFilter, DeliveryState, Look, MAX_REPLAYED, PgOutbox, ReplayWish, Replayed, ShownDelivery,
};
pub(crate) use error::{describe, unavailable};
pub use events::{FEED_DAYS, FeedPage, FeedPlace};
pub use node::PgNode;
pub use nodes::{LEASE_S, NodeIdentity};
pub use orders::OrderFilter;
pub use partners::terms::{ApprovalRule, OtherCurrencies, Thresholds};
pub use partners::{Change, DEFAULT_CANCEL_WINDOW_S, Partner};
pub use payouts::PayoutFilter;
pub use period::Period;
pub use products::{PutProduct, ShownProduct};
pub use purchases::shown::{EndPurchase, PurchaseFilter, PurchaseState, ShownPurchase};
pub use purchases::words::{LastAnswer, Said};
pub use purchases::{NewPurchase, Purchase};
pub use reconciliation::{
    Books, Claimed, Compared, Drift, DriftFilter, Intake, PAGE_ROWS as RECORDS_PAGE, PartnerDay, Reconciled,
    Reconciliation, Resolution, Resolved, Source, Standing, Summary,
};
pub use rotation::{Rotated, Rotation, Succession};
pub use seals::Seal;
pub use stock::{
    FreshIds, ImportOutcome, ImportTarget, Imported, NewVoucher, Origin, StockBatch, StockLevel, Swept,
    VoidOutcome, VoidTarget, Voided,
};
pub use transactions::{LedgerPage, LedgerPlace, Transaction, TransactionFilter};
pub use vendors::{PutVendor, Vendor, VendorAccess, VendorTerms};
pub use wallets::WalletRow;
pub use webhooks::{
    DisabledReason, MAX_WEBHOOKS, PutOutcome, PutWebhook, Webhook, WebhookFilter, WebhookRotation,
    WebhookStatus,
};

/// What each connection asks of the server. A statement that waits or runs longer is an error, and certain; none of the
/// limits covers a COMMIT. What is answered is durable whatever the role's own default is, and the commit statement
/// rests on a snapshot for each of its statements. Nothing is compiled: what looks dear to the planner is mostly not.
const SESSION: [(&str, &str); 6] = [
    ("statement_timeout", "15s"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("jit", "off"),
];

/// Connections for everything that has none of its own, at most.
const MAX_CONNECTIONS: u32 = 12;

/// Postgres, as every part of the service reads and changes it.
#[derive(Debug, Clone)]
pub struct PgStore {
    database: PgConnectOptions,
    connections: Arc<Connections>,
    runtime: Handle,
}

impl PgStore {
    /// The database behind these options; nothing is asked of it yet. All work runs on `runtime`.
    #[must_use]
    pub fn open(database: PgConnectOptions, runtime: Handle) -> Self {
        let connections = Connections::new(database.clone().options(SESSION), MAX_CONNECTIONS, DEADLINE);
        Self {
            database,
            connections: Arc::new(connections),
            runtime,
        }
    }

    /// How a lane connects, and whatever else has a connection of its own.
    fn session(&self) -> PgConnectOptions {
        self.database.clone().options(SESSION)
    }

    /// Removes the answers whose time is over; says how many.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn purge_expired_keys(&self) -> Result<u64, sqlx::Error> {
        let mut removed = 0;
        loop {
            let some = self.run(|pool| async move { keys::purge_some(&pool).await });
            let some = some.await?;
            removed += some;
            if some < keys::PURGE_ROWS {
                return Ok(removed);
            }
        }
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
        W: FnOnce(PgPool) -> F + Send + 'static,
    {
        let connections = Arc::clone(&self.connections);
        on(&self.runtime, async move { connections.run(work).await })
    }
}

/// What is logged meanwhile belongs to the request that asked, if one did.
#[allow(clippy::disallowed_methods)] // the one place that starts tasks on the database's runtime
fn on<T, F>(runtime: &Handle, work: F) -> impl Future<Output = Result<T, sqlx::Error>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
{
    let task = runtime.spawn(work.in_current_span());
    // The caller's future holds the task's handle alone, however large the work is.
    async move { task.await.unwrap_or(Err(sqlx::Error::WorkerCrashed)) }
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::*;

    #[test]
    fn what_work_logs_belongs_to_the_request_that_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry(), || {
            let request = tracing::error_span!("request");
            let work = request.in_scope(|| on(&runtime.handle().clone(), async { Ok(Span::current().id()) }));
            let inside = runtime.block_on(work).unwrap();
            assert!(inside.is_some() && inside == request.id(), "{inside:?}");
        });
    }
}

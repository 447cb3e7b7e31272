//! Access to the database: connection pools, session settings, and the runtime of all database work.
//!
//! All database work runs on a dedicated runtime: a socket dies with the runtime that opened it, and web
//! workers have their own. Each operation is a spawned task, so a disconnected caller cancels nothing: a
//! transaction cancelled half-way would return its connection to the pool with the transaction open.
//!
//! Tasks are erased futures: spawn, span, deadline and permit would otherwise be compiled for each statement.
//! A statement costs a round trip, beside which an allocation does not count.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::{Map, Query};
use sqlx::{PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::{Instrument as _, debug_span};
use vouchsafe_domain::spans::SPANS;

use super::boxed;
use super::connection_class::{ConnectionClass, ConnectionMetrics, ConnectionSettings};
use super::connection_pool::ConnectionPool;
use super::erased_work::{ErasedOutcome, ErasedWork, erase, restore_type};
use super::error::StoreError;
use super::servers::Servers;
use super::session::open;
use super::transaction::{
    self, ErasedTransactionWork, Transaction, TransactionMetrics, TransactionWork, erase_result,
};

/// Settings that a role or a database may have other defaults of, and on which the service relies.
pub(super) const FIXED_SETTINGS: [(&str, &str); 7] = [
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    // A connection of a pool is idle between requests.
    ("idle_session_timeout", "0"),
    ("row_security", "on"),
    ("IntervalStyle", "postgres"),
    ("jit", "off"),
];

/// Settings of every connection besides [`FIXED_SETTINGS`]; each connection class has its own statement
/// timeout. A statement that exceeds a timeout fails for certain; no timeout covers COMMIT. A commit is
/// durable whatever the role's default says, and `commit_batch` relies on one snapshot per statement. JIT
/// compilation is off because the planner overestimates most statements.
const SESSION_SETTINGS: [(&str, &str); 3] = [
    ("statement_timeout", "15s"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "10s"),
];

/// Settings of a connection that one command uses: no default of its role ends a statement that takes long.
pub(super) const COMMAND_SETTINGS: [(&str, &str); 3] = [
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
];

/// A statement with its arguments and the conversion of a row, as `sqlx::query!` returns it.
pub type Statement<F> = Map<'static, Postgres, F, PgArguments>;

/// Handle to the database on the connections of one class; clones share the pools.
#[derive(Debug, Clone)]
pub struct Database {
    shared: Arc<Shared>,
    class: ConnectionClass,
}

#[derive(Debug)]
struct Shared {
    servers: Servers,
    settings: ConnectionSettings,
    /// One per class, in the order of [`ConnectionClass::ALL`].
    pools: [ConnectionPool; ConnectionClass::ALL.len()],
    transactions: TransactionMetrics,
    runtime: Handle,
    /// Follows the primary, if there are several servers.
    watch: Option<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl Database {
    /// Creates a handle for background jobs without connecting, except to find the primary of several
    /// servers. All work runs on `runtime`.
    pub fn new(
        servers: &Servers,
        runtime: Handle,
        settings: ConnectionSettings,
        metrics: &ConnectionMetrics,
    ) -> Self {
        let servers = servers.with_settings(FIXED_SETTINGS);
        let pools = ConnectionClass::ALL.map(|class| {
            let servers = servers
                .with_settings(SESSION_SETTINGS)
                .with_settings([
                    ("statement_timeout", class.statement_timeout()),
                    ("plan_cache_mode", class.plan_cache_mode()),
                ])
                .with_application_name(&format!("vouchsafe {}", class.name()));
            ConnectionPool::new(servers, class.limits(settings), Some(metrics.of(class)))
        });
        let watch = servers.are_several().then(|| {
            let servers = servers.with_application_name("vouchsafe primary");
            spawn_watch(&runtime, servers)
        });
        Self {
            shared: Arc::new(Shared {
                servers,
                settings,
                pools,
                transactions: metrics.transactions().clone(),
                runtime,
                watch,
            }),
            class: ConnectionClass::Jobs,
        }
    }

    /// The same database on the connections of another class.
    pub fn on(&self, class: ConnectionClass) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            class,
        }
    }

    pub fn connection_settings(&self) -> ConnectionSettings {
        self.shared.settings
    }

    /// Options of connections to the primary without timeouts, for work that ends when another server becomes
    /// it.
    ///
    /// # Errors
    /// [`StoreError::NotWritten`] if no server is the primary.
    pub async fn find_primary(&self) -> Result<PgConnectOptions, StoreError> {
        let servers = self.shared.servers.clone();
        let found = self.spawn(async move { servers.find_primary().await.map_err(StoreError::NotWritten) });
        found.await
    }

    /// Whether a connection of its own follows the primary.
    pub fn watches_primary(&self) -> bool {
        self.shared.watch.is_some()
    }

    /// How often the database may have lost commits since the start; see [`Servers::discontinuities`].
    pub fn discontinuities(&self) -> u64 {
        self.shared.servers.discontinuities()
    }

    /// Servers with the settings of lanes and batchers.
    pub fn session_servers(&self) -> Servers {
        self.shared.servers.with_settings(SESSION_SETTINGS)
    }

    /// Runs work to completion even if the caller stops waiting: it changes the database and then the copy in
    /// memory.
    ///
    /// # Errors
    /// The error of `work`, or [`StoreError::Unknown`] if it panics.
    pub async fn run_detached<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.spawn(work).await
    }

    /// Runs work on a connection of this class, as a task of the database runtime.
    ///
    /// # Errors
    /// The error of `work`, [`StoreError::is_overload`] without a free connection, or [`StoreError::Unknown`]
    /// if it panics.
    pub fn run<T, F, W>(&self, work: W) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
        W: FnOnce(PgPool) -> F + Send + 'static,
    {
        let task = self.spawn_erased(self.run_erased(Box::new(move |pool| erase(work(pool)))));
        async move { restore_type(task.await) }
    }

    /// Runs work in a transaction and commits it, unless the work fails or abandons it. Its name is a label
    /// of the metrics and a field of its span: object and verb, as in the audit log.
    ///
    /// # Errors
    /// [`StoreError::NotWritten`] unless the commit was sent and not confirmed, or the work panicked or
    /// reached the deadline.
    pub fn transaction<T, W>(
        &self,
        name: &'static str,
        work: W,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: for<'a> FnOnce(&'a mut Transaction) -> TransactionWork<'a, T> + Send + 'static,
    {
        let work: ErasedTransactionWork = Box::new(move |transaction| erase_result(work(transaction)));
        let task = self.spawn_erased(self.run_transaction(name, work));
        async move { restore_type(task.await) }
    }

    fn run_transaction(
        &self,
        name: &'static str,
        work: ErasedTransactionWork,
    ) -> BoxFuture<'static, ErasedOutcome> {
        let (shared, class) = (Arc::clone(&self.shared), self.class);
        let work: ErasedWork = Box::new(move |pool| Box::pin(transaction::run(pool, work)));
        let observed = async move {
            let started = Instant::now();
            let outcome = shared.pools[class as usize].run_erased(work).await;
            shared.transactions.observe(name, &outcome, started.elapsed());
            outcome
        };
        Box::pin(observed.instrument(debug_span!(target: SPANS, "transaction", db.operation.name = name)))
    }

    fn run_erased(&self, work: ErasedWork) -> BoxFuture<'static, ErasedOutcome> {
        let (shared, class) = (Arc::clone(&self.shared), self.class);
        Box::pin(async move { shared.pools[class as usize].run_erased(work).await })
    }

    /// Runs a statement on a connection of this class and returns all rows.
    pub fn fetch_all<T, F>(
        &self,
        statement: Statement<F>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send + use<T, F>
    where
        T: Send + Unpin + 'static,
        F: FnMut(PgRow) -> Result<T, sqlx::Error> + Send + 'static,
    {
        self.run(|pool| async move { statement.fetch_all(&pool).await })
    }

    /// Runs a statement on a connection of this class and returns its first row, if it has one.
    pub fn fetch_optional<T, F>(
        &self,
        statement: Statement<F>,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send + use<T, F>
    where
        T: Send + Unpin + 'static,
        F: FnMut(PgRow) -> Result<T, sqlx::Error> + Send + 'static,
    {
        self.run(|pool| async move { statement.fetch_optional(&pool).await })
    }

    /// Runs a statement without rows on a connection of this class.
    pub fn execute(
        &self,
        statement: Query<'static, Postgres, PgArguments>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        self.run(|pool| async move { statement.execute(&pool).await.map(drop) })
    }

    /// Starts a task of the database runtime at once.
    ///
    /// # Errors
    /// The error of `work`, or [`StoreError::Unknown`] if it panics.
    pub fn spawn<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let task = self.spawn_erased(erase(work));
        async move { restore_type(task.await) }
    }

    fn spawn_erased(
        &self,
        work: BoxFuture<'static, ErasedOutcome>,
    ) -> impl Future<Output = ErasedOutcome> + Send + use<> {
        spawn_on(&self.shared.runtime, work)
    }
}

/// Opens a connection outside the pools, for a command that runs without the service.
///
/// # Errors
/// [`StoreError::NotWritten`]: nothing was sent.
#[boxed]
pub async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let options = options.clone().options(FIXED_SETTINGS).options(COMMAND_SETTINGS);
    open(&options).await.map_err(StoreError::NotWritten)
}

#[allow(clippy::disallowed_methods)] // belongs to no request, and ends with its database
fn spawn_watch(runtime: &Handle, servers: Servers) -> AbortHandle {
    runtime.spawn(servers.run_watch()).abort_handle()
}

/// Spawns a task in the current tracing span, so that its log events belong to the request.
#[allow(clippy::disallowed_methods)] // the only place that spawns on the database runtime
fn spawn_on(
    runtime: &Handle,
    work: BoxFuture<'static, ErasedOutcome>,
) -> impl Future<Output = ErasedOutcome> + Send + use<> {
    let task = runtime.spawn(work.in_current_span());
    // Keeps the caller's future small: it holds only the task handle.
    async move {
        task.await
            .unwrap_or_else(|_| Err(sqlx::Error::WorkerCrashed.into()))
    }
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
            let work = erase(async { Ok::<_, StoreError>(Span::current().id()) });
            let task = request.in_scope(|| spawn_on(runtime.handle(), work));
            let inside: Option<tracing::span::Id> = restore_type(runtime.block_on(task)).unwrap();
            assert!(inside.is_some() && inside == request.id(), "{inside:?}");
        });
    }
}

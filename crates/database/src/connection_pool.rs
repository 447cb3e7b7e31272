//! Connection pool that replaces itself when the database stops responding.
//!
//! A dead host, or a firewall that drops a flow, leaves a connection that neither responds nor fails. All
//! work has a deadline longer than every server-side timeout, so only a dead connection reaches it. Then the
//! pool closes all of its connections and opens new ones: later work never gets a connection with an
//! interrupted transaction. It does the same when another server becomes the primary, and when a statement
//! finds its server read-only.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, PgPool};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::erased_work::{ErasedOutcome, ErasedWork, erase, restore_type};
use super::error::{StoreError, is_read_only};
use super::servers::{Continuity, PrimaryWatch, Servers, is_refusal, moved_error};
use super::session::apply_settings;

/// Maximum wait for a free connection.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Covers the time to connect and the statement timeout of the server.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A connection that is idle for longer is closed. Firewalls and load balancers drop an idle flow after four
/// minutes or more and tell neither side: the next work on it would wait for its deadline.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    pub connections: u32,
    /// Maximum wait for a free connection.
    pub acquire_timeout: Duration,
    /// Maximum duration of work on a connection.
    pub deadline: Duration,
}

#[derive(Debug, Clone)]
pub struct PoolMetrics {
    pub in_use: Gauge,
    pub waiting: Gauge,
    pub wait_seconds: Histogram,
    pub timeouts: Counter,
}

#[derive(Debug)]
pub struct ConnectionPool {
    servers: Servers,
    limits: PoolLimits,
    /// `None` until the first work.
    current: RwLock<Option<PoolGeneration>>,
    /// One permit per connection: work holds one at a time, and waits in this queue and not in the pool's.
    permits: Semaphore,
    metrics: Option<PoolMetrics>,
}

/// Counts in a gauge until dropped.
struct Counted<'a>(Option<&'a Gauge>);

impl<'a> Counted<'a> {
    fn new(gauge: Option<&'a Gauge>) -> Self {
        gauge.map(Gauge::inc);
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.map(Gauge::dec);
    }
}

/// A pool and its number; replaced as a whole.
#[derive(Debug, Clone)]
struct PoolGeneration {
    number: u64,
    /// Number of the primary that its connections lead to.
    moves: u64,
    pool: PgPool,
}

impl ConnectionPool {
    pub fn new(servers: Servers, limits: PoolLimits, metrics: Option<PoolMetrics>) -> Self {
        let permits = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self {
            servers,
            limits,
            current: RwLock::default(),
            permits: Semaphore::new(permits),
            metrics,
        }
    }

    /// Runs work on the current pool when a connection is free. At the deadline the pool is replaced and the
    /// work fails.
    ///
    /// # Errors
    /// The error of `work`, [`StoreError::is_overload`] without a free connection, or [`StoreError::Unknown`]
    /// at the deadline.
    pub async fn run<T, F>(&self, work: impl FnOnce(PgPool) -> F + Send + 'static) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
    {
        restore_type(self.run_erased(Box::new(move |pool| erase(work(pool)))).await)
    }

    pub(crate) async fn run_erased(&self, work: ErasedWork) -> ErasedOutcome {
        let _permit = self.acquire().await?;
        let _in_use = Counted::new(self.metrics.as_ref().map(|metrics| &metrics.in_use));
        let watched = timeout(self.limits.acquire_timeout, self.servers.watch()).await;
        let mut primary = watched.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let PoolGeneration { number, pool, .. } = self.current(&primary);
        let outcome = tokio::select! {
            biased;
            done = timeout(self.limits.deadline, until_refusal(work(pool))) => done,
            // The former primary may never answer.
            () = primary.moved() => return Err(moved_error().into()),
        };
        match outcome {
            Ok(done) => {
                if done.as_ref().is_err_and(|error| is_read_only(error.cause())) {
                    self.replace(
                        number,
                        &primary,
                        "database server is read-only, replacing all connections",
                    );
                }
                done
            }
            Err(_) => {
                self.replace(
                    number,
                    &primary,
                    "database not responding, replacing all connections",
                );
                Err(timeout_error(self.limits.deadline).into())
            }
        }
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, sqlx::Error> {
        let started = Instant::now();
        let metrics = self.metrics.as_ref();
        let _waiting = Counted::new(metrics.map(|metrics| &metrics.waiting));
        let acquired = timeout(self.limits.acquire_timeout, self.permits.acquire()).await;
        if let Some(metrics) = metrics {
            metrics.wait_seconds.observe(started.elapsed().as_secs_f64());
            if acquired.is_err() {
                metrics.timeouts.inc();
            }
        }
        match acquired {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// The pool of this primary, or of a later one.
    fn current(&self, primary: &PrimaryWatch) -> PoolGeneration {
        if let Some(current) = &*self.current.read()
            && current.moves >= primary.moves()
        {
            return current.clone();
        }
        let mut current = self.current.write();
        match &mut *current {
            Some(current) if current.moves >= primary.moves() => current.clone(),
            current => self.open_next(current, primary),
        }
    }

    fn replace(&self, number: u64, primary: &PrimaryWatch, reason: &'static str) {
        let mut current = self.current.write();
        // Otherwise other work has replaced this pool already.
        if current.as_ref().is_some_and(|current| current.number == number) {
            warn!("{reason}");
            self.open_next(&mut current, primary);
        }
    }

    fn open_next(&self, current: &mut Option<PoolGeneration>, primary: &PrimaryWatch) -> PoolGeneration {
        let next = PoolGeneration {
            number: current.as_ref().map_or(0, |current| current.number + 1),
            moves: primary.moves(),
            pool: connect_lazily(&self.servers, primary, self.limits),
        };
        if let Some(replaced) = current.replace(next.clone()) {
            // `close` marks the pool as closed at once; its future would wait for the dead connections.
            drop(replaced.pool.close());
        }
        next
    }
}

tokio::task_local! {
    /// Why the connection that the running work opens is not used.
    static REFUSAL: Cell<Option<sqlx::Error>>;
}

/// Ends work whose new connection is refused. The pool would repeat the attempt for as long as it waits for a
/// connection.
async fn until_refusal(work: BoxFuture<'static, ErasedOutcome>) -> ErasedOutcome {
    let mut work = work;
    let guarded = poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => match REFUSAL.with(Cell::take) {
            Some(refusal) => Poll::Ready(Err(refusal.into())),
            None => Poll::Pending,
        },
        done @ Poll::Ready(_) => done,
    });
    REFUSAL.scope(Cell::default(), guarded).await
}

/// Checks a new connection in the task of the work that opens it.
async fn admit(continuity: &Continuity, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    match continuity.admit(connection).await {
        Err(refusal) if is_refusal(&refusal) && REFUSAL.try_with(|_| {}).is_ok() => {
            REFUSAL.with(|reported| reported.set(Some(refusal)));
            // The work ends here, and its connection with it.
            pending().await
        }
        checked => checked,
    }
}

pub fn timeout_error(after: Duration) -> sqlx::Error {
    let text = format!("the database did not answer within {} s", after.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

fn connect_lazily(servers: &Servers, primary: &PrimaryWatch, limits: PoolLimits) -> PgPool {
    let continuity = servers.continuity();
    let options = primary.options(servers).clone();
    let settings = Arc::new(options.clone());
    PgPoolOptions::new()
        .max_connections(limits.connections)
        .acquire_timeout(limits.acquire_timeout)
        .test_before_acquire(false)
        .idle_timeout(IDLE_TIMEOUT)
        .after_connect(move |connection, _| {
            let (continuity, settings) = (Arc::clone(&continuity), Arc::clone(&settings));
            Box::pin(async move {
                apply_settings(connection, &settings).await?;
                admit(&continuity, connection).await
            })
        })
        .connect_lazy_with(options)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::connection_class::{ConnectionClass, ConnectionMetrics};

    fn pool_of(connections: u32) -> ConnectionPool {
        let limits = PoolLimits {
            connections,
            acquire_timeout: ACQUIRE_TIMEOUT,
            deadline: DEADLINE,
        };
        let metrics = ConnectionMetrics::default().of(ConnectionClass::Operators);
        ConnectionPool::new(PgConnectOptions::new().into(), limits, Some(metrics))
    }

    #[tokio::test]
    async fn idle_connection_is_closed_before_a_firewall_drops_its_flow() {
        let connections = pool_of(1);
        let pool = connections.current(&connections.servers.watch().await).pool;
        let timeout = pool.options().get_idle_timeout().unwrap();
        assert!(timeout < Duration::from_mins(4), "{timeout:?}");
    }

    fn counts(pool: &ConnectionPool) -> (i64, i64, u64) {
        let metrics = pool.metrics.as_ref().unwrap();
        (
            metrics.in_use.get(),
            metrics.waiting.get(),
            metrics.timeouts.get(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn work_without_a_free_connection_is_rejected_and_counted() {
        let connections = pool_of(1);
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let holding = connections.run(|_| async { Ok(released.await.is_ok()) });
        let rejected = async {
            let rejected = connections.run(|_| std::future::ready(Ok(())));
            tokio::pin!(rejected);
            assert!((&mut rejected).now_or_never().is_none());
            assert_eq!(counts(&connections), (1, 1, 0));
            let rejected = rejected.await;
            assert!(
                rejected.as_ref().is_err_and(StoreError::is_overload),
                "{rejected:?}"
            );
            release.send(()).unwrap();
        };
        let (held, ()) = tokio::join!(holding, rejected);
        assert!(held.unwrap());
        assert_eq!(counts(&connections), (0, 0, 1));
        connections.run(|_| std::future::ready(Ok(()))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn pool_with_unresponsive_connection_is_replaced_once() {
        let connections = pool_of(2);
        let primary = connections.servers.watch().await;
        let PoolGeneration { pool: first_pool, .. } = connections.current(&primary);
        let run_hanging = || connections.run(|_| pending::<Result<(), sqlx::Error>>());
        let (first_outcome, second_outcome) = tokio::join!(run_hanging(), run_hanging());
        for outcome in [first_outcome, second_outcome] {
            assert!(matches!(outcome, Err(StoreError::Unknown(_))), "{outcome:?}");
        }
        assert!(first_pool.is_closed());
        let PoolGeneration { number, pool, .. } = connections.current(&primary);
        assert_eq!(
            (number, pool.is_closed()),
            (1, false),
            "two deadlines replace the pool once"
        );
        let response = connections.run(|_| std::future::ready(Ok(7)));
        assert_eq!(response.await.unwrap(), 7);
    }
}

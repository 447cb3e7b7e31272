//! Connection pool that replaces itself when the database stops responding.
//!
//! A dead host, or a firewall that drops a flow, leaves a connection that neither responds nor fails. All work has a deadline
//! longer than every server-side timeout, so only a dead connection reaches it. Then the pool closes all of its connections
//! and opens new ones: later work never gets a connection with an interrupted transaction.

use std::future::Future;
use std::io;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tracing::warn;

/// Maximum wait for a free connection.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Covers the acquire timeout and the statement timeout of the server.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct ConnectionPool {
    options: PgConnectOptions,
    max_connections: u32,
    deadline: Duration,
    current: RwLock<PoolGeneration>,
}

/// A pool and its number; replaced as a whole.
#[derive(Debug, Clone)]
struct PoolGeneration {
    number: u64,
    pool: PgPool,
}

impl ConnectionPool {
    pub(super) fn new(options: PgConnectOptions, max_connections: u32, deadline: Duration) -> Self {
        let current = RwLock::new(PoolGeneration {
            number: 0,
            pool: connect_lazily(&options, max_connections),
        });
        Self {
            options,
            max_connections,
            deadline,
            current,
        }
    }

    /// Runs work on the current pool. At the deadline the pool is replaced and the work fails.
    pub(super) async fn run<T, F>(&self, work: impl FnOnce(PgPool) -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let PoolGeneration { number, pool } = self.current();
        match tokio::time::timeout(self.deadline, work(pool)).await {
            Ok(done) => done,
            Err(_) => {
                self.replace(number);
                Err(timeout_error(self.deadline))
            }
        }
    }

    fn current(&self) -> PoolGeneration {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn replace(&self, number: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Other work that hit the deadline has replaced this pool already.
        if current.number != number {
            return;
        }
        warn!("database not responding, replacing all connections");
        let next = PoolGeneration {
            number: number + 1,
            pool: connect_lazily(&self.options, self.max_connections),
        };
        let replaced = std::mem::replace(&mut *current, next);
        // `close` marks the pool as closed at once; its future would wait for the dead connections.
        drop(replaced.pool.close());
    }
}

pub(super) fn timeout_error(after: Duration) -> sqlx::Error {
    let text = format!("the database did not answer within {} s", after.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

fn connect_lazily(options: &PgConnectOptions, max_connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .connect_lazy_with(options.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pool_with_unresponsive_connection_is_replaced_once() {
        let connections = ConnectionPool::new(PgConnectOptions::new(), 2, DEADLINE);
        let PoolGeneration { pool: first_pool, .. } = connections.current();
        let run_hanging = || connections.run(|_| std::future::pending::<Result<(), sqlx::Error>>());
        let (first_outcome, second_outcome) = tokio::join!(run_hanging(), run_hanging());
        for outcome in [first_outcome, second_outcome] {
            assert!(matches!(outcome, Err(sqlx::Error::Io(_))), "{outcome:?}");
        }
        assert!(first_pool.is_closed());
        let PoolGeneration { number, pool } = connections.current();
        assert_eq!(
            (number, pool.is_closed()),
            (1, false),
            "two deadlines replace the pool once"
        );
        let response = connections.run(|_| std::future::ready(Ok(7)));
        assert_eq!(response.await.unwrap(), 7);
    }
}

//! Connections for everything beside the lanes, and what becomes of those that go silent.
//!
//! A host that dies, or a firewall that forgets a flow, leaves a connection that neither answers nor fails. Rule: work has
//! a deadline, longer than every limit of the server's, so that only a dead connection gets there; then all connections
//! are given up together, none is used again, and others take their place. So no work that was broken off, wherever it
//! was, is ever met by later work.

use std::future::Future;
use std::io;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tracing::warn;

/// How long work waits for a connection.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long work may take: a connection, and a statement as long as the server lets it run.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// The connections of this moment.
#[derive(Debug)]
pub(super) struct Connections {
    options: PgConnectOptions,
    /// How many at most at a time.
    most: u32,
    /// How long work on one of them may take.
    deadline: Duration,
    current: RwLock<Generation>,
}

/// Connections that were made together, and go together.
#[derive(Debug, Clone)]
struct Generation {
    number: u64,
    pool: PgPool,
}

impl Connections {
    pub(super) fn new(options: PgConnectOptions, most: u32, deadline: Duration) -> Self {
        let current = RwLock::new(Generation {
            number: 0,
            pool: connect_lazily(&options, most),
        });
        Self {
            options,
            most,
            deadline,
            current,
        }
    }

    /// Runs work on a connection that answers.
    pub(super) async fn run<T, F>(&self, work: impl FnOnce(PgPool) -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let Generation { number, pool } = self.current();
        match tokio::time::timeout(self.deadline, work(pool)).await {
            Ok(done) => done,
            Err(_) => {
                self.give_up(number);
                Err(silent(self.deadline))
            }
        }
    }

    fn current(&self) -> Generation {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn give_up(&self, number: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Work that was broken off with it came here first.
        if current.number != number {
            return;
        }
        warn!("the database has gone silent; its connections are given up and made anew");
        let next = Generation {
            number: number + 1,
            pool: connect_lazily(&self.options, self.most),
        };
        let silent = std::mem::replace(&mut *current, next);
        // Closed from here on; nobody waits for a goodbye that does not come.
        drop(silent.pool.close());
    }
}

/// The error for what did not answer.
pub(super) fn silent(after: Duration) -> sqlx::Error {
    let text = format!("the database did not answer within {} s", after.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

fn connect_lazily(options: &PgConnectOptions, most: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .connect_lazy_with(options.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_answer_is_given_up_with_all_that_was_made_with_it() {
        let connections = Connections::new(PgConnectOptions::new(), 2, DEADLINE);
        let Generation { pool: first, .. } = connections.current();
        let silent = || connections.run(|_| std::future::pending::<Result<(), sqlx::Error>>());
        let (one, other) = tokio::join!(silent(), silent());
        for outcome in [one, other] {
            assert!(matches!(outcome, Err(sqlx::Error::Io(_))), "{outcome:?}");
        }
        assert!(first.is_closed());
        let Generation { number, pool } = connections.current();
        assert_eq!((number, pool.is_closed()), (1, false), "once for both");
        let answers = connections.run(|_| std::future::ready(Ok(7)));
        assert_eq!(answers.await.unwrap(), 7);
    }
}

//! Named transactions, with the metrics and the span of each.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use futures_util::future::BoxFuture;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use sqlx::{PgConnection, PgPool, Postgres};

use super::erased_work::ErasedOutcome;
use super::error::StoreError;

/// Runs work in a transaction of a [`Database`](crate::database::Database), and awaits it:
/// `transaction!(database, "object.verb", async |transaction| { … })`.
/// A macro because a function cannot require that the future of an `async` closure is `Send`.
#[macro_export]
macro_rules! transaction {
    ($database:expr, $name:expr, async |$transaction:ident| $work:block) => {
        $database
            .transaction($name, move |$transaction| Box::pin(async move $work))
            .await
    };
}

/// An open transaction: a connection on which statements run.
#[derive(Debug)]
pub struct Transaction {
    inner: sqlx::Transaction<'static, Postgres>,
    is_abandoned: bool,
}

impl Transaction {
    /// Rolls back at the end of the work, though it succeeds.
    pub const fn abandon(&mut self) {
        self.is_abandoned = true;
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}

/// Statements of a transaction, which borrow it.
pub type TransactionWork<'a, T> = BoxFuture<'a, Result<T, sqlx::Error>>;

pub(crate) type ErasedTransactionWork =
    Box<dyn for<'a> FnOnce(&'a mut Transaction) -> TransactionWork<'a, Box<dyn Any + Send>> + Send>;

/// Compiled for each type of result, not for each transaction.
pub(crate) fn erase_result<T: Send + 'static>(
    work: TransactionWork<'_, T>,
) -> TransactionWork<'_, Box<dyn Any + Send>> {
    Box::pin(async move { Ok(Box::new(work.await?) as Box<dyn Any + Send>) })
}

/// Commits if the work succeeds. Only a failed commit leaves the outcome open: before it, the end of the
/// connection rolls back.
pub(crate) async fn run(pool: PgPool, work: ErasedTransactionWork) -> ErasedOutcome {
    let mut transaction = Transaction {
        inner: pool.begin().await.map_err(StoreError::NotWritten)?,
        is_abandoned: false,
    };
    let result = work(&mut transaction).await.map_err(StoreError::NotWritten)?;
    if transaction.is_abandoned {
        // At once: a dropped transaction would hold its locks until its connection is back in the pool.
        let rolled_back = transaction.inner.rollback().await;
        rolled_back.map_err(StoreError::NotWritten)?;
    } else {
        transaction.inner.commit().await?;
    }
    Ok(result)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TransactionLabels {
    transaction: &'static str,
    outcome: &'static str,
}

/// Durations by name and outcome, with the wait for a connection.
#[derive(Debug, Clone)]
pub(crate) struct TransactionMetrics(Family<TransactionLabels, Histogram>);

impl Default for TransactionMetrics {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.001, 4.0, 6))
        }))
    }
}

impl TransactionMetrics {
    pub(crate) fn family(&self) -> Family<TransactionLabels, Histogram> {
        self.0.clone()
    }

    pub(crate) fn observe(&self, transaction: &'static str, outcome: &ErasedOutcome, duration: Duration) {
        let outcome = match outcome {
            Ok(_) => "done",
            Err(StoreError::NotWritten(_)) => "not_written",
            Err(StoreError::Unknown(_)) => "unknown",
        };
        let labels = TransactionLabels { transaction, outcome };
        self.0.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}

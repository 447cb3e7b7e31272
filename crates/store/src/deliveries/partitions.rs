//! Partitions per day of the log of delivery attempts: creation ahead of time, and removal after the
//! retention period.
//!
//! | change | lock on the log | while readers hold it |
//! |---|---|---|
//! | create and attach a partition | `SHARE UPDATE EXCLUSIVE` | neither waits for the other |
//! | drop a partition | `ACCESS EXCLUSIVE` | gives up after [`DROP_LOCK_TIMEOUT`] and is repeated by the next run |
//!
//! `CREATE TABLE … PARTITION OF` would take `ACCESS EXCLUSIVE` too. SQL functions with the rights of the
//! owner change the tables, because the service's role may not (`deploy/postgres/roles.sql`); nodes take
//! turns in them by an advisory lock.

use sqlx::{Executor as _, PgConnection, PgPool};
use time::{Date, Duration};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use crate::deliveries::DeliveryLog;

/// How many days ahead partitions exist.
const DAYS_AHEAD: i64 = 3;

/// How long the removal of a partition waits for readers. Inserts and new readers queue behind it.
const DROP_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";

/// Prefix of a partition's name, before the day as `YYYYMMDD`.
const PREFIX: &str = "delivery_attempts_";

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionChanges {
    pub dropped: usize,
    /// Partitions that are past the retention period and have readers.
    pub busy: usize,
}

impl DeliveryLog {
    /// Creates the partitions of the next days and drops those of which every attempt is older than `days`,
    /// by the database's clock.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer or refuses to create a partition.
    #[boxed]
    pub async fn maintain_attempt_partitions(&self, days: u16) -> Result<PartitionChanges, StoreError> {
        self.0
            .run(move |pool| async move { maintain(&pool, i64::from(days)).await })
            .await
    }
}

async fn maintain(pool: &PgPool, days: i64) -> Result<PartitionChanges, sqlx::Error> {
    // A node whose clock is ahead would drop the log of all.
    let today = sqlx::query_scalar!(r#"SELECT (now() AT TIME ZONE 'UTC')::date AS "today!""#);
    let today = today.fetch_one(pool).await?;
    if days > 0 {
        for ahead in 0..=DAYS_AHEAD {
            if let Some(day) = today.checked_add(Duration::days(ahead)) {
                create(pool, day).await?;
            }
        }
    }
    let mut changes = PartitionChanges::default();
    let first_kept = today.checked_sub(Duration::days(days)).unwrap_or(Date::MIN);
    let days = list_attempt_days(&mut *pool.acquire().await?).await?;
    for day in days.into_iter().filter(|day| *day < first_kept) {
        match drop_partition(pool, day).await {
            Ok(dropped) => changes.dropped += usize::from(dropped),
            Err(error) if is_lock_timeout(&error) => changes.busy += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(changes)
}

/// Creates the partition of a day unless it exists.
pub(super) async fn create(pool: &PgPool, day: Date) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT create_attempt_partition_v1($1)", day)
        .execute(pool)
        .await
        .map(drop)
}

/// Returns whether the partition was dropped here; another node may have dropped it.
async fn drop_partition(pool: &PgPool, day: Date) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    transaction.execute(DROP_LOCK_TIMEOUT).await?;
    let dropped = sqlx::query_scalar!(r#"SELECT drop_attempt_partition_v1($1) AS "dropped!""#, day);
    let dropped = dropped.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(dropped)
}

/// Lists the days of the partitions.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
pub async fn list_attempt_days(connection: &mut PgConnection) -> Result<Vec<Date>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"SELECT inhrelid::regclass::text AS "name!"
             FROM pg_inherits
            WHERE inhparent = 'delivery_attempts'::regclass
            ORDER BY 1"#
    );
    let names = names.fetch_all(connection).await?;
    Ok(names.iter().filter_map(|name| day_of(name)).collect())
}

/// `None` for a table that was attached by hand.
fn day_of(name: &str) -> Option<Date> {
    let format = time::macros::format_description!("[year][month][day]");
    Date::parse(name.strip_prefix(PREFIX)?, format).ok()
}

fn is_lock_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("55P03")
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn day_of_a_partition_is_in_its_name() {
        assert_eq!(day_of("delivery_attempts_20260109"), Some(date!(2026 - 01 - 09)));
        for other in [
            "delivery_attempts_archive",
            "delivery_attempts_20261301",
            "deliveries",
        ] {
            assert_eq!(day_of(other), None, "{other}");
        }
    }
}

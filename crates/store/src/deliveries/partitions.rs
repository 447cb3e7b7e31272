//! Partitions per day of the log of delivery attempts: creation ahead of time, and removal after the retention period.
//!
//! | change | lock on the log | while readers hold it |
//! |---|---|---|
//! | create and attach a partition | `SHARE UPDATE EXCLUSIVE` | neither waits for the other |
//! | drop a partition | `ACCESS EXCLUSIVE` | gives up after [`DROP_LOCK_TIMEOUT`] and is repeated by the next run |
//!
//! `CREATE TABLE … PARTITION OF` would take `ACCESS EXCLUSIVE` too. Nodes take turns by an advisory lock. The statements are dynamic
//! because the names and bounds of partitions are part of them.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool};
use time::{Date, Duration, OffsetDateTime};
use vouchsafe_domain::ids::AttemptId;

use crate::deliveries::DeliveryLog;

/// How many days ahead partitions exist.
const DAYS_AHEAD: i64 = 3;

/// How long the removal of a partition waits for readers. Inserts and new readers queue behind it.
const DROP_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";

/// Key of the advisory lock of partition changes. Any otherwise unused number.
const PARTITION_LOCK: i64 = 0x766f_7563_6861_7474;

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
    /// Creates the partitions of the next days and drops those of which every attempt is older than `days`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer or refuses to create a partition.
    pub async fn maintain_attempt_partitions(
        &self,
        now: OffsetDateTime,
        days: u16,
    ) -> Result<PartitionChanges, sqlx::Error> {
        self.0
            .run(move |pool| async move { maintain(&pool, now.date(), i64::from(days)).await })
            .await
    }
}

async fn maintain(pool: &PgPool, today: Date, days: i64) -> Result<PartitionChanges, sqlx::Error> {
    if days > 0 {
        for ahead in 0..=DAYS_AHEAD {
            if let Some(day) = today.checked_add(Duration::days(ahead)) {
                create(pool, day).await?;
            }
        }
    }
    let mut changes = PartitionChanges::default();
    let first_kept = today.checked_sub(Duration::days(days)).unwrap_or(Date::MIN);
    let ended = list(pool).await?.into_iter();
    for name in ended.filter(|name| day_of(name).is_some_and(|day| day < first_kept)) {
        match drop_partition(pool, &name).await {
            Ok(dropped) => changes.dropped += usize::from(dropped),
            Err(error) if is_lock_timeout(&error) => changes.busy += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(changes)
}

/// Creates the partition of a day unless it exists.
pub(super) async fn create(pool: &PgPool, day: Date) -> Result<(), sqlx::Error> {
    let name = name_of(day);
    if exists(pool, &name).await? {
        return Ok(());
    }
    let bound = |day: Date| AttemptId::lower_bound_at(day.midnight().assume_utc()).as_uuid();
    let (from, to) = (bound(day), bound(day.next_day().unwrap_or(Date::MAX)));
    let mut transaction = pool.begin().await?;
    lock(&mut transaction).await?;
    if exists(&mut *transaction, &name).await? {
        return Ok(());
    }
    let create = format!("CREATE TABLE {name} (LIKE delivery_attempts INCLUDING ALL)");
    transaction.execute(AssertSqlSafe(create)).await?;
    let attach = format!(
        "ALTER TABLE delivery_attempts ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
    );
    transaction.execute(AssertSqlSafe(attach)).await?;
    transaction.commit().await
}

/// Returns whether the partition was dropped here; another node may have dropped it.
async fn drop_partition(pool: &PgPool, name: &str) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    transaction.execute(DROP_LOCK_TIMEOUT).await?;
    lock(&mut transaction).await?;
    let exists = exists(&mut *transaction, name).await?;
    if exists {
        let drop = format!("DROP TABLE {name}");
        transaction.execute(AssertSqlSafe(drop)).await?;
    }
    transaction.commit().await?;
    Ok(exists)
}

async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", PARTITION_LOCK)
        .execute(connection)
        .await
        .map(drop)
}

async fn exists(executor: impl sqlx::PgExecutor<'_>, name: &str) -> Result<bool, sqlx::Error> {
    let exists = sqlx::query_scalar!(r#"SELECT to_regclass($1) IS NOT NULL AS "exists!""#, name);
    exists.fetch_one(executor).await
}

async fn list(pool: &PgPool) -> Result<Vec<String>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"SELECT inhrelid::regclass::text AS "name!"
             FROM pg_inherits
            WHERE inhparent = 'delivery_attempts'::regclass
            ORDER BY 1"#
    );
    names.fetch_all(pool).await
}

fn name_of(day: Date) -> String {
    format!(
        "{PREFIX}{:04}{:02}{:02}",
        day.year(),
        u8::from(day.month()),
        day.day()
    )
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
    fn partition_name_contains_its_day() {
        assert_eq!(name_of(date!(2026 - 01 - 09)), "delivery_attempts_20260109");
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

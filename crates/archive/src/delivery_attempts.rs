//! Archive of the log of delivery attempts: a file per day, which is a partition.

use std::path::Path;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};
use time::{Date, OffsetDateTime, Time};
use tokio::time::sleep;
use uuid::Uuid;
use vouchsafe_store::list_attempt_days;

use crate::file::{LineWriter, copy_lines};
use crate::manifest::{ArchivedFile, Manifest};
use crate::{ArchiveError, Log, Month};

const EXTENSION: &str = ".ndjson.gz";

/// How long a removal waits for readers at a time. New readers and inserts queue behind it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";

/// How often it waits, with a pause in which the others proceed.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn list_months(connection: &mut PgConnection) -> Result<Vec<Month>, sqlx::Error> {
    let days = list_attempt_days(connection).await?;
    Ok(days.into_iter().map(Month::of).collect())
}

pub(crate) async fn write(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<Vec<ArchivedFile>, ArchiveError> {
    let days = list_attempt_days(connection).await?;
    let mut files = Vec::new();
    for day in days.into_iter().filter(|day| Month::of(*day) == month) {
        let rows = sqlx::query_scalar!(
            r#"SELECT row_to_json(a)::text AS "row!"
                 FROM delivery_attempts AS a
                WHERE a.attempt_id >= $1 AND a.attempt_id < $2
                ORDER BY a.webhook_id, a.attempt_id"#,
            first_id(day),
            first_id(day.next_day().unwrap_or(day)),
        );
        let file = LineWriter::create(directory, &format!("{day}{EXTENSION}"))?;
        files.push(copy_lines(rows.fetch(&mut *connection), file).await?);
    }
    Ok(files)
}

/// Drops the partitions that have as many rows as their files.
pub(crate) async fn remove(
    connection: &mut PgConnection,
    month: Month,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    let days = list_attempt_days(connection).await?;
    for day in days.into_iter().filter(|day| Month::of(*day) == month) {
        let name = format!("{day}{EXTENSION}");
        let archived = manifest.files.iter().find(|file| file.name == name);
        let archived = archived.map_or(0, |file| file.rows.cast_signed());
        let found = drop_day(connection, day, archived)
            .await?
            .ok_or(ArchiveError::Busy {
                log: Log::DeliveryAttempts.name(),
                month,
                reason: "the partition of a day has readers",
            })?;
        if found != archived {
            return Err(ArchiveError::RowsDiffer {
                log: Log::DeliveryAttempts.name(),
                month,
                file: name,
                found,
                archived,
            });
        }
    }
    Ok(())
}

/// Returns the rows of the partition, which is dropped if it has as many; `None`: it has readers.
async fn drop_day(
    connection: &mut PgConnection,
    day: Date,
    archived: i64,
) -> Result<Option<i64>, sqlx::Error> {
    for _ in 0..LOCK_ATTEMPTS {
        let mut transaction = connection.begin().await?;
        transaction.execute(LOCK_TIMEOUT).await?;
        let dropped = sqlx::query_scalar!("SELECT drop_archived_attempts_v1($1, $2)", day, archived);
        match dropped.fetch_one(&mut *transaction).await {
            Ok(found) => {
                transaction.commit().await?;
                // The service has dropped it meanwhile, for its age.
                return Ok(Some(found.unwrap_or(archived)));
            }
            Err(error) if is_lock_timeout(&error) => {
                transaction.rollback().await?;
                sleep(LOCK_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn is_lock_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("55P03")
}

/// The least id of an attempt of a day: ids begin with milliseconds since 1970, as those of UUID version 7.
fn first_id(day: Date) -> Uuid {
    let since_1970 = day.with_time(Time::MIDNIGHT).assume_utc() - OffsetDateTime::UNIX_EPOCH;
    let milliseconds = u128::try_from(since_1970.whole_milliseconds()).unwrap_or(0);
    Uuid::from_u128(milliseconds << 80 | 0x7000_8000_0000_0000_0000)
}

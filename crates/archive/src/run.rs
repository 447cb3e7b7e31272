//! Writing archives of past months, recording them, and removing what they have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;

use crate::check::{CheckedArchive, check_archive};
use crate::file::{create_directory, sync_directory, write_synced};
use crate::manifest::{FILE_NAME, FORMAT, Manifest, PARTIAL};
use crate::{ArchiveError, Log, Month, at, audit_log, delivery_attempts, events, reconciliation};

/// Key of the advisory lock of this command. Any otherwise unused number.
const ARCHIVE_LOCK: i64 = 0x5653_6172_6368_0000;

/// Rows have times in UTC, whatever the role's default is.
const SETTINGS: [(&str, &str); 2] = [("application_name", "vouchsafe archive"), ("TimeZone", "UTC")];

/// How much of a log stays in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub log: Log,
    /// Whole months before the current one, by the database's clock.
    pub months: u16,
}

/// What the removal of archived rows needs.
#[derive(Debug, Default)]
pub struct Removal {
    /// Signs what stays of the audit log.
    pub checkpoint_key: Option<CheckpointKey>,
}

/// A month of a log that is archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedMonth {
    pub log: &'static str,
    pub month: String,
    pub rows: u64,
    pub bytes: u64,
    pub directory: PathBuf,
    /// SHA-256 of the manifest.
    pub manifest: String,
    pub is_removed: bool,
}

/// A line of `log_archives`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedArchive {
    pub log: String,
    pub month: String,
    pub rows: i64,
    pub bytes: i64,
    /// SHA-256 of the manifest.
    pub manifest: String,
    #[serde(with = "time::serde::rfc3339")]
    pub archived_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub removed_at: Option<OffsetDateTime>,
}

/// Lists what was archived, the newest month first.
///
/// # Errors
/// [`StoreError`] when the database does not answer.
#[boxed]
pub async fn list_recorded(options: &PgConnectOptions) -> Result<Vec<RecordedArchive>, StoreError> {
    let mut connection = connect(options).await?;
    let recorded = sqlx::query_as!(
        RecordedArchive,
        r#"SELECT log, to_char(month, 'YYYY-MM') AS "month!", rows, bytes, encode(manifest, 'hex') AS "manifest!", archived_at, removed_at
             FROM log_archives
            ORDER BY month DESC, log"#
    );
    let recorded = recorded.fetch_all(&mut connection).await?;
    connection.close().await?;
    Ok(recorded)
}

/// Archives each month of a log that is past its policy into a directory of its own below `to`, the oldest
/// first, and with a `removal` removes it from the database. `report` is called after each.
///
/// # Errors
/// [`ArchiveError`]: months before stay archived. A removal that has begun continues with the next call.
#[boxed]
pub async fn archive(
    options: &PgConnectOptions,
    policy: Policy,
    to: &Path,
    removal: Option<&Removal>,
    report: &mut (dyn FnMut(&ArchivedMonth) + Send),
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    let mut connection = connect(&options.clone().options(SETTINGS)).await?;
    let locked = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "locked!""#, ARCHIVE_LOCK);
    if !locked.fetch_one(&mut connection).await? {
        return Err(ArchiveError::Locked);
    }
    let archived = archive_months(&mut connection, policy, to, removal, report).await;
    // Also after a failure: the server may notice the end of the connection later than the next log begins.
    drop(connection.execute("SELECT pg_advisory_unlock_all()").await);
    drop(connection.close().await);
    archived
}

async fn archive_months(
    connection: &mut PgConnection,
    policy: Policy,
    to: &Path,
    removal: Option<&Removal>,
    report: &mut (dyn FnMut(&ArchivedMonth) + Send),
) -> Result<Vec<ArchivedMonth>, ArchiveError> {
    create_directory(to)?;
    let mut archived = Vec::new();
    for month in list_due(connection, policy).await? {
        let done = archive_month(connection, policy.log, month, to, removal).await?;
        report(&done);
        archived.push(done);
    }
    Ok(archived)
}

/// Months past the policy that have rows, and those of which a removal has begun.
async fn list_due(connection: &mut PgConnection, policy: Policy) -> Result<BTreeSet<Month>, ArchiveError> {
    // A machine whose clock is ahead would remove what is to stay.
    let today = sqlx::query_scalar!(r#"SELECT (now() AT TIME ZONE 'UTC')::date AS "today!""#);
    let first_kept = Month::of(today.fetch_one(&mut *connection).await?).minus(policy.months);
    let mut months: BTreeSet<_> = match policy.log {
        Log::DeliveryAttempts => delivery_attempts::list_months(connection).await?,
        Log::Events => events::list_months(connection).await?,
        Log::AuditLog => audit_log::list_months(connection).await?,
        Log::Reconciliation => reconciliation::list_months(connection).await?,
    }
    .into_iter()
    .collect();
    let recorded = sqlx::query!(
        r#"SELECT month, removed_at IS NOT NULL AS "is_removed!"
             FROM log_archives
            WHERE log = $1 AND removal_began_at IS NOT NULL"#,
        policy.log.name(),
    );
    for row in recorded.fetch_all(connection).await? {
        if row.is_removed {
            months.remove(&Month::of(row.month));
        } else {
            months.insert(Month::of(row.month));
        }
    }
    Ok(months.into_iter().filter(|month| *month < first_kept).collect())
}

async fn archive_month(
    connection: &mut PgConnection,
    log: Log,
    month: Month,
    to: &Path,
    removal: Option<&Removal>,
) -> Result<ArchivedMonth, ArchiveError> {
    let directory = to.join(format!("{}-{month}", log.name()));
    let recorded = find_record(connection, log, month).await?;
    let exists = directory.exists();
    match &recorded {
        Some(record) if record.is_removing || exists => {
            let is_same =
                check_archive(&directory).is_ok_and(|found| found.digest[..] == record.manifest[..]);
            if !is_same {
                return Err(match record.is_removing {
                    true => ArchiveError::Replaced(directory),
                    false => ArchiveError::Unrecorded(directory),
                });
            }
        }
        _ => {
            write_archive(connection, log, month, &directory).await?;
            // Read back, as a later check reads it.
            let written = check_archive(&directory)?;
            record(connection, log, month, &written).await?;
        }
    }
    let archive = check_archive(&directory)?;
    if let Some(removal) = removal {
        remove_month(connection, log, month, &directory, &archive, removal).await?;
    }
    let sha256 = archive.sha256();
    let manifest = archive.manifest;
    Ok(ArchivedMonth {
        log: log.name(),
        month: month.to_string(),
        rows: manifest.rows(),
        bytes: manifest.bytes(),
        directory,
        manifest: sha256,
        is_removed: removal.is_some(),
    })
}

struct Record {
    manifest: Vec<u8>,
    is_removing: bool,
}

async fn find_record(
    connection: &mut PgConnection,
    log: Log,
    month: Month,
) -> Result<Option<Record>, sqlx::Error> {
    sqlx::query_as!(
        Record,
        r#"SELECT manifest, removal_began_at IS NOT NULL AS "is_removing!" FROM log_archives WHERE log = $1 AND month = $2"#,
        log.name(),
        month.first_day(),
    )
    .fetch_optional(connection)
    .await
}

/// Writes the files to a directory beside, which gets its name once they are on disk.
async fn write_archive(
    connection: &mut PgConnection,
    log: Log,
    month: Month,
    directory: &Path,
) -> Result<(), ArchiveError> {
    let partial = directory.with_extension(PARTIAL);
    // Of an earlier run that was killed.
    remove_directory(&partial)?;
    create_directory(&partial)?;
    let now = sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#);
    let written_at = now.fetch_one(&mut *connection).await?;
    let files = match log {
        Log::DeliveryAttempts => delivery_attempts::write(connection, month, &partial).await?,
        Log::Events => events::write(connection, month, &partial).await?,
        Log::AuditLog => audit_log::write(connection, month, &partial).await?,
        Log::Reconciliation => reconciliation::write(connection, month, &partial).await?,
    };
    let identity = sqlx::query_scalar!(
        r#"SELECT format('%s %s', environment, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) AS "identity!"
             FROM deployment"#
    );
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        log: log.name().to_owned(),
        month: month.to_string(),
        written_at,
        // None was served yet.
        database: identity.fetch_optional(connection).await?.unwrap_or_default(),
        files,
    };
    if directory.exists() {
        // An earlier run was killed before it recorded its archive.
        let found = check_archive(directory)?.manifest;
        let same_files = Manifest {
            program: found.program.clone(),
            written_at: found.written_at,
            ..manifest
        };
        if found != same_files {
            return Err(ArchiveError::Unrecorded(directory.to_owned()));
        }
        return remove_directory(&partial);
    }
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| at(&partial)(error.into()))?;
    write_synced(&partial.join(FILE_NAME), &text)?;
    sync_directory(&partial)?;
    fs::rename(&partial, directory).map_err(at(directory))?;
    sync_directory(directory.parent().unwrap_or(directory))
}

fn remove_directory(path: &Path) -> Result<(), ArchiveError> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(at(path))?;
    }
    Ok(())
}

async fn record(
    connection: &mut PgConnection,
    log: Log,
    month: Month,
    archive: &CheckedArchive,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO log_archives AS a (log, month, rows, bytes, manifest)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (log, month) DO UPDATE
            SET rows = EXCLUDED.rows, bytes = EXCLUDED.bytes, manifest = EXCLUDED.manifest, archived_at = EXCLUDED.archived_at
          WHERE a.removal_began_at IS NULL",
        log.name(),
        month.first_day(),
        archive.manifest.rows().cast_signed(),
        archive.manifest.bytes().cast_signed(),
        &archive.digest[..],
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Removes the rows of an archive that was just read back and is the recorded one.
async fn remove_month(
    connection: &mut PgConnection,
    log: Log,
    month: Month,
    directory: &Path,
    archive: &CheckedArchive,
    removal: &Removal,
) -> Result<(), ArchiveError> {
    let key = removal.checkpoint_key.as_ref();
    match log {
        Log::DeliveryAttempts | Log::Reconciliation => {}
        Log::Events => events::check_removable(connection, month, directory).await?,
        Log::AuditLog if key.is_none() => return Err(ArchiveError::NoKey),
        Log::AuditLog => audit_log::check_removable(connection, month, directory).await?,
    }
    let began = sqlx::query!(
        "UPDATE log_archives
            SET removal_began_at = COALESCE(removal_began_at, now())
          WHERE log = $1 AND month = $2 AND manifest = $3",
        log.name(),
        month.first_day(),
        &archive.digest[..],
    );
    if began.execute(&mut *connection).await?.rows_affected() == 0 {
        return Err(ArchiveError::Replaced(directory.to_owned()));
    }
    match log {
        Log::DeliveryAttempts => delivery_attempts::remove(connection, month, &archive.manifest).await?,
        Log::Events => events::remove(connection, month, directory).await?,
        Log::AuditLog => {
            let key = key.ok_or(ArchiveError::NoKey)?;
            audit_log::remove(connection, month, directory, key).await?;
        }
        // With its end, in one transaction.
        Log::Reconciliation => {}
    }
    let mut transaction = connection.begin().await?;
    if log == Log::Reconciliation {
        reconciliation::remove(&mut transaction, month, &archive.manifest).await?;
    }
    let ended = sqlx::query!(
        "UPDATE log_archives SET removed_at = now() WHERE log = $1 AND month = $2",
        log.name(),
        month.first_day(),
    );
    ended.execute(&mut *transaction).await?;
    let removed = serde_json::json!({
        "month": month.to_string(),
        "rows": archive.manifest.rows(),
        "manifest": archive.sha256(),
    });
    audit::write(
        &mut transaction,
        &AuditActor::command_line(),
        AuditAction::RemoveArchived,
        log.name(),
        NO_STATE,
        Some(&removed),
    )
    .await?;
    transaction.commit().await?;
    Ok(())
}

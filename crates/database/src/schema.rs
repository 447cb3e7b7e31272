//! Schema migrations, SQL functions and rights: installation (`vouchsafe migrate`) and the check before
//! serving.
//!
//! Released migrations and functions are never edited; `migrations/released.sha256` lists them. A function
//! whose semantics change gets a new file and name with the next version, and this program calls the new
//! name. An older version of the program therefore still finds the functions that it calls, and changes
//! nothing.
//!
//! These statements are not checked at compile time: they run on databases of any schema version.

mod migrations;
mod mismatch;
mod required_program;

use std::time::Duration;

use crate::error::StoreError;
use sqlx::migrate::{MigrateError, Migration, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};

use self::migrations::AppliedMigrations;
pub use self::migrations::{MigrationKind, Migrations, ProgramRequirement};
pub use self::mismatch::SchemaMismatch;
pub use self::required_program::{DeferredMigration, find_too_old};
use crate::boxed;
use crate::database::{COMMAND_SETTINGS, FIXED_SETTINGS};
use crate::server_check::check_server;
use crate::session::open;

/// Names and source files of SQL functions. A file contains one `CREATE OR REPLACE` statement.
macro_rules! sql_functions {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../migrations/functions/", $name, ".sql")))),+]
    };
}

const FUNCTIONS: &[(&str, &str)] = sql_functions![
    "audit_entry_text_v1",
    "cap_usage_v1",
    "claim_chunks_v1",
    "commit_batch_v1",
    "commit_batch_v2",
    "count_requests_v1",
    "create_attempt_partition_v1",
    "database_history_v1",
    "drop_archived_attempts_v1",
    "drop_attempt_partition_v1",
    "event_boundary_v1",
    "free_stock_v1",
    "has_free_stock_v1",
    "is_lease_live_v1",
    "is_other_node_first_v1",
    "last_entry_before_v1",
    "last_event_before_v1",
    "last_event_before_v2",
    "list_due_purchases_v1",
    "list_free_stock_v1",
    "list_quarantined_chunks_v1",
    "next_claimable_expiry_v1",
    "order_timeline_v1",
    "quarantine_epoch_v1",
    "record_order_totals_v1",
    "remove_archived_events_v1",
    "remove_archived_reads_v1",
    "retrieve_codes_v1",
    "unclaimable_stock_v1",
];

/// Rights of the role that serves, if it exists: `vouchsafe serve` runs as neither the owner of the schema
/// nor a superuser.
const GRANTS: &str = include_str!("../../../migrations/grants.sql");

/// Name under which the table `functions` keeps the digest of [`GRANTS`].
const GRANTS_NAME: &str = "grants.sql";

/// The migrator would log once per migration that its table exists already.
const NOTICES: (&str, &str) = ("client_min_messages", "warning");

/// How long a migration waits for a lock. Statements of the service queue behind a waiting `ALTER TABLE`, so
/// it gives up soon.
const LOCK_TIMEOUT: &str = "2s";

/// Key of the advisory lock of migrations. Any otherwise unused number.
const MIGRATION_LOCK: i64 = 0x766f_7563_6873_6166;

/// `CREATE INDEX CONCURRENTLY` waits for the transactions of all other connections: a connection that waited
/// for the advisory lock within a statement would block it for ever, so waiting polls instead.
const MIGRATION_LOCK_POLL: Duration = Duration::from_millis(100);

/// The schema of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Version of the last migration.
    pub migration: i64,
    /// Number of SQL functions.
    pub functions: usize,
    /// The first migration that waits for nodes to be upgraded.
    pub deferred: Option<DeferredMigration>,
}

/// Runs the migrations, installs the functions and grants the service's role its rights, on a separate
/// connection. Concurrent calls run one after the other; `report_wait` is called once when another call runs.
/// Those that remove something come last, and wait for nodes of earlier programs.
///
/// # Errors
/// [`StoreError`] when the database does not answer, or a lock is not free within [`LOCK_TIMEOUT`];
/// [`SchemaMismatch`] as [`sqlx::Error::Configuration`] when a migration differs from the one that the
/// database has run, or when the program is too old. Completed migrations stay; a repeated call continues.
#[boxed]
pub async fn migrate(database: &PgConnectOptions, report_wait: fn()) -> Result<SchemaVersion, StoreError> {
    migrate_to(&Migrations::of_program(), database, report_wait).await
}

/// [`migrate`], with these migrations.
///
/// # Errors
/// See [`migrate`].
pub async fn migrate_to(
    migrations: &Migrations,
    database: &PgConnectOptions,
    report_wait: fn(),
) -> Result<SchemaVersion, StoreError> {
    check_server(database).await?;
    // Not a pool: it would replace a lost connection by one without the advisory lock.
    let options = database.clone().options(FIXED_SETTINGS).options(COMMAND_SETTINGS);
    let mut connection = open(&options.options([NOTICES])).await?;
    lock(&mut connection, report_wait).await?;
    let applied = AppliedMigrations::read(&mut connection).await?;
    let newest = migrations.newest();
    let mismatch = match migrations.find_changed(&applied) {
        None => find_too_old(&mut connection, newest).await?,
        changed => changed,
    };
    if let Some(mismatch) = mismatch {
        return Err(sqlx::Error::from(mismatch).into());
    }
    for migration in migrations.expanding().filter(|one| !applied.has(one)) {
        run(&mut connection, migration).await?;
    }
    set_lock_timeout(&mut connection, LOCK_TIMEOUT).await?;
    install_functions_and_rights(&mut connection, migrations.is_newest(&applied)).await?;
    let mut deferred = None;
    for (migration, required) in migrations.contracting().filter(|(one, _)| !applied.has(one)) {
        deferred = required_program::require(&mut connection, migration.version, &required).await?;
        if deferred.is_some() {
            break;
        }
        run(&mut connection, migration).await?;
    }
    // The lock ends with the connection.
    drop(connection);
    Ok(SchemaVersion {
        migration: newest,
        functions: FUNCTIONS.len(),
        deferred,
    })
}

/// Runs a migration.
async fn run(connection: &mut PgConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    // Outside a transaction, `CREATE INDEX CONCURRENTLY` blocks no statement and has to wait for running
    // transactions.
    set_lock_timeout(connection, if migration.no_tx { "0" } else { LOCK_TIMEOUT }).await?;
    if migration.no_tx {
        drop_invalid_indexes(connection).await?;
    }
    let mut migrator = Migrator::with_migrations(vec![migration.clone()]);
    // The database has others.
    migrator.set_ignore_missing(true).set_locking(false);
    let migrated = migrator.run_direct(None, connection, false).await;
    migrated.map_err(statement_error)
}

/// The error of the statement that failed, so that its SQLSTATE says whether a repetition can succeed.
fn statement_error(error: MigrateError) -> sqlx::Error {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error,
        error => error.into(),
    }
}

/// Drops what `CREATE INDEX CONCURRENTLY` leaves behind when it is killed: `IF NOT EXISTS` would take it for
/// the index.
async fn drop_invalid_indexes(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let invalid: Vec<String> = sqlx::query_scalar(
        "SELECT format('%I', c.relname)
           FROM pg_index AS i
           JOIN pg_class AS c ON c.oid = i.indexrelid
          WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace",
    )
    .fetch_all(&mut *connection)
    .await?;
    for index in invalid {
        let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
        connection.execute(AssertSqlSafe(drop)).await?;
    }
    Ok(())
}

async fn set_lock_timeout(connection: &mut PgConnection, lock_timeout: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT set_config('lock_timeout', $1, false)")
        .bind(lock_timeout)
        .execute(connection)
        .await
        .map(drop)
}

/// Waits for the advisory lock of migrations. That of a killed call is free once the server has noticed the
/// end of its connection.
async fn lock(connection: &mut PgConnection, report_wait: fn()) -> Result<(), sqlx::Error> {
    let mut report_wait = Some(report_wait);
    loop {
        let locked = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(MIGRATION_LOCK)
            .fetch_one(&mut *connection);
        if locked.await? {
            return Ok(());
        }
        if let Some(report) = report_wait.take() {
            report();
        }
        tokio::time::sleep(MIGRATION_LOCK_POLL).await;
    }
}

/// Installs missing functions and the rights, in one transaction: no program finds the functions without the
/// rights. Replaces a function with another text: only an unreleased version can have one. A program that is
/// not the newest leaves the rights: nodes of a newer version need some that its list revokes. A change of
/// the list therefore comes with a migration.
async fn install_functions_and_rights(
    connection: &mut PgConnection,
    is_newest: bool,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let outdated = list_outdated_functions(&mut transaction).await?;
    let mut installed: Vec<(&str, &str)> = FUNCTIONS
        .iter()
        .copied()
        .filter(|(name, _)| outdated.iter().any(|outdated| outdated == name))
        .collect();
    if is_newest {
        // Also when the database has them: the role may have been created since.
        installed.push((GRANTS_NAME, GRANTS));
    }
    let (names, sources): (Vec<&str>, Vec<&str>) = installed.into_iter().unzip();
    transaction.execute(AssertSqlSafe(sources.concat())).await?;
    sqlx::query(
        "INSERT INTO functions (name, digest)
         SELECT n.name, sha256(n.source) FROM unnest($1::text[], $2::bytea[]) AS n (name, source)
         ON CONFLICT (name) DO UPDATE SET digest = EXCLUDED.digest",
    )
    .bind(names)
    .bind(sources.into_iter().map(str::as_bytes).collect::<Vec<_>>())
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await
}

/// Lists the functions of this program that the database lacks or has with another text.
async fn list_outdated_functions(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    let (names, sources): (Vec<&str>, Vec<&[u8]>) = FUNCTIONS
        .iter()
        .map(|(name, source)| (*name, source.as_bytes()))
        .unzip();
    sqlx::query_scalar(
        "SELECT n.name
           FROM unnest($1::text[], $2::bytea[]) AS n (name, source)
           LEFT JOIN functions AS f ON f.name = n.name
          WHERE f.digest IS DISTINCT FROM sha256(n.source)
             OR NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.proname = n.name AND pg_function_is_visible(p.oid))
          ORDER BY n.name",
    )
    .bind(names)
    .bind(sources)
    .fetch_all(connection)
    .await
}

/// Whether the database has the rights of this program's list.
async fn has_rights(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM functions WHERE name = $1 AND digest = sha256($2::bytea))")
        .bind(GRANTS_NAME)
        .bind(GRANTS.as_bytes())
        .fetch_one(connection)
        .await
}

/// Compares the database with the migrations and functions of this program, without changing it. Ignores what
/// a newer version has added, and that it lacks migrations which remove something.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
#[boxed]
pub async fn find_mismatch(pool: &PgPool) -> Result<Option<SchemaMismatch>, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let migrations = Migrations::of_program();
    let applied = AppliedMigrations::read(&mut connection).await?;
    if let Some(changed) = migrations.find_changed(&applied) {
        return Ok(Some(changed));
    }
    if let Some(missing) = migrations.expanding().find(|migration| !applied.has(migration)) {
        return Ok(Some(SchemaMismatch::MissingMigration(missing.version)));
    }
    if let Some(too_old) = find_too_old(&mut connection, migrations.newest()).await? {
        return Ok(Some(too_old));
    }
    if let Some(outdated) = list_outdated_functions(&mut connection).await?.into_iter().next() {
        return Ok(Some(SchemaMismatch::Function(outdated)));
    }
    // The rights of a newer version include those that this one needs.
    let has_rights = !migrations.is_newest(&applied) || has_rights(&mut connection).await?;
    Ok((!has_rights).then_some(SchemaMismatch::Rights))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_function_file_is_installed_and_creates_its_name() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/functions");
        let files: BTreeSet<String> = fs::read_dir(directory)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let installed = FUNCTIONS.iter().map(|(name, _)| format!("{name}.sql")).collect();
        assert_eq!(files, installed);
        for (name, source) in FUNCTIONS {
            assert!(
                source.contains(&format!("CREATE OR REPLACE FUNCTION {name}(")),
                "{name}"
            );
            let version = name
                .rsplit_once("_v")
                .and_then(|(_, version)| version.parse::<u32>().ok());
            assert!(
                version.is_some(),
                "{name} does not end with its version, such as _v1"
            );
        }
    }
}

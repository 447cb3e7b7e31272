//! Migrations that remove something: they wait for nodes of earlier programs, and earlier programs do not
//! start afterwards.

use std::fs;
use std::path::Path;

use sqlx::Executor as _;
use sqlx::migrate::Migrator;
use tokio::runtime::Handle;
use vouchsafe_private_postgres::Durability;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::schema::{self, Migrations, SchemaVersion};
use vouchsafe_store::{PgNode, PgStore};
use vouchsafe_test_harness::Database;

/// The first migration of which a node reports whether its program has it.
const REPORTED: i64 = 10;

const CONTRACT: &str = "-- contract: 10 (1.1.0)\nDROP TABLE obsolete;\n";
const EXPAND: &str = "-- expand\nCREATE TABLE newer (id bigint PRIMARY KEY);\n";

/// A node of a program that does not report its last migration; it has taken over from one that did.
const EARLIER_NODE: &str = "
    INSERT INTO nodes (node, incarnation, lease_until, renewed_at, latest_clock, version, started_at, program_migration,
                       program_incarnation)
    VALUES ('earlier', 2, now() + interval '1 hour', now(), now(), '1.0.0-rc.1', now(), 10, 1)";

async fn execute(database: &Database, statement: &'static str) {
    database.connect().await.execute(statement).await.unwrap();
}

async fn scalar<T>(database: &Database, query: &'static str) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    sqlx::query_scalar(query)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap()
}

/// The migrations of a later program, which removes a table and adds another one.
async fn later_migrations() -> Migrations {
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for file in fs::read_dir(source).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "sql") && !file.ends_with("grants.sql") {
            fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    fs::write(directory.path().join("9001_contract.sql"), CONTRACT).unwrap();
    fs::write(directory.path().join("9002_expand.sql"), EXPAND).unwrap();
    Migrator::new(directory.path()).await.unwrap().into()
}

async fn migrate(database: &Database, migrations: &Migrations) -> SchemaVersion {
    schema::migrate_to(migrations, &database.options(), || ())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_removes_waits_for_live_nodes_of_earlier_programs() {
    let database = Database::create().await;
    execute(&database, "CREATE TABLE obsolete ()").await;
    execute(&database, EARLIER_NODE).await;
    let later = later_migrations().await;
    let deferred = migrate(&database, &later).await.deferred.unwrap();
    assert_eq!(
        deferred.to_string(),
        "migration 9001 removes what these nodes use: earlier (1.0.0-rc.1); upgrade them to version 1.1.0 or a later one, and run \
         `vouchsafe migrate` again"
    );
    let is_there = "SELECT concat_ws(' ', to_regclass('obsolete'), to_regclass('newer'))";
    assert_eq!(scalar::<String>(&database, is_there).await, "obsolete newer");
    let required = "SELECT concat_ws(' ', migration, version) FROM required_program";
    assert_eq!(scalar::<String>(&database, required).await, "1 1.0.0-rc.1");

    execute(
        &database,
        "UPDATE nodes SET incarnation = 3, program_incarnation = 3, version = '1.1.0'",
    )
    .await;
    assert_eq!(migrate(&database, &later).await.deferred, None);
    assert_eq!(scalar::<String>(&database, is_there).await, "newer");
    assert_eq!(scalar::<String>(&database, required).await, "10 1.1.0");
    assert_eq!(migrate(&database, &later).await.deferred, None);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_removes_does_not_wait_for_nodes_that_have_ended() {
    let database = Database::create().await;
    execute(&database, "CREATE TABLE obsolete ()").await;
    execute(&database, EARLIER_NODE).await;
    execute(
        &database,
        "UPDATE nodes SET lease_until = now() - interval '1 second'",
    )
    .await;
    assert_eq!(migrate(&database, &later_migrations().await).await.deferred, None);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn program_that_uses_what_was_removed_starts_in_no_environment_and_changes_nothing() {
    let database = Database::create_on(Durability::Durable).await;
    execute(
        &database,
        "UPDATE required_program SET migration = 9999, version = '9.9.9'",
    )
    .await;
    let newest = Migrations::of_program().newest();
    let expected = format!(
        "the database needs a program with migration 9999, and version {} ends with migration {newest}: \
         install version 9.9.9 or a later one",
        env!("CARGO_PKG_VERSION")
    );
    for environment in [Environment::Production, Environment::Sandbox] {
        let store = PgStore::open(database.service_options(), Handle::current());
        let refused = store.prepare(environment).await.unwrap_err().to_string();
        assert_eq!(refused, expected, "{environment}");
    }
    let error = schema::migrate(&database.options(), || ()).await.unwrap_err();
    assert!(error.to_string().contains(&expected), "{error}");
    database.remove().await;
}

/// The requirement is raised after the start has read it, and before the node registers.
#[tokio::test(flavor = "multi_thread")]
async fn node_of_an_earlier_program_that_registers_after_a_removal_does_not_start() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current());
    store.prepare(Environment::Sandbox).await.unwrap();
    drop(PgNode::start(&store.database, "a".to_owned()).await.unwrap());
    let reported: i64 = scalar(
        &database,
        "SELECT program_migration FROM nodes WHERE program_incarnation = incarnation",
    )
    .await;
    assert!(reported >= REPORTED, "{reported}");
    execute(
        &database,
        "UPDATE required_program SET migration = 9999, version = '9.9.9'",
    )
    .await;
    let refused = PgNode::start(&store.database, "a".to_owned()).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("install version 9.9.9 or a later one"),
        "{refused}"
    );
    let is_live = "SELECT bool_or(is_lease_live_v1(lease_until, renewed_at)) FROM nodes";
    assert!(!scalar::<bool>(&database, is_live).await);
    database.remove().await;
}

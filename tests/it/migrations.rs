//! Schema installation: `vouchsafe migrate`, the check of `serve` in production, and upgrades of released
//! schemas.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use vouchsafe_private_postgres::Durability;
use vouchsafe_store::schema;

use crate::commands::utf8;
use crate::production::{start_production, startup_error};
use vouchsafe_test_harness::Database;
use vouchsafe_test_harness::{Instance, program};

/// A description of each object in the schema, as an upgrade must reproduce it: columns in physical order,
/// constraints, indexes, triggers, functions, sequences, comments. Without the partitions per day, which the
/// service creates.
const SCHEMA_OBJECTS: &str = "
    SELECT concat_ws(' ', 'column', c.oid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                     a.attidentity, pg_get_expr(d.adbin, d.adrelid), c.reloptions, col_description(c.oid, a.attnum))
      FROM pg_class AS c
      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
     UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, convalidated, pg_get_constraintdef(oid))
      FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace
       AND conrelid NOT IN (SELECT oid FROM pg_class WHERE relispartition)
     UNION ALL
    SELECT 'index ' || indexdef FROM pg_indexes
     WHERE schemaname = 'public' AND tablename NOT IN (SELECT relname FROM pg_class WHERE relispartition)
     UNION ALL
    SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
     UNION ALL
    SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
     UNION ALL
    SELECT 'installed ' || name || ' ' || encode(digest, 'hex') FROM functions
     UNION ALL
    SELECT 'migration ' || version || ' ' || encode(checksum, 'hex') FROM _sqlx_migrations
     ORDER BY 1";

async fn schema_objects(database: &Database) -> Vec<String> {
    sqlx::query_scalar(SCHEMA_OBJECTS)
        .fetch_all(&mut database.connect().await)
        .await
        .unwrap()
}

async fn execute(database: &Database, statements: &'static str) {
    database.connect().await.execute(statements).await.unwrap();
}

fn migrate_command(database: &Database) -> Output {
    let mut command = Command::new(program());
    command
        .args(["migrate", "--json"])
        .env("DATABASE_URL", database.options().to_url_lossy().as_str());
    command.output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn production_serves_only_after_migrate() {
    let database = Database::create_empty(Durability::Durable);
    database.create_roles().await;
    let stderr = startup_error(&database);
    assert!(
        stderr.contains("the database lacks migration 1: run `vouchsafe migrate`"),
        "{stderr}"
    );
    let tables = sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
    let tables: i64 = tables.fetch_one(&mut database.connect().await).await.unwrap();
    assert_eq!(tables, 0, "a refused start changes nothing");

    let output = migrate_command(&database);
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let functions = fs::read_dir("migrations/functions").unwrap().count();
    assert_eq!(report["functions"], json!(functions));
    assert!(report["migration"].as_i64() >= Some(1), "{report}");
    let migrated = schema_objects(&database).await;
    assert!(migrate_command(&database).status.success());
    assert_eq!(
        schema_objects(&database).await,
        migrated,
        "a repeated call changes nothing"
    );

    let mut service = start_production(&database);
    assert_eq!(service.stop(), Some(0));
    assert_eq!(schema_objects(&database).await, migrated, "serve changes nothing");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn production_with_missing_or_changed_schema_is_refused() {
    let database = Database::create_on(Durability::Durable).await;
    let complete = schema_objects(&database).await;
    for (damage, expected) in [
        (
            "DROP FUNCTION commit_batch_v2",
            "the database lacks the function commit_batch_v2, or has another text of it: run `vouchsafe migrate`",
        ),
        (
            "UPDATE functions SET digest = '' WHERE name = 'free_stock_v1'",
            "the database lacks the function free_stock_v1, or has another text of it: run `vouchsafe migrate`",
        ),
    ] {
        execute(&database, damage).await;
        let stderr = startup_error(&database);
        assert!(stderr.contains(expected), "{stderr}");
        schema::migrate(&database.options(), || ()).await.unwrap();
        assert_eq!(schema_objects(&database).await, complete, "{damage}");
    }
    execute(&database, "UPDATE _sqlx_migrations SET checksum = ''").await;
    let stderr = startup_error(&database);
    assert!(stderr.contains(EARLIER_DATABASE), "{stderr}");
    database.remove().await;
}

/// Simulates a database that a newer version has migrated.
const NEWER_SCHEMA: &str = "
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'newer', true, '', 0);
    ALTER TABLE orders ADD COLUMN newer text;
    CREATE FUNCTION commit_batch_v9999() RETURNS integer LANGUAGE sql RETURN 1;
    INSERT INTO functions (name, digest) VALUES ('commit_batch_v9999', '');";

#[tokio::test(flavor = "multi_thread")]
async fn older_version_on_newer_schema_serves_and_changes_nothing() {
    for environment in ["production", "sandbox"] {
        let database = Database::create_on(Durability::Durable).await;
        execute(&database, NEWER_SCHEMA).await;
        let newer = schema_objects(&database).await;
        let mut service = if environment == "production" {
            start_production(&database)
        } else {
            let url = database.options().to_url_lossy().to_string();
            Instance::start_with(&[("DATABASE_URL", Box::leak(url.into_boxed_str()))])
        };
        assert_eq!(service.stop(), Some(0));
        assert_eq!(schema_objects(&database).await, newer, "serve in {environment}");
        schema::migrate(&database.options(), || ()).await.unwrap();
        assert_eq!(schema_objects(&database).await, newer, "migrate");
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_migrate_leaves_the_rights_that_a_newer_version_granted() {
    let database = Database::create_on(Durability::Durable).await;
    execute(&database, "GRANT DELETE ON feeds TO vouchsafe_service").await;
    let has_right = async || {
        let right = "SELECT has_table_privilege('vouchsafe_service', 'feeds', 'DELETE')";
        let right = sqlx::query_scalar::<_, bool>(right);
        right.fetch_one(&mut database.connect().await).await.unwrap()
    };
    execute(&database, NEWER_SCHEMA).await;
    schema::migrate(&database.options(), || ()).await.unwrap();
    assert!(has_right().await);
    execute(&database, "DELETE FROM _sqlx_migrations WHERE version = 9999").await;
    schema::migrate(&database.options(), || ()).await.unwrap();
    assert!(!has_right().await, "the version that owns the list renews it");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_gives_up_when_a_lock_is_held() {
    let database = Database::create_on(Durability::ForTests).await;
    execute(&database, "DELETE FROM functions").await;
    let mut holder = database.connect().await;
    holder
        .execute("BEGIN; LOCK TABLE functions IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let error = schema::migrate(&database.options(), || ()).await.unwrap_err();
    let code = error.sqlstate().unwrap();
    assert_eq!(code, "55P03", "{error}");
    drop(holder);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_migrations_all_succeed() {
    let database = Database::create_empty(Durability::ForTests);
    let options = database.options();
    let (one, two, three) = tokio::join!(
        schema::migrate(&options, || ()),
        schema::migrate(&options, || ()),
        schema::migrate(&options, || ())
    );
    assert_eq!(one.unwrap(), two.unwrap());
    three.unwrap();
    database.remove().await;
}

/// A release with the migrations and functions of its database, those of earlier releases included.
struct Release {
    version: String,
    files: Vec<String>,
}

/// Reads `released.sha256`, and compares each file with its hash: the schema is set up as it was released.
fn releases() -> Vec<Release> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let list = fs::read_to_string(root.join("released.sha256")).unwrap();
    let (mut releases, mut files) = (Vec::<Release>::new(), Vec::new());
    for line in list.lines() {
        if let Some(version) = line.strip_prefix("# ") {
            releases.push(Release {
                version: version.to_owned(),
                files: files.clone(),
            });
            continue;
        }
        let (hash, file) = line.split_once("  ").unwrap();
        let text = fs::read(root.join(file)).unwrap();
        assert_eq!(hex::encode(Sha256::digest(text)), hash, "{file}");
        files.push(file.to_owned());
        releases.last_mut().unwrap().files.push(file.to_owned());
    }
    releases
}

/// Applies the files of a release, as its `vouchsafe migrate` did.
async fn apply_release(database: &Database, release: &Release) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let directory = tempfile::tempdir().unwrap();
    let (functions, migrations): (Vec<_>, Vec<_>) = release
        .files
        .iter()
        .partition(|file| file.starts_with("functions/"));
    assert!(!migrations.is_empty(), "{} has no migrations", release.version);
    for file in migrations {
        fs::copy(root.join(file), directory.path().join(file)).unwrap();
    }
    let mut connection = database.connect().await;
    let migrator = Migrator::new(directory.path()).await.unwrap();
    migrator.run(&mut connection).await.unwrap();
    for file in functions {
        let source = fs::read_to_string(root.join(file)).unwrap();
        let name = Path::new(file).file_stem().unwrap().to_str().unwrap();
        connection.execute(AssertSqlSafe(source.clone())).await.unwrap();
        sqlx::query("INSERT INTO functions (name, digest) VALUES ($1, sha256($2))")
            .bind(name)
            .bind(source.as_bytes())
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_each_release_migrates_to_current_schema() {
    let fresh = Database::create_on(Durability::ForTests).await;
    let expected = schema_objects(&fresh).await;
    let releases = releases();
    assert_eq!(releases[0].version, "1.0.0-rc.1");
    for release in &releases {
        let released = Database::create_empty(Durability::ForTests);
        apply_release(&released, release).await;
        schema::migrate(&released.options(), || ()).await.unwrap();
        assert_eq!(schema_objects(&released).await, expected, "{}", release.version);
        released.remove().await;
    }
    fresh.remove().await;
}

/// What the comparison of schemas is for: a release whose table is not as the migrations of this program
/// leave it.
#[tokio::test(flavor = "multi_thread")]
async fn schema_that_a_migration_leaves_behind_is_detected() {
    let fresh = Database::create_on(Durability::ForTests).await;
    for change in [
        "ALTER TABLE orders ADD COLUMN earlier text",
        "DROP INDEX orders_open",
        "ALTER TABLE credentials ALTER COLUMN key_hash DROP NOT NULL",
        "CREATE FUNCTION free_stock_v1() RETURNS integer LANGUAGE sql RETURN 1",
    ] {
        let released = Database::create_empty(Durability::ForTests);
        apply_release(&released, &releases()[0]).await;
        execute(&released, change).await;
        schema::migrate(&released.options(), || ()).await.unwrap();
        assert_ne!(
            schema_objects(&released).await,
            schema_objects(&fresh).await,
            "{change}"
        );
        released.remove().await;
    }
    fresh.remove().await;
}

const EARLIER_DATABASE: &str =
    "the database was set up by a version before 1.0.0-rc.1, and later versions do not migrate it";

/// Versions and builds from before the first release have another first migration.
#[tokio::test(flavor = "multi_thread")]
async fn database_from_before_the_first_release_is_refused_and_unchanged() {
    let database = Database::create_on(Durability::Durable).await;
    execute(
        &database,
        "UPDATE _sqlx_migrations SET checksum = sha384('earlier') WHERE version = 1;
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'of a development build', true, '', 0)",
    )
    .await;
    let earlier = schema_objects(&database).await;
    let output = migrate_command(&database);
    assert_eq!(output.status.code(), Some(1));
    let stderr = utf8(&output.stderr);
    assert!(stderr.contains(EARLIER_DATABASE), "{stderr}");
    let stderr = startup_error(&database);
    assert!(stderr.contains(EARLIER_DATABASE), "{stderr}");
    let directory = tempfile::tempdir().unwrap();
    let mut sandbox = Command::new(program());
    sandbox.arg("--data-dir").arg(directory.path()).arg("serve");
    sandbox.env("DATABASE_URL", database.options().to_url_lossy().as_str());
    let output = sandbox.output().unwrap();
    assert!(!output.status.success());
    let stderr = utf8(&output.stderr);
    assert!(stderr.contains(EARLIER_DATABASE), "{stderr}");
    assert_eq!(schema_objects(&database).await, earlier);
    database.remove().await;
}

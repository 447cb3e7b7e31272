//! Databases that cannot be used are refused with the cause, and defaults of roles have no effect.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::{PgStore, schema};
use vouchsafe_test_harness::Database;

/// Why a migration of a database is refused.
async fn refusal(options: &PgConnectOptions) -> String {
    schema::migrate(options, || ()).await.unwrap_err().to_string()
}

async fn execute(connection: &mut PgConnection, sql: &str) {
    connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn other_encodings_and_schemas_are_refused_by_name() {
    let database = Database::create().await;
    let superuser = database.superuser_options();
    let mut connection = PgConnection::connect_with(&superuser).await.unwrap();
    let name = format!("latin_{}", std::process::id());
    execute(
        &mut connection,
        &format!("CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"),
    )
    .await;
    let latin = refusal(&superuser.clone().database(&name)).await;
    assert!(
        latin.contains("encoding LATIN1") && latin.contains("UTF8"),
        "{latin}"
    );
    execute(&mut connection, &format!("DROP DATABASE {name}")).await;

    let own_schema = superuser.clone().options([("search_path", "own, public")]);
    execute(&mut connection, "CREATE SCHEMA own").await;
    let refused = refusal(&own_schema).await;
    assert!(
        refused.contains("schema own") && refused.contains("SET search_path = public"),
        "{refused}"
    );
    let nowhere = superuser.options([("search_path", "absent")]);
    let refused = refusal(&nowhere).await;
    assert!(refused.contains("no schema"), "{refused}");
    connection.close().await.unwrap();
    database.remove().await;
}

/// Defaults that hosting services and administrators set.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_the_role_change_nothing() {
    let database = Database::create().await;
    let mut connection = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    for (setting, value) in [
        ("statement_timeout", "1ms"),
        ("lock_timeout", "1ms"),
        ("idle_in_transaction_session_timeout", "1ms"),
        ("idle_session_timeout", "1ms"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("synchronous_commit", "off"),
        ("row_security", "off"),
        ("IntervalStyle", "iso_8601"),
        ("DateStyle", "German, DMY"),
        ("TimeZone", "Asia/Kathmandu"),
        ("jit", "on"),
    ] {
        let name: String = sqlx::query_scalar("SELECT current_database()::text")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        execute(
            &mut connection,
            &format!("ALTER DATABASE {name} SET {setting} = '{value}'"),
        )
        .await;
    }
    let options = database.options();
    schema::migrate(&options, || ()).await.unwrap();
    let store = PgStore::open(options, Handle::current());
    store.prepare(Environment::Sandbox).await.unwrap();
    let settings: Vec<(String, String)> = store
        .database
        .run(|pool| async move {
            sqlx::query_as(
                "SELECT name, setting
                   FROM pg_settings
                  WHERE name IN ('idle_session_timeout', 'default_transaction_isolation', 'default_transaction_read_only',
                                 'synchronous_commit', 'row_security', 'IntervalStyle', 'DateStyle', 'TimeZone', 'jit')
                  ORDER BY name COLLATE \"C\"",
            )
            .fetch_all(&pool)
            .await
        })
        .await
        .unwrap();
    let expected = [
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("idle_session_timeout", "0"),
        ("jit", "off"),
        ("row_security", "on"),
        ("synchronous_commit", "on"),
    ];
    assert_eq!(
        settings,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    connection.close().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn role_that_may_not_migrate_prepares_a_migrated_sandbox() {
    let database = Database::create().await;
    schema::migrate(&database.options(), || ()).await.unwrap();
    let store = PgStore::open(database.service_options(), Handle::current());
    store.prepare(Environment::Sandbox).await.unwrap();
    database.remove().await;
}

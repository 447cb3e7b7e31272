//! What the error of a failed operation says about its effect.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use sqlx::{Executor as _, PgPool};
use tokio::runtime::Handle;
use vouchsafe_domain::operator::Role;
use vouchsafe_store::{AuditActor, ConnectionMetrics, ConnectionSettings, PgStore, StoreError};
use vouchsafe_test_harness::Database;

/// Tables whose rows fail the commit, and end the connection during it.
const FAILING_COMMITS: &str = "
    CREATE FUNCTION fail_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF TG_TABLE_NAME = 'ended' THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        ELSE
            RAISE EXCEPTION 'no';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TABLE rejected ();
    CREATE TABLE ended ();
    CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON rejected DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION fail_commit();
    CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON ended DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION fail_commit()";

const fn is_not_written(error: &StoreError) -> bool {
    matches!(error, StoreError::NotWritten(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_is_not_written_only_if_the_server_rejects_it() {
    let database = Database::create().await;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    pool.execute(FAILING_COMMITS).await.unwrap();
    let store = PgStore::open(database.options(), Handle::current()).database;
    let insert = async |statement: &'static str| {
        let inserted = store.transaction("row.insert", move |transaction| {
            Box::pin(async move { (&mut **transaction).execute(statement).await.map(drop) })
        });
        inserted.await.unwrap_err()
    };
    for (statement, expected) in [
        ("SELECT 1 / 0", true),
        ("INSERT INTO rejected DEFAULT VALUES", true),
        ("SELECT pg_terminate_backend(pg_backend_pid())", true),
        ("INSERT INTO ended DEFAULT VALUES", false),
    ] {
        let error = insert(statement).await;
        assert_eq!(is_not_written(&error), expected, "{statement}: {error:?}");
    }
    // The second one is what a connection pooler reports that has lost its server.
    for statement in [
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '08006'; END $$",
    ] {
        let error = store.execute(sqlx::query(statement)).await.unwrap_err();
        assert!(!is_not_written(&error), "outside a transaction: {error:?}");
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_commits_unless_its_work_fails_or_abandons_it() {
    let database = Database::create().await;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    pool.execute("CREATE TABLE written (name text)").await.unwrap();
    let metrics = ConnectionMetrics::default();
    let (settings, runtime) = (ConnectionSettings::DEFAULT, Handle::current());
    let store = PgStore::open_with(database.options(), runtime, settings, &metrics).database;
    for (name, succeeds) in [("committed", true), ("abandoned", true), ("failed", false)] {
        let written = store.transaction("row.write", move |transaction| {
            Box::pin(async move {
                let insert = sqlx::query("INSERT INTO written VALUES ($1)").bind(name);
                insert.execute(&mut **transaction).await?;
                match name {
                    "abandoned" => transaction.abandon(),
                    "failed" => return Err(sqlx::Error::RowNotFound),
                    _ => {}
                }
                Ok(())
            })
        });
        let written = written.await;
        assert_eq!(written.is_ok(), succeeds, "{name}: {written:?}");
        assert!(written.as_ref().err().is_none_or(is_not_written), "{written:?}");
    }
    let rows = sqlx::query_scalar::<_, String>("SELECT name FROM written");
    assert_eq!(rows.fetch_all(&pool).await.unwrap(), ["committed"]);

    let (mut registry, mut text) = (Registry::default(), String::new());
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    for (outcome, count) in [("done", 2), ("not_written", 1)] {
        let series = format!(
            "database_transaction_seconds_count{{transaction=\"row.write\",outcome=\"{outcome}\"}} {count}\n"
        );
        assert!(text.contains(&series), "{series}{text}");
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_before_anything_is_sent_is_not_written() {
    let database = Database::create().await;
    for options in [
        database.options().socket("/nonexistent"),
        database.options().database("nonexistent"),
        database.options().username("nonexistent"),
    ] {
        let store = PgStore::open(options, Handle::current()).database;
        let error = store.execute(sqlx::query("SELECT 1")).await.unwrap_err();
        assert!(is_not_written(&error), "{error:?}");
    }
    // Its vault is locked.
    let operators = PgStore::open(database.options(), Handle::current()).operators;
    let created = operators.create("jane".parse().unwrap(), Role::Viewer, true, AuditActor::service());
    let error = created.await.unwrap_err();
    assert!(is_not_written(&error), "{error:?}");
    database.remove().await;
}

/// The first commit that changes a purchase loses its connection.
const LOSE_FIRST_COMMIT: &str = "
    INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency, quantity, expiry_policy,
                           requested_at)
    VALUES ('01900000-0000-7000-8000-000000000001', gen_random_uuid(), gen_random_uuid(), 0, 'v', 'gift', 100, 'USD', 1, '{}', now());
    CREATE SEQUENCE commits;
    CREATE FUNCTION lose_first_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF nextval('commits') = 1 THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER lose AFTER UPDATE ON purchases DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION lose_first_commit()";

/// A claim that was committed would find the purchase claimed when it is repeated, as if another node had it.
#[tokio::test(flavor = "multi_thread")]
async fn claim_whose_commit_is_not_confirmed_is_an_error_and_a_release_is_repeated() {
    let database = Database::create().await;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    pool.execute(LOSE_FIRST_COMMIT).await.unwrap();
    let purchases = PgStore::open(database.options(), Handle::current()).purchases;
    let writes = purchases.start_writes("one".to_owned());
    let due = purchases.list_due("v".to_owned(), 1).await.unwrap();
    let purchase_id = due[0].purchase_id;
    let lost = writes.claim(purchase_id).await.unwrap_err();
    assert!(lost.0.contains("not confirmed"), "{lost}");
    purchases
        .release_claims("one".to_owned(), "v".to_owned())
        .await
        .unwrap();
    assert!(writes.claim(purchase_id).await.unwrap().is_some());
    pool.execute("SELECT setval('commits', 1, false)").await.unwrap();
    writes.release(purchase_id, None).await.unwrap();
    assert_eq!(purchases.list_due("v".to_owned(), 1).await.unwrap(), []);
    database.remove().await;
}

//! Rights of the role that serves in production: enough for every statement, and none to rewrite history.

use std::fs;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_test_harness::Database;

/// SQLSTATE of a missing right.
const NO_RIGHT: &str = "42501";

/// SQLSTATE of the trigger that freezes rows.
const REFUSED_BY_TRIGGER: &str = "P0001";

fn error_code(error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(|error| error.code());
    code.unwrap_or_else(|| panic!("{error}")).into_owned()
}

/// A plan checks the rights of its statement, though not those within the functions that it calls.
#[tokio::test(flavor = "multi_thread")]
async fn service_role_has_the_rights_of_every_checked_statement() {
    let database = Database::create().await;
    let mut service = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    let mut checked = 0;
    let mut refused = Vec::new();
    for file in fs::read_dir(".sqlx").unwrap() {
        let file: Value = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
        let statement = file["query"].as_str().unwrap();
        let parameters = file["describe"]["parameters"]["Left"].as_array().unwrap();
        let nulls = vec!["NULL"; parameters.len()].join(", ");
        let arguments = if nulls.is_empty() {
            nulls
        } else {
            format!("({nulls})")
        };
        let explain = format!("PREPARE s AS {statement}; EXPLAIN EXECUTE s{arguments}; DEALLOCATE s");
        if !statement.trim_start().starts_with(['S', 'I', 'U', 'D', 'W']) || statement.starts_with("SET") {
            continue;
        }
        // `vouchsafe archive` runs as the owner.
        let is_of_owner = ["INSERT INTO log_archives", "UPDATE log_archives"]
            .iter()
            .any(|write| statement.starts_with(write));
        match service.execute(AssertSqlSafe(explain)).await {
            Ok(_) if is_of_owner => refused.push(format!("the service may run {statement}")),
            Ok(_) => checked += 1,
            Err(error) if is_of_owner && error_code(&error) == NO_RIGHT => {
                service.execute("DEALLOCATE ALL").await.unwrap();
            }
            Err(error) => {
                refused.push(format!("{}: {error}: {statement}", error_code(&error)));
                service.execute("DEALLOCATE ALL").await.unwrap();
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
    assert!(checked > 250, "{checked}");
    database.remove().await;
}

const ROWS: &str = "
    INSERT INTO audit_log (operator, action, subject) VALUES ('somebody', 'stock.void', 'x');
    INSERT INTO audit_checkpoints (number, entries, hash, mac) SELECT 1, ARRAY[audit_id], sha256(''), '' FROM audit_log;
    INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
    VALUES ('00000000-0000-0000-0000-000000000001', 1, 1, '00000000-0000-0000-0000-000000000002', 1, '', now())";

#[tokio::test(flavor = "multi_thread")]
async fn service_role_cannot_rewrite_ledger_audit_log_checkpoints_or_events() {
    let database = Database::create().await;
    let mut owner = database.connect().await;
    owner.execute(ROWS).await.unwrap();
    let mut attacker = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    let mut attacks: Vec<String> = Vec::new();
    for (table, column) in [
        ("ledger", "amount"),
        ("audit_log", "subject"),
        ("audit_log", "partner_id"),
        ("audit_checkpoints", "hash"),
        ("events", "body"),
    ] {
        attacks.extend([
            format!("UPDATE {table} SET {column} = {column}"),
            format!("SELECT FROM {table} FOR UPDATE"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table}"),
            format!("ALTER TABLE {table} DISABLE TRIGGER ALL"),
            format!("ALTER TABLE {table} DROP COLUMN {column}"),
            format!("ALTER TABLE {table} RENAME TO old"),
            format!("DROP TABLE {table}"),
            format!("CREATE TRIGGER t BEFORE INSERT ON {table} EXECUTE FUNCTION refuse_change()"),
            format!("CREATE RULE r AS ON INSERT TO {table} DO INSTEAD NOTHING"),
        ]);
    }
    attacks.extend(
        [
            // An entry of its own making between older ones.
            "INSERT INTO audit_log (audit_id, operator, action, subject) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'b', 'c')",
            "SELECT setval('audit_log_audit_id_seq', 1)",
            "SELECT nextval('audit_log_audit_id_seq')",
            "CREATE TABLE public.t (id integer)",
            "CREATE SCHEMA s",
            "CREATE FUNCTION public.f() RETURNS integer LANGUAGE sql RETURN 1",
            "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "DROP FUNCTION refuse_change() CASCADE",
            "ALTER FUNCTION create_attempt_partition_v1 SET search_path = pg_temp",
            "SET session_replication_role = replica",
            "SET ROLE vouchsafe",
            "GRANT UPDATE ON ledger TO vouchsafe_service",
            "COPY ledger TO PROGRAM 'cat'",
            "UPDATE functions SET digest = ''",
            "DELETE FROM _sqlx_migrations",
        ]
        .map(ToOwned::to_owned),
    );
    let mut succeeded = Vec::new();
    for attack in attacks {
        match attacker.execute(AssertSqlSafe(attack.clone())).await {
            Ok(_) => succeeded.push(attack),
            Err(error) => assert!(
                [NO_RIGHT, REFUSED_BY_TRIGGER].contains(&error_code(&error).as_str()),
                "{attack}: {error}"
            ),
        }
    }
    // Postgres grants no right without an error, but warns.
    succeeded.retain(|attack| !attack.starts_with("GRANT"));
    assert!(succeeded.is_empty(), "{succeeded:#?}");
    let changeable: bool = sqlx::query_scalar("SELECT has_any_column_privilege('ledger', 'UPDATE')")
        .fetch_one(&mut attacker)
        .await
        .unwrap();
    assert!(!changeable);
    database.remove().await;
}

/// The functions that run as the owner use the tables of the schema, whatever the caller has created under
/// their names.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_tables_do_not_deceive_functions_of_the_owner() {
    let database = Database::create().await;
    let mut owner = database.connect().await;
    owner.execute(ROWS).await.unwrap();
    let mut attacker = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    let plan = "
        CREATE TEMPORARY TABLE delivery_attempts (id integer);
        CREATE TEMPORARY TABLE delivery_attempts_20300101 (id integer);
        SET search_path = pg_temp, public;
        SELECT create_attempt_partition_v1('2030-01-01')";
    attacker.execute(plan).await.unwrap();
    let state = "SELECT to_regclass('public.delivery_attempts_20300101') IS NOT NULL";
    let state: bool = sqlx::query_scalar(state).fetch_one(&mut owner).await.unwrap();
    assert!(state);
    // Only partitions of the log are dropped, not other tables that are named like one.
    owner
        .execute("CREATE TABLE delivery_attempts_20300102 (id integer)")
        .await
        .unwrap();
    let dropped: (bool, bool) = sqlx::query_as(
        "SELECT drop_attempt_partition_v1('2030-01-01'), drop_attempt_partition_v1('2030-01-02')",
    )
    .fetch_one(&mut attacker)
    .await
    .unwrap();
    assert_eq!(dropped, (true, false));
    database.remove().await;
}

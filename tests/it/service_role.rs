//! Database roles: production serves with the role of deploy/postgres/roles.sql alone, and everything it does
//! works with that role.

use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use vouchsafe_private_postgres::Durability;

use crate::audit_export::run_verify;
use crate::production::{add_certified_partner, start_production, start_production_with, startup_error_with};
use vouchsafe_test_harness::{
    Database, Operator, Sale, WAIT_TIMEOUT, eventually, expect_success, wait_until,
};

#[tokio::test(flavor = "multi_thread")]
async fn role_with_a_right_too_many_is_refused_in_production() {
    let database = Database::create_on(Durability::Durable).await;
    let mut superuser = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    let owner = database.options().to_url_lossy();
    let admin = database.superuser_options().to_url_lossy();
    let service = database.service_options().to_url_lossy();
    for (url, grant, revoke, expected) in [
        (
            &admin,
            "",
            "",
            "the database role vouchsafe_admin is a superuser, but production",
        ),
        (&owner, "", "", "the database role vouchsafe owns "),
        (
            &service,
            "GRANT vouchsafe TO vouchsafe_service",
            "REVOKE vouchsafe FROM vouchsafe_service",
            "the database role vouchsafe_service owns ",
        ),
        (
            &service,
            "ALTER ROLE vouchsafe_service CREATEROLE",
            "ALTER ROLE vouchsafe_service NOCREATEROLE",
            "may create roles",
        ),
        (
            &service,
            "GRANT pg_execute_server_program TO vouchsafe_service",
            "REVOKE pg_execute_server_program FROM vouchsafe_service",
            "may act as pg_execute_server_program",
        ),
        (
            &service,
            "GRANT CREATE ON SCHEMA public TO vouchsafe_service",
            "REVOKE CREATE ON SCHEMA public FROM vouchsafe_service",
            "may create objects in the schema public",
        ),
        (
            &service,
            "GRANT DELETE ON events TO PUBLIC",
            "REVOKE DELETE ON events FROM PUBLIC",
            "has DELETE on events",
        ),
        (
            &service,
            "GRANT UPDATE (amount) ON ledger TO vouchsafe_service",
            "REVOKE UPDATE (amount) ON ledger FROM vouchsafe_service",
            "has UPDATE on ledger",
        ),
    ] {
        superuser.execute(AssertSqlSafe(grant.to_owned())).await.unwrap();
        let stderr = startup_error_with(&database, &[("DATABASE_URL", url.as_str())]);
        superuser.execute(AssertSqlSafe(revoke.to_owned())).await.unwrap();
        assert!(stderr.contains(expected), "{expected}: {stderr}");
        assert!(stderr.contains("deploy/postgres/roles.sql"), "{stderr}");
    }
    start_production(&database).stop();
    database.remove().await;
}

async fn wait_until_empty(connection: &mut PgConnection, statement: &'static str) {
    eventually(statement, WAIT_TIMEOUT, async || {
        let rows = connection.execute(statement).await.unwrap().rows_affected();
        (rows == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_role_sells_and_cleans_up() {
    let database = Database::create_on(Durability::Durable).await;
    let mut owner = database.connect().await;
    // Past its retention period.
    owner
        .execute("SELECT create_attempt_partition_v1('2020-01-01')")
        .await
        .unwrap();
    let mut service = start_production(&database);
    let mut operator = Operator::of(&service);
    let mut partner = add_certified_partner(&service, &mut operator).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    let sale = Sale {
        product_id: "cards".to_owned(),
        denomination: "25",
    };
    operator
        .send_json(
            hyper::Method::PUT,
            "/admin/v1/categories/retail",
            &json!({ "name": "Retail" }),
        )
        .await;
    operator.put_product(&sale.product_id, json!({})).await;
    operator.restock(&sale, 2, "2099-12-31").await;
    let body = r#"{"url":"https://shop.invalid/"}"#;
    expect_success(
        &partner.send_signed(hyper::Method::POST, "/webhooks", body).await,
        201,
    );
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    assert_eq!(order["status"], "DELIVERED");
    let order_id = order["order_id"].as_str().unwrap();
    expect_success(&partner.get_codes(order_id).await, 200);
    let waiting = "
        SELECT 'old partition' WHERE to_regclass('delivery_attempts_20200101') IS NOT NULL
         UNION ALL
        SELECT 'checkpoint' WHERE NOT EXISTS (SELECT FROM audit_checkpoints)
         UNION ALL
        SELECT 'attempt' WHERE NOT EXISTS (SELECT FROM delivery_attempts)";
    wait_until_empty(&mut owner, waiting).await;
    assert_eq!(service.stop(), Some(0));
    let log = service.log();
    assert!(!log.contains("permission denied"), "{log}");
    let findings = vouchsafe_verify::verify(&database.service_options())
        .await
        .unwrap();
    let broken: Vec<_> = findings.iter().filter(|finding| !finding.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
    drop(owner);
    database.remove().await;
}

/// Names of the broken invariants.
fn broken_invariants(database: &Database, checkpoints: &std::path::Path) -> Vec<String> {
    let invariants = run_verify(database, "--checkpoints", checkpoints).into_iter();
    let broken = invariants.filter(|(_, holds)| !holds);
    broken.map(|(name, _)| name).collect()
}

/// Computes the checkpoints from 1 anew, as an attacker does who has changed an entry.
const RECOMPUTE: &str = "
    DO $$
    DECLARE
        v_row    record;
        v_before bytea := '';
    BEGIN
        FOR v_row IN SELECT * FROM audit_checkpoints ORDER BY number LOOP
            v_before := sha256(v_before || convert_to(
                (SELECT string_agg(audit_entry_text_v1(a), E'\\n' ORDER BY a.audit_id)
                   FROM audit_log AS a
                  WHERE a.audit_id = ANY (v_row.entries)), 'UTF8'));
            UPDATE audit_checkpoints SET hash = v_before WHERE number = v_row.number;
        END LOOP;
    END
    $$";

#[tokio::test(flavor = "multi_thread")]
async fn forged_rows_and_rewritten_audit_log_are_found_by_verify() {
    let database = Database::create_on(Durability::Durable).await;
    let directory = tempfile::tempdir().unwrap();
    let exported = directory.path().join("checkpoints.ndjson");
    let setting = ("VOUCHSAFE_CHECKPOINT_FILE", exported.to_str().unwrap());
    let mut service = start_production_with(&database, &[setting]);
    let mut operator = Operator::of(&service);
    let partner = add_certified_partner(&service, &mut operator).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    let mut owner = database.connect().await;
    let open = "SELECT audit_id FROM audit_log WHERE audit_id NOT IN (SELECT unnest(entries) FROM audit_checkpoints)";
    wait_until_empty(&mut owner, open).await;
    let number: i64 = sqlx::query_scalar("SELECT max(number) FROM audit_checkpoints")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    wait_until("the export of the last checkpoint", WAIT_TIMEOUT, || {
        let text = std::fs::read_to_string(&exported).unwrap_or_default();
        (text.lines().count() == usize::try_from(number).unwrap()).then_some(())
    });
    assert_eq!(service.stop(), Some(0));
    assert_eq!(broken_invariants(&database, &exported), [""; 0]);
    let unfrozen = "ALTER TABLE audit_log DISABLE TRIGGER USER; ALTER TABLE audit_checkpoints DISABLE TRIGGER USER;
                    CREATE TABLE saved_log AS TABLE audit_log; CREATE TABLE saved_checkpoints AS TABLE audit_checkpoints;";
    let restore = "DELETE FROM audit_log; DELETE FROM audit_checkpoints;
                   INSERT INTO audit_log OVERRIDING SYSTEM VALUE SELECT * FROM saved_log;
                   INSERT INTO audit_checkpoints SELECT * FROM saved_checkpoints";
    owner.execute(unfrozen).await.unwrap();
    let rename =
        "UPDATE audit_log SET subject = 'another' WHERE audit_id = (SELECT min(audit_id) FROM audit_log);";
    for (attack, expected) in [
        (rename.to_owned(), &["audit.checkpoints"][..]),
        (
            format!("{rename} {RECOMPUTE}"),
            &["audit.checkpoints.mac", "audit.checkpoints.exported"],
        ),
        (
            format!(
                "{rename} {RECOMPUTE}; ALTER TABLE audit_checkpoints ALTER COLUMN mac DROP NOT NULL; \
                 UPDATE audit_checkpoints SET mac = NULL"
            ),
            &["audit.checkpoints.mac", "audit.checkpoints.exported"],
        ),
        (
            "DELETE FROM audit_checkpoints; DELETE FROM audit_log WHERE action NOT LIKE 'wallet.%'"
                .to_owned(),
            &["access.audited", "audit.checkpoints.exported"],
        ),
    ] {
        sqlx::raw_sql(AssertSqlSafe(attack.clone()))
            .execute(&mut owner)
            .await
            .unwrap();
        assert_eq!(broken_invariants(&database, &exported), expected, "{attack}");
        sqlx::raw_sql(restore).execute(&mut owner).await.unwrap();
        assert_eq!(broken_invariants(&database, &exported), [""; 0]);
    }
    // What the service's role may write.
    let mut attacker = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    for (attack, expected) in [
        (
            "INSERT INTO audit_checkpoints (number, entries, hash, mac)
             SELECT max(number) + 1, ARRAY[9999999], sha256('x'), sha256('x') FROM audit_checkpoints",
            &["audit.checkpoints", "audit.checkpoints.mac"][..],
        ),
        (
            "INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, created_at)
             SELECT partner_id, gen_random_uuid(), currency, sequence + 1, 'TOP_UP', 100, balance + 100, now() FROM wallets",
            &["money.chain"],
        ),
        (
            "WITH paid AS (UPDATE wallets SET balance = balance + 100, sequence = sequence + 1 RETURNING *)
             INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, created_at)
             SELECT partner_id, gen_random_uuid(), currency, sequence, 'TOP_UP', 100, balance, now() FROM paid",
            &["booking.audited"],
        ),
        (
            "INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
             SELECT partner_id, 7, 1, gen_random_uuid(), 1, '{}', now() FROM partners",
            &["event.numbers", "event.order"],
        ),
    ] {
        attacker.execute("BEGIN").await.unwrap();
        attacker.execute(attack).await.unwrap();
        let findings = vouchsafe_verify::check(&mut attacker).await.unwrap();
        let broken: Vec<_> = findings.iter().filter(|finding| !finding.holds).collect();
        assert!(
            broken.iter().any(|finding| finding.name == expected[0]),
            "{attack}: {broken:?}"
        );
        attacker.execute("ROLLBACK").await.unwrap();
    }
    drop((owner, attacker));
    database.remove().await;
}

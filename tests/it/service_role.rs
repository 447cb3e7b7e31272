//! Database roles: production serves with the role of deploy/postgres/roles.sql alone, and everything it does works with that role.

use std::time::Duration;

use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use vouchsafe_private_postgres::Durability;

use crate::production::{add_certified_partner, start_production, startup_error_with};
use vouchsafe_test_harness::{Database, Operator, Sale, expect_success};

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

/// Covers several rounds of the background tasks.
const TIMEOUT: Duration = Duration::from_secs(90);

async fn wait_until_empty(connection: &mut PgConnection, statement: &'static str) {
    let wait = async {
        while connection.execute(statement).await.unwrap().rows_affected() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.expect(statement);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_role_sells_and_cleans_up() {
    let database = Database::create_on(Durability::Durable).await;
    let mut owner = database.connect().await;
    // A partition past its retention period, and an audit entry of version 0.2.0 that waits for its partner.
    owner
        .execute(
            "SELECT create_attempt_partition_v1('2020-01-01');
             INSERT INTO audit_log (operator, action, subject) VALUES ('somebody', 'stock.void', 'x');
             INSERT INTO audit_partner_backfill (audit_id) SELECT max(audit_id) FROM audit_log",
        )
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
        SELECT 'partners of old entries' FROM audit_partner_backfill
         UNION ALL
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

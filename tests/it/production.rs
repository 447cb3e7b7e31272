//! Production environment: certified credentials only, no mock vendor, no start without keys or durability.

use std::io::{Read as _, Write as _};
use std::process::Command;

use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_private_postgres::Durability;

use vouchsafe_test_harness::Database;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, expect_error, expect_success, program, unique,
};

pub(crate) const MASTER_KEY: &str = "abababababababababababababababababababababababababababababababab";
const TOKEN: &str = "a token of thirty-two characters";

/// Starts a production service on this database.
pub(crate) fn start_production(database: &Database) -> Instance {
    start_production_with(database, &[])
}

/// Same, with further settings.
pub(crate) fn start_production_with(database: &Database, settings: &[(&str, &str)]) -> Instance {
    let url = database.service_options().to_url_lossy().to_string();
    let url: &'static str = Box::leak(url.into_boxed_str());
    let production = [
        ("VOUCHSAFE_ENVIRONMENT", "production"),
        ("DATABASE_URL", url),
        ("VOUCHSAFE_MASTER_KEY", MASTER_KEY),
        ("VOUCHSAFE_OPERATOR_TOKEN", TOKEN),
        ("VOUCHSAFE_FOUR_EYES", "off"),
    ];
    let service = Instance::start_with(&[&production, settings].concat());
    // Production gets the token from the environment; the test client reads it from a file.
    std::fs::write(service.data_dir().join("operator-token"), TOKEN).unwrap();
    service
}

#[tokio::test(flavor = "multi_thread")]
async fn production_credential_requires_certification_and_agreement() {
    let database = Database::create_on(Durability::Durable).await;
    let service = start_production(&database);
    let mut operator = Operator::of(&service);
    let body = json!({ "name": unique("Acme"), "allowlist": ["127.0.0.0/8"] });
    let created = operator
        .send_json(Method::POST, "/admin/v1/partners", &body)
        .await;
    assert_eq!(created["credential"], Value::Null);
    let path = format!("/admin/v1/partners/{}", created["partner_id"].as_str().unwrap());
    let credentials = format!("{path}/credentials");
    for terms in [json!({}), json!({ "certified_at": "2026-01-01T00:00:00Z" })] {
        operator.send_json(Method::PATCH, &path, &terms).await;
        let response = operator.call_json(Method::POST, &credentials, "{}").await;
        expect_error(&response, 409, "CERTIFICATION_REQUIRED");
    }
    let terms = json!({ "agreement_signed_at": "2026-02-01T00:00:00Z" });
    operator.send_json(Method::PATCH, &path, &terms).await;
    let response = operator.call_json(Method::POST, &credentials, "{}").await;
    let issued = expect_success(&response, 201);
    assert!(issued["api_key"].as_str().unwrap().starts_with("vs_live_"));
    let mut partner = partner_with(&service, &created, &issued);
    expect_success(&partner.get("/wallets").await, 200);
    drop(service);
    database.remove().await;
}

/// Adds a partner with a certification, an agreement and a live credential.
pub(crate) async fn add_certified_partner(service: &Instance, operator: &mut Operator) -> Partner {
    let body = json!({ "name": unique("Acme"), "allowlist": ["127.0.0.0/8"] });
    let created = operator
        .send_json(Method::POST, "/admin/v1/partners", &body)
        .await;
    let path = format!("/admin/v1/partners/{}", created["partner_id"].as_str().unwrap());
    let terms =
        json!({ "certified_at": "2026-01-01T00:00:00Z", "agreement_signed_at": "2026-01-01T00:00:00Z" });
    operator.send_json(Method::PATCH, &path, &terms).await;
    let issued = operator
        .send_json(Method::POST, &format!("{path}/credentials"), &json!({}))
        .await;
    partner_with(service, &created, &issued)
}

fn partner_with(service: &Instance, created: &Value, issued: &Value) -> Partner {
    let text = |name: &str| issued[name].as_str().unwrap();
    let credentials = Credentials::new(text("api_key"), text("api_secret")).unwrap();
    let partner_id = created["partner_id"].as_str().unwrap().to_owned();
    Partner::new(&service.base_url(), partner_id, credentials)
}

#[tokio::test(flavor = "multi_thread")]
async fn production_drops_no_response_and_observes_nothing() {
    let database = Database::create_on(Durability::Durable).await;
    let mut service = start_production(&database);
    let mut operator = Operator::of(&service);
    let mut partner = add_certified_partner(&service, &mut operator).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    let sale = Sale {
        product_id: "sbx-lost-response".to_owned(),
        denomination: "25",
    };
    let category = json!({ "name": "Retail" });
    operator
        .send_json(Method::PUT, "/admin/v1/categories/retail", &category)
        .await;
    operator.put_product(&sale.product_id, json!({})).await;
    operator.restock(&sale, 1, "2099-12-31").await;
    let key = unique("key");
    let first = partner.order_with_key(&key, &sale, 1).await;
    let order = expect_success(&first, 201);
    assert_eq!(order["status"], "DELIVERED");
    let replayed = partner.order_with_key(&key, &sale, 1).await;
    assert_eq!((replayed.status, &replayed.body), (first.status, &first.body));
    let order_id = order["order_id"].as_str().unwrap();
    expect_success(&partner.get_codes(order_id).await, 200);
    assert_eq!(service.stop(), Some(0), "a shutdown writes all observations");
    let count = sqlx::query_scalar("SELECT count(*) FROM certification_observations");
    let observations: i64 = count.fetch_one(&mut database.connect().await).await.unwrap();
    assert_eq!(observations, 0);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn production_has_no_sandbox_routes() {
    let database = Database::create_on(Durability::Durable).await;
    let service = start_production(&database);
    let mut operator = Operator::of(&service);
    let mut partner = add_certified_partner(&service, &mut operator).await;
    let checklist = format!("/admin/v1/partners/{}/certification", partner.partner_id);
    for method in [Method::GET, Method::DELETE] {
        let response = operator.call_json(method, &checklist, "").await;
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    expect_error(&partner.get("/certification").await, 404, "ROUTE_NOT_FOUND");
    let credentials = partner.client.credentials().clone();
    let mut client = PartnerClient::new(&service.base_url(), credentials).unwrap();
    for path in [
        "faults",
        "clock",
        "orders/ord_1/approve",
        "orders/ord_1/reject",
        "orders/ord_1/advance",
        "orders/ord_1/fail",
    ] {
        let (path, headers) = (format!("/sandbox/{path}"), HeaderMap::new());
        let response = client
            .send_signed(Method::POST, &path, "", headers)
            .await
            .unwrap();
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    // Endpoint tests in production send no wrong signature.
    let body = r#"{"url":"https://shop.invalid/"}"#;
    let created = expect_success(&partner.send_signed(Method::POST, "/webhooks", body).await, 201);
    let path = format!("/webhooks/{}/test", created["webhook_id"].as_str().unwrap());
    let result = expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
    assert_eq!(
        json!([
            result["delivered"],
            result["wrong_signature"],
            result["duplicate"]
        ]),
        json!([false, null, null])
    );
    drop(service);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_production_are_for_this_machine_or_a_token() {
    let database = Database::create_on(Durability::Durable).await;
    for (settings, headers, status) in [
        (&[][..], "", 200),
        (&[], "x-forwarded-for: 203.0.113.7\r\n", 403),
        (&[], "via: 1.1 proxy\r\n", 403),
        (&[("VOUCHSAFE_METRICS_TOKEN", TOKEN)], "", 401),
        (
            &[("VOUCHSAFE_METRICS_TOKEN", TOKEN)],
            "authorization: Bearer a token of thirty-two characters\r\n",
            200,
        ),
    ] {
        let mut service = start_production_with(&database, settings);
        let mut connection = std::net::TcpStream::connect(service.admin_address()).unwrap();
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n{headers}\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{settings:?} {headers}: {response}"
        );
        assert_eq!(response.contains("vouchsafe_http_requests"), status == 200);
        service.stop();
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mock_vendor_in_production_is_rejected() {
    let database = Database::create_on(Durability::Durable).await;
    let service = start_production(&database);
    let mut operator = Operator::of(&service);
    let (path, json) = ("/admin/v1/vendors/mock", "application/json");
    let response = operator
        .call(Method::PUT, path, json, r#"{"adapter":"mock"}"#)
        .await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "adapter");
    assert_eq!(operator.get("/admin/v1/vendors").await["data"], json!([]));
    let response = operator
        .call(Method::PUT, path, json, r#"{"adapter":"manual"}"#)
        .await;
    expect_success(&response, 201);
    drop(service);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_without_fsync_is_rejected_unchanged() {
    let database = Database::create_empty(Durability::ForTests);
    let stderr = startup_error(&database);
    assert!(stderr.contains("runs with fsync = off"), "{stderr}");
    assert_eq!(count_tables(&database).await, 0);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_other_environment_is_rejected_without_fencing() {
    let database = Database::create_on(Durability::Durable).await;
    let mut connection = database.connect().await;
    let stamp = "INSERT INTO deployment (environment) VALUES ('sandbox')";
    sqlx::query(stamp).execute(&mut connection).await.unwrap();
    let stderr = startup_error(&database);
    assert!(stderr.contains("belongs to the sandbox environment"), "{stderr}");
    let nodes: i64 = sqlx::query_scalar("SELECT count(*) FROM nodes")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(nodes, 0);
    drop(connection);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_with_too_few_connections_is_rejected_without_fencing() {
    let database = Database::create_on(Durability::Durable).await;
    let url = database.service_options().to_url_lossy();
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("VOUCHSAFE_PARTNER_CONNECTIONS", "100"),
    ];
    let stderr = startup_error_with(&database, &settings);
    let expected = "this node needs 137 connections, and the database permits 97";
    assert!(stderr.contains(expected), "{stderr}");
    let nodes: i64 = sqlx::query_scalar("SELECT count(*) FROM nodes")
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    assert_eq!(nodes, 0);
    database.remove().await;
}

#[test]
fn invalid_setting_is_reported_before_database_connection() {
    const URL: &str = "postgres://nobody@127.0.0.1:1/nothing?sslmode=verify-full";
    for (setting, value, expected) in [
        ("VOUCHSAFE_MASTER_KEY", "short", "VOUCHSAFE_MASTER_KEY"),
        (
            "VOUCHSAFE_MASTER_KEY",
            "",
            "production requires VOUCHSAFE_MASTER_KEY",
        ),
        (
            "VOUCHSAFE_MASTER_KEY_PREVIOUS",
            "short",
            "VOUCHSAFE_MASTER_KEY_PREVIOUS",
        ),
        ("VOUCHSAFE_KMS", "vault-transit", "requires VOUCHSAFE_VAULT_ADDR"),
        ("DATABASE_URL", "", "production requires DATABASE_URL"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL"),
        (
            "DATABASE_URL",
            "postgres://nobody@127.0.0.1:1/nothing",
            "add sslmode=verify-full to DATABASE_URL",
        ),
        (
            "VOUCHSAFE_OPERATOR_TOKEN",
            "short",
            "the operator token needs at least 32 characters",
        ),
        (
            "VOUCHSAFE_METRICS_TOKEN",
            "short",
            "VOUCHSAFE_METRICS_TOKEN needs at least 32 characters",
        ),
        ("VOUCHSAFE_OIDC_CLIENT_ID", "console", "set all of them or none"),
        (
            "VOUCHSAFE_AUDIT_EXPORT_URL",
            "https://collector.example",
            "requires VOUCHSAFE_AUDIT_EXPORT_SECRET_FILE",
        ),
        ("VOUCHSAFE_HTTP_ADDR", "0.0.0.0:0", "production requires TLS"),
        (
            "VOUCHSAFE_TLS_CERTIFICATE_FILE",
            "/nowhere/at/all",
            "set VOUCHSAFE_TLS_KEY_FILE too",
        ),
        (
            "VOUCHSAFE_OPERATOR_TOKEN_FILE",
            "/nowhere/at/all",
            "VOUCHSAFE_OPERATOR_TOKEN_FILE",
        ),
        ("VOUCHSAFE_LANES", "0", "--lanes"),
        ("VOUCHSAFE_LOG", "info,vouchsafe=loud", "VOUCHSAFE_LOG"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command
            .args(["--environment", "production", "serve", "--data-dir"])
            .arg(directory.path());
        command
            .env("DATABASE_URL", URL)
            .env("VOUCHSAFE_MASTER_KEY", MASTER_KEY)
            .env(setting, value);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{setting}={value}: {stderr}");
        assert!(stderr.contains(expected), "{setting}={value}: {stderr}");
        assert!(!stderr.contains("waiting for the database"), "{stderr}");
    }
}

#[test]
fn database_without_verified_tls_is_rejected_by_service_and_commands() {
    for command in ["serve", "migrate", "verify"] {
        let directory = tempfile::tempdir().unwrap();
        let output = Command::new(program())
            .args(["--environment", "production", "--master-key", MASTER_KEY, command])
            .current_dir(directory.path())
            .env(
                "DATABASE_URL",
                "postgres://nobody:hidden@127.0.0.1:1/nothing?sslmode=require",
            )
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {stderr}");
        assert!(
            stderr.contains("add sslmode=verify-full to DATABASE_URL"),
            "{command}: {stderr}"
        );
        assert!(!stderr.contains("hidden"), "{command}: {stderr}");
    }
}

/// Returns the error output of a production service that fails to start on this database.
pub(crate) fn startup_error(database: &Database) -> String {
    startup_error_with(database, &[])
}

/// Starts as the owner of the database unless the settings have another URL.
pub(crate) fn startup_error_with(database: &Database, settings: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command
        .arg("--data-dir")
        .arg(directory.path())
        .args(["--environment", "production", "serve"]);
    command.env("DATABASE_URL", database.options().to_url_lossy().as_str());
    command
        .env("VOUCHSAFE_MASTER_KEY", MASTER_KEY)
        .env("VOUCHSAFE_OPERATOR_TOKEN", TOKEN)
        .envs(settings.iter().copied());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn count_tables(database: &Database) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap()
}

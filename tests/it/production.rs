//! What is different where money is real: no credential without papers, and no start without keys.

use hyper::Method;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use vouchsafe_load::signer::Credentials;

use crate::database::Database;
use crate::support::{Instance, Operator, Partner, accepted, refused, unique};

const MASTER_KEY: &str = "abababababababababababababababababababababababababababababababab";
const TOKEN: &str = "a token of thirty-two characters";

/// A service of production, on this database.
fn start(database: &Database) -> Instance {
    let url: &'static str = Box::leak(database.options().to_url_lossy().to_string().into_boxed_str());
    let service = Instance::start_with(&[
        ("VOUCHSAFE_ENVIRONMENT", "production"),
        ("DATABASE_URL", url),
        ("VOUCHSAFE_MASTER_KEY", MASTER_KEY),
        ("VOUCHSAFE_OPERATOR_TOKEN", TOKEN),
    ]);
    // In production the token is handed in; the operator of these tests reads it from the file of a sandbox.
    std::fs::write(service.data_dir().join("operator-token"), TOKEN).unwrap();
    service
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_needs_certification_and_agreement() {
    let database = Database::create().await;
    let service = start(&database);
    let mut operator = Operator::of(&service);
    let body = json!({ "name": unique("Acme"), "allowlist": ["127.0.0.0/8"] });
    let made = operator.put(Method::POST, "/admin/v1/partners", &body).await;
    assert_eq!(made["credential"], Value::Null);
    let path = format!("/admin/v1/partners/{}", made["partner_id"].as_str().unwrap());
    let credentials = format!("{path}/credentials");
    for papers in [json!({}), json!({ "certified_at": "2026-01-01T00:00:00Z" })] {
        operator.put(Method::PATCH, &path, &papers).await;
        let answer = operator
            .call(Method::POST, &credentials, "application/json", "{}")
            .await;
        refused(&answer, 409, "CERTIFICATION_REQUIRED");
    }
    operator
        .put(
            Method::PATCH,
            &path,
            &json!({ "agreement_signed_at": "2026-02-01T00:00:00Z" }),
        )
        .await;
    let answer = operator
        .call(Method::POST, &credentials, "application/json", "{}")
        .await;
    let issued = accepted(&answer, 201);
    let text = |name: &str| issued[name].as_str().unwrap();
    assert!(text("api_key").starts_with("vs_live_"));
    let credentials = Credentials::new(text("api_key"), text("api_secret")).unwrap();
    let partner_id = made["partner_id"].as_str().unwrap().to_owned();
    accepted(
        &Partner::new(&service.base_url(), partner_id, credentials)
            .get("/wallets")
            .await,
        200,
    );
    drop(service);
    database.remove().await;
}

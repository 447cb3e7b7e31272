//! Scopes of partner credentials: what each route requires, and inheritance by rotation.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Instance, Listener, Operator, Partner, expect_error, expect_success, id_of, order_body, shared, unique,
};

use crate::idempotency::assert_replay;

const SCOPES: [&str; 6] = ["orders", "codes", "read", "payouts", "webhooks", "credentials"];

/// The partner with a new credential of these scopes.
async fn with_scopes(operator: &mut Operator, partner: &Partner, scopes: &[&str]) -> Partner {
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator
        .send_json(Method::POST, &path, &json!({ "scopes": scopes }))
        .await;
    partner.with_credential(&issued)
}

/// A new partner whose client has a credential of these scopes.
async fn add_partner_with_scopes(operator: &mut Operator, scopes: &[&str]) -> Partner {
    let partner = operator.add_partner("100").await;
    with_scopes(operator, &partner, scopes).await
}

fn expect_missing(response: &ApiResponse, scope: &str) {
    let error = expect_error(response, 403, "MISSING_SCOPE");
    assert_eq!(error["details"], json!([{ "field": "scope", "message": scope }]));
    assert!(error["message"].as_str().unwrap().contains(scope), "{error}");
}

/// The documented authenticated operations: method, path and required scope.
fn operations() -> Vec<(Method, String, String)> {
    let paths = Listener::Partner.document().served()["paths"]
        .as_object()
        .unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let of_path = item.as_object().unwrap().iter();
        of_path
            .filter(|(_, operation)| operation["security"] != json!([]))
            .map(|(method, operation)| {
                let scope = operation["x-required-scope"].as_str().unwrap().to_owned();
                (
                    method.to_uppercase().parse().unwrap(),
                    path.replace(['{', '}'], "x"),
                    scope,
                )
            })
    });
    operations.collect()
}

/// What the documentation for partners promises.
fn promised_scope(method: &Method, path: &str) -> &'static str {
    match path.trim_start_matches("/api/v1/") {
        // A leaked key without this scope cannot rotate its owner away.
        "credentials/rotate" => "credentials",
        path if path.ends_with("/vouchers") => "codes",
        _ if method == Method::GET => "read",
        path if path.starts_with("payouts") => "payouts",
        path if path.starts_with("webhooks") => "webhooks",
        _ => "orders",
    }
}

#[tokio::test]
async fn route_admits_exactly_credentials_with_its_scope() {
    let mut operator = Operator::of(shared());
    let mut partners: Vec<(&str, Partner, Partner)> = Vec::new();
    for scope in SCOPES {
        let partner = operator.add_partner("1").await;
        let others: Vec<&str> = SCOPES.into_iter().filter(|other| *other != scope).collect();
        let with = with_scopes(&mut operator, &partner, &[scope]).await;
        let without = with_scopes(&mut operator, &partner, &others).await;
        partners.push((scope, with, without));
    }
    let operations = operations();
    assert!(operations.len() > 30, "{}", operations.len());
    for (method, path, scope) in operations {
        assert_eq!(scope, promised_scope(&method, &path), "{method} {path}");
        for (of_partner, with, without) in &mut partners {
            let signed_path = path.trim_start_matches("/api/v1");
            if scope == *of_partner {
                let refused = without.send_signed(method.clone(), signed_path, "").await;
                expect_missing(&refused, &scope);
                let admitted = with.send_signed(method.clone(), signed_path, "").await;
                assert_ne!(admitted.status, 403, "{method} {path}: {admitted:?}");
                assert_ne!(admitted.status, 401, "{method} {path}: {admitted:?}");
            }
        }
    }
}

#[tokio::test]
async fn response_is_replayed_to_credential_that_cannot_read() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut seller = add_partner_with_scopes(&mut operator, &["orders"]).await;
    let (key, body) = (unique("key"), order_body(&sale, 1));
    let placed = seller.send(&key, &body).await;
    let order_id = id_of(&expect_success(&placed, 201));
    assert_replay(&placed, &seller.send(&key, &body).await);
    expect_missing(&seller.get(&format!("/orders/{order_id}")).await, "read");
    expect_missing(&seller.get_codes(&order_id).await, "codes");
    let cancelled = seller
        .send_signed(Method::POST, &format!("/orders/{order_id}/cancel"), "")
        .await;
    expect_success(&cancelled, 200);
}

/// A signed request that lacks its scope has no effect, and counts against the rate limit like any other.
#[tokio::test]
async fn request_without_scope_counts_against_its_rate_limit() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let partner = operator.add_partner("100").await;
    operator
        .patch_partner(
            &partner,
            &json!({ "limits": { "orders": { "quota": 2, "window_s": 86_400 } } }),
        )
        .await;
    let mut reader = with_scopes(&mut operator, &partner, &["read"]).await;
    for _ in 0..2 {
        expect_missing(&reader.order(&sale, 1).await, "orders");
    }
    expect_error(&reader.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(reader.balance("USD").await, "100.00");
}

async fn listed(operator: &mut Operator, partner: &Partner) -> Vec<Value> {
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    operator.get(&path).await["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn successor_has_the_scopes_of_its_predecessor() {
    let mut operator = Operator::of(shared());
    let mut partner = add_partner_with_scopes(&mut operator, &["credentials", "webhooks", "read"]).await;
    let rotated = partner
        .send_signed(Method::POST, "/credentials/rotate", r#"{"scopes":["orders"]}"#)
        .await;
    expect_error(&rotated, 422, "VALIDATION_FAILED");
    let rotated = partner.send_signed(Method::POST, "/credentials/rotate", "").await;
    let mut successor = partner.with_credential(&expect_success(&rotated, 201));
    expect_success(&successor.get("/wallets").await, 200);
    expect_missing(
        &successor.send_signed(Method::POST, "/payouts", "{}").await,
        "payouts",
    );
    let credentials = listed(&mut operator, &partner).await;
    let path = format!(
        "/admin/v1/credentials/{}/rotate",
        credentials[0]["credential_id"].as_str().unwrap()
    );
    operator.send_json(Method::POST, &path, &json!({})).await;
    let scopes: Vec<Value> = listed(&mut operator, &partner)
        .await
        .iter()
        .map(|credential| credential["scopes"].clone())
        .collect();
    let restricted = json!(["read", "webhooks", "credentials"]);
    assert_eq!(
        scopes,
        [restricted.clone(), restricted.clone(), restricted, Value::Null]
    );
}

#[tokio::test]
async fn scopes_survive_a_restart() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let partner = add_partner_with_scopes(&mut operator, &["read"]).await;
    service.stop();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    expect_success(&partner.get("/wallets").await, 200);
    expect_missing(
        &partner.send_signed(Method::POST, "/payouts", "{}").await,
        "payouts",
    );
}

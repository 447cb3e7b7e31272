//! Admin API: operator token, routes, body validation, lists and the actor overview.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client};

use crate::access::api_headers;
use vouchsafe_test_harness::{CheckedOperator, Instance, Operator, expect_error, expect_success, shared};

/// Admin routes with one of their methods, and unknown ones.
const ROUTES: [(Method, &str); 41] = [
    (Method::GET, "/admin/v1/partners"),
    (Method::POST, "/admin/v1/partners"),
    (Method::GET, "/admin/v1/partners/ptn_1"),
    (Method::PATCH, "/admin/v1/partners/ptn_1"),
    (Method::GET, "/admin/v1/partners/ptn_1/credentials"),
    (Method::POST, "/admin/v1/partners/ptn_1/credentials"),
    (Method::POST, "/admin/v1/partners/ptn_1/wallets/USD/top-ups"),
    (Method::POST, "/admin/v1/partners/ptn_1/wallets/USD/adjustments"),
    (Method::DELETE, "/admin/v1/credentials/cred_1"),
    (Method::GET, "/admin/v1/categories"),
    (Method::PUT, "/admin/v1/categories/games"),
    (Method::GET, "/admin/v1/products"),
    (Method::GET, "/admin/v1/products/p"),
    (Method::PUT, "/admin/v1/products/p"),
    (Method::GET, "/admin/v1/stock"),
    (Method::POST, "/admin/v1/stock"),
    (Method::POST, "/admin/v1/stock/void"),
    (Method::GET, "/admin/v1/orders"),
    (Method::GET, "/admin/v1/orders/ord_1"),
    (Method::POST, "/admin/v1/orders/ord_1/approve"),
    (Method::POST, "/admin/v1/orders/ord_1/reject"),
    (Method::POST, "/admin/v1/orders/ord_1/cancel"),
    (Method::GET, "/admin/v1/payouts"),
    (Method::GET, "/admin/v1/payouts/po_1"),
    (Method::POST, "/admin/v1/payouts/po_1/pay"),
    (Method::POST, "/admin/v1/payouts/po_1/reject"),
    (Method::POST, "/admin/v1/payouts/po_1/fail"),
    (Method::GET, "/admin/v1/search"),
    (Method::GET, "/admin/v1/actors"),
    (Method::GET, "/admin/v1/lanes"),
    (Method::GET, "/admin/v1/live"),
    (Method::GET, "/admin/v1/nodes"),
    (Method::GET, "/admin/v1/overview"),
    (Method::GET, "/admin/v1/refusals"),
    (Method::GET, "/admin/v1/samples"),
    (Method::GET, "/admin/v1/settings"),
    (Method::GET, "/admin/v1/audit/checkpoints"),
    (Method::GET, "/admin/v1/audit"),
    (Method::GET, "/admin/v1/nowhere"),
    (Method::DELETE, "/admin/v1/partners"),
    (Method::GET, "/admin/v1"),
];

async fn send(
    service: &Instance,
    method: Method,
    path: &str,
    headers: &[(&'static str, &str)],
) -> ApiResponse {
    let mut client = CheckedOperator::new(Client::new(Origin::parse(&service.admin_url()).unwrap()));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    client.call(method, path, map, Bytes::new()).await.unwrap()
}

#[tokio::test]
async fn request_without_operator_token_is_rejected() {
    let service = shared();
    let token = service.operator_token();
    let valid_token = format!("Bearer {}", token.trim());
    let partner = Operator::of(service).add_partner("0").await;
    let partner_headers = api_headers(&partner);
    let partner_headers =
        ["x-api-key", "x-api-secret"].map(|name| (name, partner_headers[name].to_str().unwrap()));
    let cases: [&[(&'static str, &str)]; 6] = [
        &[],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer 0123456789abcdef0123456789abcdef")],
        &[("authorization", "Basic YWRtaW46YWRtaW4=")],
        &[("authorization", &valid_token), ("authorization", &valid_token)],
        &partner_headers,
    ];
    for (method, path) in &ROUTES {
        for headers in cases {
            let response = send(service, method.clone(), path, headers).await;
            expect_error(&response, 401, "INVALID_CREDENTIALS");
        }
    }
    let response = send(
        service,
        Method::GET,
        "/admin/v1/partners",
        &[("authorization", &valid_token)],
    )
    .await;
    expect_success(&response, 200);
}

#[tokio::test]
async fn operator_listener_has_no_partner_routes() {
    let service = shared();
    let mut partner = Operator::of(service).add_partner("0").await;
    for path in ["/api/v1/products", "/api/v1/orders", "/elsewhere"] {
        let response = send(service, Method::GET, path, &[]).await;
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    let response = partner.get("/../../admin/v1/partners").await;
    expect_error(&response, 404, "ROUTE_NOT_FOUND");
    for path in ["/healthz", "/readyz"] {
        expect_success(&send(service, Method::GET, path, &[]).await, 200);
    }
    let metrics = send(service, Method::GET, "/metrics", &[]).await;
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(
        metrics.status.is_success() && text.contains("vouchsafe_journal_commit_duration_seconds"),
        "{text}"
    );
    for verdict in [
        "committed",
        "key_known",
        "stale_balance",
        "stale_stock",
        "poisoned",
    ] {
        let counter = format!("vouchsafe_journal_verdicts_total{{verdict=\"{verdict}\"}} ");
        assert!(text.contains(&counter), "{counter}: {text}");
    }
    let described: Vec<_> = text.lines().filter(|line| line.starts_with("# ")).collect();
    let mut unique = described.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(
        unique.len(),
        described.len(),
        "a metric is described twice: {described:?}"
    );
}

#[tokio::test]
async fn unknown_admin_route_is_404_and_wrong_method_405() {
    let mut operator = Operator::of(shared());
    for path in ["/admin/v1/nowhere", "/admin/v1/partners/", "/admin/v1"] {
        let response = operator.call_json(Method::GET, path, "").await;
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/admin/v1/partners", "GET, POST"),
        (Method::PUT, "/admin/v1/partners/ptn_1", "GET, PATCH"),
        (Method::GET, "/admin/v1/credentials/cred_1", "DELETE"),
        (Method::GET, "/admin/v1/stock/void", "POST"),
        (Method::POST, "/admin/v1/audit", "GET"),
    ] {
        let response = operator.call_json(method, path, "").await;
        expect_error(&response, 405, "METHOD_NOT_ALLOWED");
        assert_eq!(response.header("allow"), Some(allowed), "{path}");
    }
}

#[tokio::test]
async fn invalid_json_body_is_rejected() {
    let mut operator = Operator::of(shared());
    let deep = format!(r#"{{"name":{}{}}}"#, "[".repeat(33), "]".repeat(33));
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(256 * 1024));
    for (body, status, code) in [
        ("", 400, "MALFORMED_REQUEST"),
        ("nonsense", 400, "MALFORMED_REQUEST"),
        (r#"{"name":"#, 400, "MALFORMED_REQUEST"),
        (deep.as_str(), 400, "MALFORMED_REQUEST"),
        (r#"["Name",[]]"#, 422, "VALIDATION_FAILED"),
        ("{}", 422, "VALIDATION_FAILED"),
        (
            r#"{"name":"N","allowlist":[],"shoe":1}"#,
            422,
            "VALIDATION_FAILED",
        ),
        (
            r#"{"name":"N","name":"M","allowlist":[]}"#,
            422,
            "VALIDATION_FAILED",
        ),
        (r#"{"name":7,"allowlist":[]}"#, 422, "VALIDATION_FAILED"),
        (
            r#"{"name":"N","allowlist":["everywhere"]}"#,
            422,
            "VALIDATION_FAILED",
        ),
        (large.as_str(), 413, "PAYLOAD_TOO_LARGE"),
    ] {
        let response = operator
            .call_json(Method::POST, "/admin/v1/partners", body.to_owned())
            .await;
        expect_error(&response, status, code);
    }
    let response = operator
        .call(Method::POST, "/admin/v1/partners", "text/plain", "{}")
        .await;
    expect_error(&response, 415, "UNSUPPORTED_MEDIA_TYPE");
}

#[tokio::test]
async fn list_cursors_are_bound_to_list_and_filter() {
    let mut operator = Operator::of(shared());
    for _ in 0..3 {
        operator.add_partner("0").await;
    }
    let first = operator.get("/admin/v1/partners?limit=2").await;
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let second = operator
        .get(&format!("/admin/v1/partners?limit=2&cursor={cursor}"))
        .await;
    let ids = |page: &serde_json::Value| {
        let entries = page["data"].as_array().unwrap().iter();
        entries
            .map(|partner| partner["partner_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let both = [ids(&first), ids(&second)].concat();
    assert!(
        first["has_more"] == json!(true) && both.is_sorted_by(|a, b| a > b),
        "newest first: {both:?}"
    );
    for (query, status, code) in [
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=101", 422, "VALIDATION_FAILED"),
        ("limit=1&limit=1", 422, "VALIDATION_FAILED"),
        ("shoe=1", 422, "VALIDATION_FAILED"),
        ("cursor=AAAA", 400, "INVALID_CURSOR"),
    ] {
        let path = format!("/admin/v1/partners?{query}");
        let response = operator.call_json(Method::GET, &path, "").await;
        expect_error(&response, status, code);
    }
    let other_filter = format!("/admin/v1/audit?action=partner.create&cursor={cursor}");
    let response = operator.call_json(Method::GET, &other_filter, "").await;
    expect_error(&response, 400, "INVALID_CURSOR");
}

#[tokio::test]
async fn actors_are_listed_busiest_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    for _ in 0..3 {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    let shown = operator.get("/admin/v1/actors?limit=10000").await;
    let actors = shown["data"].as_array().unwrap();
    let of = |key: &str| {
        actors
            .iter()
            .find(|actor| actor["key"] == json!(key))
            .unwrap()
            .clone()
    };
    let wallet = of(&partner.partner_id);
    assert_eq!(
        (wallet["kind"].as_str(), wallet["state"].as_str()),
        (Some("wallet"), Some("ready"))
    );
    assert_eq!(
        (&wallet["restarts"], &wallet["mailbox_depth"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(of(&format!("{}/2500", sale.product_id))["kind"], "inventory");
    let sums = shown["sums"].as_array().unwrap();
    assert_eq!(
        sums.iter()
            .map(|sum| sum["kind"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["wallet", "inventory", "procurement", "delivery"]
    );
    assert_eq!(
        (of("mock")["kind"].as_str(), of("mock")["state"].as_str()),
        (Some("procurement"), Some("ready"))
    );
    let handled: Vec<_> = actors
        .iter()
        .map(|actor| (actor["mailbox_depth"].as_u64(), actor["handled"].as_u64()))
        .collect();
    assert!(handled.is_sorted_by(|a, b| a >= b), "{handled:?}");
    let shelves = operator.get("/admin/v1/actors?kind=inventory&limit=1").await;
    assert_eq!(
        (
            shelves["data"].as_array().unwrap().len(),
            &shelves["sums"][0]["kind"]
        ),
        (1, &json!("inventory"))
    );
    for query in ["limit=0", "limit=10001", "kind=shoe", "shoe=1"] {
        let path = format!("/admin/v1/actors?{query}");
        let response = operator.call_json(Method::GET, &path, "").await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
}

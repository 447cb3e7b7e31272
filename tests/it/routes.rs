//! Routes of both listeners: methods, authentication, trace ids, query validation.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use vouchsafe_test_harness::{Operator, expect_error, expect_success, json_of, shared};

#[tokio::test]
async fn unknown_route_is_404_and_wrong_method_405() {
    let service = shared();
    let mut partner = Operator::of(service).add_partner("1").await;
    for path in [
        "/api/v1",
        "/api/v2/orders",
        "/api/v1/order",
        "/api/v1/orders/",
        "/orders",
        "/api/v1/orders/a/b/c",
    ] {
        let response = partner
            .client
            .send_raw(Method::GET, path, HeaderMap::new(), "")
            .await
            .unwrap();
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/api/v1/orders", "GET, HEAD, POST"),
        (Method::PUT, "/api/v1/orders/ord_0", "GET"),
        (Method::POST, "/api/v1/orders/ord_0/vouchers", "GET"),
        (Method::POST, "/api/v1/wallets", "GET"),
        (Method::PATCH, "/api/v1/products/sbx-instant", "GET"),
        (Method::OPTIONS, "/api/v1/categories", "GET"),
        (Method::TRACE, "/api/v1/transactions", "GET"),
        (Method::POST, "/healthz", "GET"),
    ] {
        let response = partner
            .client
            .send_raw(method, path, HeaderMap::new(), "")
            .await
            .unwrap();
        expect_error(&response, 405, "METHOD_NOT_ALLOWED");
        assert!(
            response
                .header("allow")
                .is_some_and(|methods| methods.contains(allowed)),
            "{path}: {response:?}"
        );
    }
}

#[tokio::test]
async fn listeners_have_separate_routes() {
    let service = shared();
    let mut operator = Operator::of(service);
    let mut partner = operator.add_partner("1").await;
    let token = service.operator_token();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim())).unwrap();
    let headers = HeaderMap::from_iter([(HeaderName::from_static("authorization"), bearer)]);
    for path in ["/admin/v1/partners", "/admin/v1/actors", "/admin/v1", "/metrics"] {
        let response = partner
            .client
            .send_raw(Method::GET, path, headers.clone(), "")
            .await
            .unwrap();
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
    for path in ["/api/v1/orders", "/api/v1/wallets", "/api/v1/products"] {
        let response = operator.call_json(Method::GET, path, "").await;
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
}

#[tokio::test]
async fn operator_route_without_token_is_rejected() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("1").await;
    let mut identity = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut identity);
    let key = identity["x-api-key"].to_str().unwrap().to_owned();
    let secret = identity["x-api-secret"].to_str().unwrap().to_owned();
    let bearer = format!("Bearer {secret}");
    let cases: [&[(&'static str, &str)]; 5] = [
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", "Basic YTpi")],
        &[("authorization", &bearer)],
        &[("x-api-key", &key), ("x-api-secret", &secret)],
    ];
    for headers in cases {
        for path in ["/admin/v1/partners", "/admin/v1/no-such-route"] {
            let response = operator.call_without_token(Method::GET, path, headers).await;
            expect_error(&response, 401, "INVALID_CREDENTIALS");
        }
    }
}

#[tokio::test]
async fn partner_trace_id_is_continued() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut headers = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut headers);
    headers.insert(
        "traceparent",
        HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    );
    let response = partner
        .client
        .send_raw(Method::GET, "/api/v1/orders/ord_0", headers.clone(), "")
        .await
        .unwrap();
    assert_eq!(expect_error(&response, 404, "ORDER_NOT_FOUND")["trace_id"], trace);
    headers.insert("traceparent", HeaderValue::from_static("00-zz-1-1"));
    let response = partner
        .client
        .send_raw(Method::GET, "/api/v1/orders/ord_0", headers, "")
        .await
        .unwrap();
    assert_ne!(expect_error(&response, 404, "ORDER_NOT_FOUND")["trace_id"], trace);
}

#[tokio::test]
async fn list_with_invalid_query_is_rejected() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    for list in ["/categories", "/products", "/wallets", "/transactions"] {
        for (query, status, code) in [
            ("limit=0", 422, "VALIDATION_FAILED"),
            ("limit=101", 422, "VALIDATION_FAILED"),
            ("limit=x", 422, "VALIDATION_FAILED"),
            ("limit=1&limit=2", 422, "VALIDATION_FAILED"),
            ("colour=red", 422, "VALIDATION_FAILED"),
            ("cursor=", 400, "INVALID_CURSOR"),
            ("cursor=AAAA", 400, "INVALID_CURSOR"),
            ("cursor=%FF%00", 400, "INVALID_CURSOR"),
        ] {
            let response = partner.get(&format!("{list}?{query}")).await;
            assert_eq!(
                response.status.as_u16(),
                status,
                "{list}?{query}: {}",
                json_of(&response)
            );
            expect_error(&response, status, code);
        }
        for query in ["limit=1", "limit=100"] {
            expect_success(&partner.get(&format!("{list}?{query}")).await, 200);
        }
    }
}

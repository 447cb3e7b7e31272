//! Canonical request paths: a signed path has exactly one spelling.

use hyper::Method;
use hyper::header::CONTENT_LENGTH;

use crate::request_bodies::{ORDERS, add_buyer, with_header};
use vouchsafe_test_harness::raw_http::{exchange, exchange_undocumented, request_head};
use vouchsafe_test_harness::{expect_error, expect_success, shared, unique};

#[tokio::test]
async fn signed_request_with_query_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    for path in [
        "/api/v1/orders?",
        "/api/v1/orders?x=1",
        "/api/v1/orders?x=/api/v1/orders",
    ] {
        let headers = partner.headers(ORDERS, body.as_bytes());
        let response = partner
            .client
            .send_raw(Method::POST, path, headers, body.clone())
            .await
            .unwrap();
        expect_error(&response, 400, "UNEXPECTED_QUERY");
    }
    let order = expect_success(&partner.send_text(&unique("key"), &body).await, 201);
    let path = format!("/orders/{}/vouchers?x=1", order["order_id"].as_str().unwrap());
    expect_error(
        &partner.send_signed(Method::GET, &path, "").await,
        400,
        "UNEXPECTED_QUERY",
    );
}

#[tokio::test]
async fn alternative_path_spellings_are_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    for path in [
        "/api/v1//orders",
        "//api/v1/orders",
        "/api/v1/orders/",
        "/api/v1/./orders",
        "/api/v1/x/../orders",
        "/api/v1/%6frders",
        "/api/v1/orders%2f",
        "/api/v1/%2e/orders",
        "/api%2fv1/orders",
        "/api/v1/orders;a=b",
        "/API/v1/orders",
    ] {
        let headers = with_header(
            partner.headers(path, body.as_bytes()),
            CONTENT_LENGTH,
            &body.len().to_string(),
        );
        let request = [
            request_head(&format!("POST {path}"), &headers),
            body.clone().into_bytes(),
        ]
        .concat();
        let response = exchange_undocumented(address, &request).await;
        let (status, code) = (
            response.status.as_u16(),
            response.error_code().unwrap_or_default(),
        );
        let expected = [(404, "ROUTE_NOT_FOUND"), (401, "INVALID_SIGNATURE")];
        assert!(
            expected.contains(&(status, code.as_str())),
            "{path}: {response:?}"
        );
        expect_error(&response, status, &code);
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn absolute_request_target_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    for target in ["http://evil.test/api/v1/orders", "http://127.0.0.1/api/v1/orders"] {
        let headers = with_header(
            partner.headers(ORDERS, body.as_bytes()),
            CONTENT_LENGTH,
            &body.len().to_string(),
        );
        let request = [
            request_head(&format!("POST {target}"), &headers),
            body.clone().into_bytes(),
        ]
        .concat();
        let response = exchange_undocumented(address, &request).await;
        expect_error(&response, 400, "MALFORMED_REQUEST");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn byte_moved_between_path_and_body_invalidates_signature() {
    let (mut partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    // The signed message is the same, byte by byte.
    for (path, body) in [
        ("/api/v1/orders{", &body[1..]),
        ("/api/v1/order", &format!("s{body}")),
        ("/api/v1", &format!("/orders{body}")),
        ("/api/v1/orders", &format!(" {body}")),
    ] {
        let signed = format!("{path}{body}");
        let headers = partner.headers(ORDERS, signed.strip_prefix(ORDERS).unwrap().as_bytes());
        let headers = with_header(headers, CONTENT_LENGTH, &body.len().to_string());
        let request = [
            request_head(&format!("POST {path}"), &headers),
            body.as_bytes().to_vec(),
        ]
        .concat();
        let response = exchange(address, &request).await;
        assert!(response.status.is_client_error(), "{path}: {response:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

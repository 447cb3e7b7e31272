//! Request bodies: chunked, too large, too slow, encoded, ambiguous.

use std::time::{Duration, Instant};

use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};

use vouchsafe_test_harness::raw_http::{exchange, exchange_undocumented, request_head, send_slowly};
use vouchsafe_test_harness::{
    Operator, Partner, expect_error, expect_success, order_body, order_line, shared, unique,
};

pub(crate) const ORDERS: &str = "/api/v1/orders";

/// Contract §2. Bytes.
const MAX_BODY: usize = 256 * 1024;

/// The service times out after 10 s (contract §2), which it measures coarsely.
const MIN_BODY_TIME: Duration = Duration::from_secs(8);

/// Adds or replaces a header.
pub(crate) fn with_header(mut headers: HeaderMap, name: HeaderName, value: &str) -> HeaderMap {
    headers.insert(name, HeaderValue::from_str(value).unwrap());
    headers
}

/// Pads an order to this size. Bytes.
fn pad_order(partner_order: &str, bytes: usize) -> String {
    let padding = " ".repeat(bytes - partner_order.len());
    partner_order.replacen('{', &format!("{{{padding}"), 1)
}

/// Creates a partner with 1,000 USD and returns the body of an order for one voucher at 25 USD.
pub(crate) async fn add_buyer(vouchers: usize) -> (Partner, String) {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(vouchers).await;
    (
        operator.add_partner("1000").await,
        order_body(&sale, 1).to_string(),
    )
}

fn encode_chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for chunk in body.chunks(size) {
        wire.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        wire.extend_from_slice(chunk);
        wire.extend(b"\r\n");
    }
    wire.extend(b"0\r\n\r\n");
    wire
}

#[tokio::test]
async fn chunked_body_is_accepted() {
    let (partner, body) = add_buyer(4).await;
    let address = shared().http_address();
    for size in [1, 7, 4_096] {
        let headers = with_header(
            partner.headers(ORDERS, body.as_bytes()),
            TRANSFER_ENCODING,
            "chunked",
        );
        let request = [
            request_head("POST /api/v1/orders", &headers),
            encode_chunked(body.as_bytes(), size),
        ]
        .concat();
        expect_success(&exchange(address, &request).await, 201);
    }
    let length = body.len().to_string();
    let headers = with_header(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, &length);
    let request = [request_head("POST /api/v1/orders", &headers), body.into_bytes()].concat();
    expect_success(&exchange(address, &request).await, 201);
}

#[tokio::test]
async fn body_beyond_256_kib_is_rejected() {
    let (mut partner, body) = add_buyer(2).await;
    let largest = pad_order(&body, MAX_BODY);
    expect_success(&partner.send_text(&unique("key"), &largest).await, 201);
    let address = shared().http_address();
    let larger = pad_order(&body, MAX_BODY + 1);
    // Rejected by its announced length.
    for announced in [
        (MAX_BODY + 1).to_string(),
        "4294967296".to_owned(),
        u64::MAX.to_string(),
    ] {
        let headers = with_header(
            partner.headers(ORDERS, larger.as_bytes()),
            CONTENT_LENGTH,
            &announced,
        );
        let response = exchange(address, &request_head("POST /api/v1/orders", &headers)).await;
        expect_error(&response, 413, "PAYLOAD_TOO_LARGE");
    }
    // A chunked body is rejected as soon as it exceeds the limit.
    let headers = with_header(
        partner.headers(ORDERS, larger.as_bytes()),
        TRANSFER_ENCODING,
        "chunked",
    );
    let request = [
        request_head("POST /api/v1/orders", &headers),
        encode_chunked(larger.as_bytes(), 8_192),
    ]
    .concat();
    expect_error(&exchange(address, &request).await, 413, "PAYLOAD_TOO_LARGE");
    // Rejected for a client that reads only after sending everything.
    let headers = with_header(
        partner.headers(ORDERS, larger.as_bytes()),
        CONTENT_LENGTH,
        &larger.len().to_string(),
    );
    let request = [request_head("POST /api/v1/orders", &headers), larger.into_bytes()].concat();
    expect_error(&exchange(address, &request).await, 413, "PAYLOAD_TOO_LARGE");
    assert_eq!(partner.balance("USD").await, "975.00");
}

#[tokio::test]
async fn missing_body_times_out() {
    let (partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    let silent = with_header(
        partner.headers(ORDERS, body.as_bytes()),
        CONTENT_LENGTH,
        &body.len().to_string(),
    );
    let silent = [
        request_head("POST /api/v1/orders", &silent),
        body.as_bytes()[..10].to_vec(),
    ]
    .concat();
    let slow = with_header(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, "1000");
    let slow = [request_head("POST /api/v1/orders", &slow), b"{".to_vec()].concat();
    let start = Instant::now();
    let (silent, slow) = tokio::join!(exchange(address, &silent), send_slowly(address, &slow, b' '));
    let elapsed = start.elapsed();
    for response in [silent, slow] {
        let error = expect_error(&response, 408, "REQUEST_TIMEOUT");
        assert_eq!(error["retryable"], true);
    }
    assert!(elapsed >= MIN_BODY_TIME, "{elapsed:?}");
}

#[tokio::test]
async fn encoded_or_non_json_body_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    for (name, value) in [
        (CONTENT_ENCODING, "gzip"),
        (CONTENT_ENCODING, "deflate"),
        (CONTENT_ENCODING, "br"),
        (CONTENT_ENCODING, "identity"),
        (CONTENT_TYPE, "text/plain"),
        (CONTENT_TYPE, "application/x-www-form-urlencoded"),
        (CONTENT_TYPE, "application/jsonp"),
        (CONTENT_TYPE, "multipart/form-data; boundary=x"),
        (CONTENT_TYPE, ""),
    ] {
        let headers = with_header(partner.headers(ORDERS, body.as_bytes()), name, value);
        let response = partner.post(headers, body.clone()).await;
        expect_error(&response, 415, "UNSUPPORTED_MEDIA_TYPE");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn request_with_two_lengths_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    let length = body.len().to_string();
    let both = with_header(
        partner.headers(ORDERS, body.as_bytes()),
        TRANSFER_ENCODING,
        "chunked",
    );
    let both = with_header(both, CONTENT_LENGTH, &length);
    let mut two = with_header(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, &length);
    two.append(CONTENT_LENGTH, HeaderValue::from_static("7"));
    for headers in [both, two] {
        let request = [
            request_head("POST /api/v1/orders", &headers),
            encode_chunked(body.as_bytes(), 4_096),
        ]
        .concat();
        let response = exchange_undocumented(address, &request).await;
        assert_eq!(response.status, 400, "{response:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn invalid_http_closes_only_its_connection() {
    let (mut partner, _) = add_buyer(0).await;
    expect_success(&partner.get("/wallets").await, 200);
    let address = shared().http_address();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let response = exchange_undocumented(address, garbage).await;
        assert!(
            response.status.is_client_error() || response.status.is_server_error(),
            "{response:?}"
        );
    }
    let many = HeaderMap::from_iter([(
        HeaderName::from_static("x-long"),
        HeaderValue::from_str(&"x".repeat(200_000)).unwrap(),
    )]);
    let response = exchange_undocumented(address, &request_head("GET /api/v1/wallets", &many)).await;
    assert!(response.status.is_client_error(), "{response:?}");
    expect_success(&partner.get("/wallets").await, 200);
}

#[tokio::test]
async fn disconnected_client_leaves_consistent_state() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(30).await;
    let mut partner = operator.add_partner("1000").await;
    let keys: Vec<String> = (0..30).map(|_| unique("key")).collect();
    for key in &keys {
        // Sent, then dropped with its connection.
        let mut client = partner.reconnect();
        let order = client.order_with_key(key, &sale, 1);
        drop(tokio::time::timeout(Duration::from_millis(1), order).await);
    }
    for key in &keys {
        expect_success(&partner.order_with_key(key, &sale, 1).await, 201);
    }
    assert_eq!(partner.balance("USD").await, "250.00");
    let one_more = serde_json::json!({ "items": [order_line(&sale, 1)] });
    let response = partner.send(&unique("key"), &one_more).await;
    expect_error(&response, 409, "INSUFFICIENT_INVENTORY");
}

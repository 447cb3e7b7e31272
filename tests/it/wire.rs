//! What does the service make of requests that no honest client sends: too large, too slow, wrapped, or ambiguous?

use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use std::time::{Duration, Instant};

use crate::support::wire::{drip, exchange, exchange_undescribed, head};
use crate::support::{Operator, Partner, accepted, line_of, order_of, refused, shared, unique};

/// The path that is signed.
pub(crate) const ORDERS: &str = "/api/v1/orders";

/// Largest body (contract §2). Bytes.
const MAX_BODY: usize = 256 * 1024;

/// A slow body is given up after 10 s (contract §2); the rest is room for a busy machine.
const SLOW_BODY: std::ops::Range<Duration> = Duration::from_secs(8)..Duration::from_secs(15);

/// These headers, and one more or another.
pub(crate) fn with(mut headers: HeaderMap, name: HeaderName, value: &str) -> HeaderMap {
    headers.insert(name, HeaderValue::from_str(value).unwrap());
    headers
}

/// An order of this many bytes.
fn padded(partner_order: &str, bytes: usize) -> String {
    let padding = " ".repeat(bytes - partner_order.len());
    partner_order.replacen('{', &format!("{{{padding}"), 1)
}

/// A partner with 1,000 USD, and the text of an order of one voucher at 25 USD.
pub(crate) async fn buyer_of(vouchers: usize) -> (Partner, String) {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(vouchers).await;
    (operator.partner("1000").await, order_of(&sale, 1).to_string())
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
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
async fn a_body_comes_whole_or_in_chunks() {
    let (partner, body) = buyer_of(4).await;
    let address = shared().http_address();
    for size in [1, 7, 4_096] {
        let headers = with(
            partner.headers(ORDERS, body.as_bytes()),
            TRANSFER_ENCODING,
            "chunked",
        );
        let request = [
            head("POST /api/v1/orders", &headers),
            chunked(body.as_bytes(), size),
        ]
        .concat();
        accepted(&exchange(address, &request).await, 201);
    }
    let length = body.len().to_string();
    let headers = with(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, &length);
    let request = [head("POST /api/v1/orders", &headers), body.into_bytes()].concat();
    accepted(&exchange(address, &request).await, 201);
}

#[tokio::test]
async fn a_body_has_at_most_256_kib() {
    let (mut partner, body) = buyer_of(2).await;
    let largest = padded(&body, MAX_BODY);
    accepted(&partner.send_text(&unique("key"), &largest).await, 201);
    let address = shared().http_address();
    let larger = padded(&body, MAX_BODY + 1);
    // By its announcement alone.
    for announced in [
        (MAX_BODY + 1).to_string(),
        "4294967296".to_owned(),
        u64::MAX.to_string(),
    ] {
        let headers = with(
            partner.headers(ORDERS, larger.as_bytes()),
            CONTENT_LENGTH,
            &announced,
        );
        refused(
            &exchange(address, &head("POST /api/v1/orders", &headers)).await,
            413,
            "PAYLOAD_TOO_LARGE",
        );
    }
    // As it comes.
    let headers = with(
        partner.headers(ORDERS, larger.as_bytes()),
        TRANSFER_ENCODING,
        "chunked",
    );
    let request = [
        head("POST /api/v1/orders", &headers),
        chunked(larger.as_bytes(), 8_192),
    ]
    .concat();
    refused(&exchange(address, &request).await, 413, "PAYLOAD_TOO_LARGE");
    // And with all of it sent, by a client that reads only then.
    let headers = with(
        partner.headers(ORDERS, larger.as_bytes()),
        CONTENT_LENGTH,
        &larger.len().to_string(),
    );
    let request = [head("POST /api/v1/orders", &headers), larger.into_bytes()].concat();
    refused(&exchange(address, &request).await, 413, "PAYLOAD_TOO_LARGE");
    assert_eq!(partner.balance("USD").await, "975.00");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let (partner, body) = buyer_of(1).await;
    let address = shared().http_address();
    let silent = with(
        partner.headers(ORDERS, body.as_bytes()),
        CONTENT_LENGTH,
        &body.len().to_string(),
    );
    let silent = [
        head("POST /api/v1/orders", &silent),
        body.as_bytes()[..10].to_vec(),
    ]
    .concat();
    let slow = with(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, "1000");
    let slow = [head("POST /api/v1/orders", &slow), b"{".to_vec()].concat();
    let begin = Instant::now();
    let (silent, slow) = tokio::join!(exchange(address, &silent), drip(address, &slow, b' '));
    let took = begin.elapsed();
    for answer in [silent, slow] {
        let error = refused(&answer, 408, "REQUEST_TIMEOUT");
        assert_eq!(error["retryable"], true);
    }
    assert!(SLOW_BODY.contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_body_is_plain_json() {
    let (mut partner, body) = buyer_of(1).await;
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
        let headers = with(partner.headers(ORDERS, body.as_bytes()), name, value);
        refused(
            &partner.post(headers, body.clone()).await,
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        );
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn a_request_with_two_ends_is_refused() {
    let (mut partner, body) = buyer_of(1).await;
    let address = shared().http_address();
    let length = body.len().to_string();
    let both = with(
        partner.headers(ORDERS, body.as_bytes()),
        TRANSFER_ENCODING,
        "chunked",
    );
    let both = with(both, CONTENT_LENGTH, &length);
    let mut two = with(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, &length);
    two.append(CONTENT_LENGTH, HeaderValue::from_static("7"));
    for headers in [both, two] {
        let request = [
            head("POST /api/v1/orders", &headers),
            chunked(body.as_bytes(), 4_096),
        ]
        .concat();
        let answer = exchange_undescribed(address, &request).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn what_is_no_http_closes_its_connection_and_no_other() {
    let (mut partner, _) = buyer_of(0).await;
    accepted(&partner.get("/wallets").await, 200);
    let address = shared().http_address();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let answer = exchange_undescribed(address, garbage).await;
        assert!(
            answer.status.is_client_error() || answer.status.is_server_error(),
            "{answer:?}"
        );
    }
    let many = HeaderMap::from_iter([(
        HeaderName::from_static("x-long"),
        HeaderValue::from_str(&"x".repeat(200_000)).unwrap(),
    )]);
    let answer = exchange_undescribed(address, &head("GET /api/v1/wallets", &many)).await;
    assert!(answer.status.is_client_error(), "{answer:?}");
    accepted(&partner.get("/wallets").await, 200);
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_half_done() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(30).await;
    let mut partner = operator.partner("1000").await;
    let keys: Vec<String> = (0..30).map(|_| unique("key")).collect();
    for key in &keys {
        // Polled once, so that it is sent, and dropped with its connection.
        let mut leaving = partner.again();
        let order = leaving.order_under(key, &sale, 1);
        drop(tokio::time::timeout(Duration::from_millis(1), order).await);
    }
    for key in &keys {
        accepted(&partner.order_under(key, &sale, 1).await, 201);
    }
    assert_eq!(partner.balance("USD").await, "250.00");
    let one_more = serde_json::json!({ "items": [line_of(&sale, 1)] });
    refused(
        &partner.send(&unique("key"), &one_more).await,
        409,
        "INSUFFICIENT_INVENTORY",
    );
}

//! HTTP edge cases: slow, numerous and non-reading clients, and ambiguous requests.

use std::time::Duration;

use hyper::Method;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use rustix::process::{Resource, getrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::request_bodies::{ORDERS, add_buyer, with_header};
use vouchsafe_test_harness::raw_http::{
    exchange, exchange_bytes, exchange_undocumented, request_head, send_slowly_undocumented,
};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared, unique};

/// Open sockets, where the system allows that many.
const SOCKETS: u64 = 3_000;

/// Two for each of the service's threads.
const NON_READING_CLIENTS: u32 = 4;

/// After this time the buffers of a non-reading client are full.
const FILL_TIMEOUT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn unfinished_request_head_times_out() {
    let address = shared().http_address();
    let partial_head = b"GET /api/v1/wallets HTTP/1.1\r\nhost: vouchsafe.test\r\nx-slow: ";
    let (silent, slow) = tokio::join!(
        exchange_undocumented(address, partial_head),
        send_slowly_undocumented(address, partial_head, b'x')
    );
    for response in [silent, slow] {
        assert_eq!(response.status, 408, "{response:?}");
    }
}

/// Opens sockets and sends the start of a request on each.
async fn open_sockets(count: u64, partial_head: &[u8]) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut socket = TcpStream::connect(shared().http_address()).await.unwrap();
        socket.write_all(partial_head).await.unwrap();
        held.push(socket);
    }
    held
}

#[tokio::test]
async fn idle_sockets_do_not_block_requests() {
    let (mut partner, body) = add_buyer(2).await;
    expect_success(&partner.send_text(&unique("key"), &body).await, 201);
    // A quarter of the file limit: the service needs as many, and other tests are running.
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(SOCKETS * 4);
    let count = SOCKETS.min(allowed / 4);
    let (silent, partial_head) = tokio::join!(
        open_sockets(count / 2, b""),
        open_sockets(count / 2, b"POST /api/v1/orders HTTP/1.1\r\n")
    );
    expect_success(&partner.send_text(&unique("key"), &body).await, 201);
    expect_success(&partner.reconnect().get("/wallets").await, 200);
    assert_eq!(
        silent.len() + partial_head.len(),
        usize::try_from(count / 2 * 2).unwrap()
    );
}

#[tokio::test]
async fn non_reading_clients_do_not_block_requests() {
    let (mut partner, _) = add_buyer(0).await;
    let mut identity = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut identity);
    let request = request_head("GET /api/v1/products?limit=100", &identity);
    let request = String::from_utf8(request)
        .unwrap()
        .replace("connection: close\r\n", "");
    let ask = async || {
        let mut socket = TcpStream::connect(shared().http_address()).await.unwrap();
        // Send until the write blocks: then the responses fill every buffer on the way.
        let sending = async { while socket.write_all(request.as_bytes()).await.is_ok() {} };
        drop(tokio::time::timeout(FILL_TIMEOUT, sending).await);
        socket
    };
    let clients = futures_util::future::join_all((0..NON_READING_CLIENTS).map(|_| ask())).await;
    expect_success(&partner.get("/wallets").await, 200);
    expect_success(&partner.reconnect().get("/products").await, 200);
    drop(clients);
}

#[tokio::test]
async fn unsupported_method_returns_405_and_head_is_get_without_body() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    let mut identity = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut identity);
    for path in [
        "/api/v1/categories",
        "/api/v1/products",
        "/api/v1/products/sbx-instant",
        "/api/v1/orders",
        "/api/v1/orders/ord_0",
        "/api/v1/orders/ord_0/vouchers",
        "/api/v1/wallets",
        "/api/v1/transactions",
        "/api/v1/credentials/rotate",
    ] {
        for method in ["OPTIONS", "TRACE", "PATCH", "DELETE", "BREW", "get", "GETGET"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let response = partner
                .client
                .send_raw(method, path, identity.clone(), "")
                .await
                .unwrap();
            expect_error(&response, 405, "METHOD_NOT_ALLOWED");
            assert!(response.header("allow").is_some(), "{path}");
        }
        let response = exchange_bytes(
            shared().http_address(),
            &request_head(&format!("HEAD {path}"), &identity),
        )
        .await;
        let text = String::from_utf8(response).unwrap();
        let status = match path {
            // A read of codes is signed.
            "/api/v1/orders/ord_0/vouchers" | "/api/v1/credentials/rotate" => 405,
            "/api/v1/orders/ord_0" => 404,
            _ => 200,
        };
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {text}");
        assert!(text.ends_with("\r\n\r\n"), "a HEAD has no body: {text}");
    }
}

#[tokio::test]
async fn ambiguous_framing_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    let address = shared().http_address();
    let length = body.len();
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let lines = [
        ("a sign", format!("content-length: +{length}"), &body),
        (
            "a list of lengths",
            format!("content-length: {length}, {length}"),
            &body,
        ),
        ("a length in hex", format!("content-length: 0x{length:x}"), &body),
        ("a negative length", format!("content-length: -{length}"), &body),
        (
            "a length past all numbers",
            format!("content-length: 1{:020}", 0),
            &body,
        ),
        (
            "a blank before the colon",
            "transfer-encoding : chunked".to_owned(),
            &chunk,
        ),
        (
            "an unknown coding",
            "transfer-encoding: xchunked".to_owned(),
            &chunk,
        ),
        (
            "chunked, and not last",
            "transfer-encoding: chunked, identity".to_owned(),
            &chunk,
        ),
        (
            "chunked and a length",
            format!("transfer-encoding: chunked\r\ncontent-length: {length}"),
            &chunk,
        ),
        ("a folded line", format!("content-length:\r\n {length}"), &body),
        (
            "a zero byte",
            format!("content-length: {length}\r\nx-zero: a\0b"),
            &body,
        ),
    ];
    for (description, line, body) in lines {
        let mut request = request_head("POST /api/v1/orders", &partner.headers(ORDERS, body.as_bytes()));
        request.truncate(request.len() - 2);
        request.extend_from_slice(format!("{line}\r\n\r\n{body}").as_bytes());
        let response = exchange_undocumented(address, &request).await;
        assert!(response.status.is_client_error(), "{description}: {response:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn chunk_with_wrong_length_is_rejected() {
    let (mut partner, body) = add_buyer(1).await;
    let length = body.len();
    for (description, wire) in [
        (
            "past all numbers",
            format!("{}\r\n{body}\r\n0\r\n\r\n", "f".repeat(17)),
        ),
        ("no hex", format!("zz\r\n{body}\r\n0\r\n\r\n")),
        ("a sign", format!("+{length:x}\r\n{body}\r\n0\r\n\r\n")),
        ("too short", format!("{:x}\r\n{body}\r\n0\r\n\r\n", length - 1)),
    ] {
        let headers = with_header(
            partner.headers(ORDERS, body.as_bytes()),
            TRANSFER_ENCODING,
            "chunked",
        );
        let request = [request_head("POST /api/v1/orders", &headers), wire.into_bytes()].concat();
        let response = exchange(shared().http_address(), &request).await;
        assert!(response.status.is_client_error(), "{description}: {response:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn request_smuggled_in_rejected_body_is_not_executed() {
    let (mut partner, body) = add_buyer(1).await;
    let length = body.len().to_string();
    let smuggled = with_header(partner.headers(ORDERS, body.as_bytes()), CONTENT_LENGTH, &length);
    let smuggled = [
        request_head("POST /api/v1/orders", &smuggled),
        body.clone().into_bytes(),
    ]
    .concat();
    // The head is rejected, and a complete order takes the place of the body.
    for (name, value) in [("content-encoding", "gzip"), ("content-type", "text/plain")] {
        let headers = partner.headers(ORDERS, body.as_bytes());
        let mut headers = with_header(headers, CONTENT_LENGTH, &smuggled.len().to_string());
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        let request = request_head("POST /api/v1/orders", &headers);
        let request = String::from_utf8(request)
            .unwrap()
            .replace("connection: close\r\n", "");
        let response = exchange(
            shared().http_address(),
            &[request.into_bytes(), smuggled.clone()].concat(),
        )
        .await;
        assert_eq!(response.status, 415, "{response:?}");
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

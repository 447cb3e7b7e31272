//! Floods of the operator listener by clients without credentials: memory, and service for operators.

use std::time::Duration;

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use vouchsafe_test_harness::raw_http::request_head;
use vouchsafe_test_harness::{Instance, Operator, WAIT_TIMEOUT, expect_error, text_of};

use crate::browser::Browser;
use crate::operator_accounts::add_operator;
use crate::slow_readers::resident_mib;

/// The longest form that the console reads.
const FORM_BYTES: usize = 256 * 1024;

const SENDERS: usize = 300;

/// The forms alone are 75 MiB; sent back as pages they were a gigabyte.
const MAX_GROWTH_MIB: u64 = 160;

/// A form of a page with as many fields as fit.
fn form_request(cookie: Option<&str>, bytes: usize) -> Vec<u8> {
    let body = "a&".repeat(bytes / 2);
    let length = body.len().to_string();
    let headers = [
        ("accept", Some("text/html")),
        ("sec-fetch-site", Some("same-origin")),
        ("content-type", Some("application/x-www-form-urlencoded")),
        ("content-length", Some(length.as_str())),
        ("cookie", cookie),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::from_str(value?).unwrap();
        Some((HeaderName::from_static(name), value))
    });
    let headers: HeaderMap = headers.collect();
    [
        &request_head("POST /partners/create", &headers)[..],
        body.as_bytes(),
    ]
    .concat()
}

/// Sends the request from many clients that read nothing of the responses, and returns the growth of the
/// service in MiB.
async fn flood(service: &Instance, request: &[u8]) -> u64 {
    let before = resident_mib(service.pid());
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        let (address, request) = (service.admin_address(), request.to_vec());
        senders.spawn(async move {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4 * 1024).unwrap();
            let mut stream = socket.connect(address).await.unwrap();
            // The service may close the connection before it has read everything.
            drop(stream.write_all(&request).await);
            stream
        });
    }
    let mut peak = before;
    let mut streams = Vec::new();
    while let Some(sent) = senders.join_next().await {
        streams.push(sent.unwrap());
        peak = peak.max(resident_mib(service.pid()));
    }
    // Operators are served while all responses are unread.
    let mut operator = Operator::of(service);
    for _ in 0..20 {
        operator.get("/admin/v1/partners").await;
        peak = peak.max(resident_mib(service.pid()));
    }
    drop(streams);
    peak - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_forms_of_strangers_and_of_ended_sessions_use_bounded_memory() {
    let service = Instance::start_with(&[("VOUCHSAFE_ADMIN_MAX_IN_FLIGHT_PER_ADDRESS", "1000")]);
    let mut admin = Operator::of(&service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let jane = Browser::signed_in(&service, &mut admin, &name).await;
    let ended = jane.cookie.unwrap();
    let disable = json!({ "disabled": true });
    admin
        .send_json(Method::PATCH, &format!("/admin/v1/operators/{name}"), &disable)
        .await;
    for (cookie, bytes) in [(None, FORM_BYTES), (Some(ended.as_str()), 60 * 1024)] {
        let growth = flood(&service, &form_request(cookie, bytes)).await;
        assert!(growth < MAX_GROWTH_MIB, "{growth} MiB, cookie {cookie:?}");
    }
}

#[tokio::test]
async fn form_without_the_cookie_of_an_ended_session_is_not_sent_back() {
    let service = Instance::start();
    let address = service.admin_address();
    for cookie in [None, Some(format!("vouchsafe_session=vsn_{}", "7".repeat(64)))] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        // Small enough for the buffers of the kernel: the service responds before it has read it.
        let request = form_request(cookie.as_deref(), 8 * 1024);
        stream.write_all(&request).await.unwrap();
        let mut response = Vec::new();
        let read = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut response)).await;
        drop(read.expect("the service closes the connection"));
        let response = String::from_utf8_lossy(&response);
        assert!(response.starts_with("HTTP/1.1 401"), "{response}");
        assert!(!response.contains("name=\"a\""), "{response}");
        assert!(response.len() < 2 * 1024, "{} bytes", response.len());
    }
}

/// Requests whose bodies do not arrive, of one client address. Each is in flight until the service gives its
/// body up.
fn hold_requests(service: &Instance, client: &'static str, count: usize) -> JoinSet<()> {
    let mut waiting = JoinSet::new();
    for _ in 0..count {
        let address = service.admin_address();
        let token = service.operator_token();
        waiting.spawn(async move {
            let headers = [
                ("x-forwarded-for", client),
                ("authorization", &format!("Bearer {token}")),
                ("content-type", "application/json"),
                ("content-length", "2"),
            ];
            let headers: HeaderMap = headers
                .into_iter()
                .map(|(name, value)| {
                    (
                        HeaderName::from_static(name),
                        HeaderValue::from_str(value).unwrap(),
                    )
                })
                .collect();
            loop {
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let head = request_head("POST /admin/v1/partners", &headers);
                stream.write_all(&head).await.unwrap();
                drop(stream.read_to_end(&mut Vec::new()).await);
            }
        });
    }
    waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_address_at_its_cap_is_refused_and_another_one_is_served() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_ADMIN_MAX_IN_FLIGHT_PER_ADDRESS", "2"),
        ("VOUCHSAFE_ADMIN_TRUSTED_PROXIES", "127.0.0.0/8"),
    ]);
    let mut operator = Operator::repeating(&service, Duration::ZERO);
    let waiting = hold_requests(&service, "203.0.113.7", 2);
    let of_client = [("x-forwarded-for", "203.0.113.7")];
    let refused =
        vouchsafe_test_harness::eventually("the address to be at its cap", WAIT_TIMEOUT, async || {
            let response = operator
                .call_without_token(Method::GET, "/healthz", &of_client)
                .await;
            Some(response).filter(|response| response.status == 429)
        });
    let refused = refused.await;
    let error = expect_error(&refused, 429, "TOO_MANY_REQUESTS_IN_FLIGHT");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("the client address has 2"),
        "{error}"
    );
    assert_eq!(refused.header("retry-after"), Some("1"), "{}", text_of(&refused));
    let other = [("x-forwarded-for", "203.0.113.8")];
    assert_eq!(
        operator
            .call_without_token(Method::GET, "/healthz", &other)
            .await
            .status,
        200
    );
    drop(waiting);
    let served =
        vouchsafe_test_harness::eventually("the address to be served again", WAIT_TIMEOUT, async || {
            let response = operator
                .call_without_token(Method::GET, "/healthz", &of_client)
                .await;
            Some(response).filter(|response| response.status == 200)
        });
    served.await;
}

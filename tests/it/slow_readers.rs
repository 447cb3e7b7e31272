//! Clients that read their responses slowly: cap of requests in flight, deadline of responses, pages of
//! limited size.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::Method;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::metrics::scrape;
use vouchsafe_test_harness::raw_http::{exchange_bytes, request_head};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, text_of,
};

/// Vouchers of an order, as many as an order may have in a line.
const VOUCHERS: u32 = 1_000;

/// Their list exceeds the size of a page several times.
const ORDERS: u32 = 9;

/// Bytes of the entries of a page, and an allowance for the envelope.
const MAX_PAGE_BYTES: usize = 1024 * 1024 + 1_024;

const SLOW_READERS: usize = 200;

/// Requests that one slow reader sends at once. Some are refused while the key is at its cap; the responses
/// of the others exceed the buffers of both kernels, however fast the service is.
const REQUESTS: usize = 24;

/// Requests for the codes of an order, whose responses have a quarter of a MiB each.
const CODE_REQUESTS: usize = 24;

const IN_FLIGHT: usize = 8;

/// Memory that the responses of `SLOW_READERS` would take without the cap is three times as much.
const MAX_GROWTH_MIB: u64 = 64;

/// A partner with orders whose list has several pages.
async fn add_partner_with_orders(service: &Instance) -> (Operator, Partner, Sale) {
    let mut operator = Operator::of(service);
    let sale = operator.add_stocked_product((ORDERS * VOUCHERS) as usize).await;
    let mut partner = operator.add_partner("1000000").await;
    for _ in 0..ORDERS {
        expect_success(&partner.order(&sale, VOUCHERS).await, 201);
    }
    (operator, partner, sale)
}

#[tokio::test]
async fn page_is_limited_in_bytes_and_codes_of_an_order_are_complete() {
    let service = Instance::start();
    let (_, mut partner, _) = add_partner_with_orders(&service).await;
    let mut ids = Vec::new();
    let mut path = "/orders?limit=100".to_owned();
    loop {
        let response = partner.get(&path).await;
        assert!(
            response.body.len() <= MAX_PAGE_BYTES,
            "{} bytes",
            response.body.len()
        );
        let page = expect_success(&response, 200);
        let orders = page["data"].as_array().unwrap();
        ids.extend(
            orders
                .iter()
                .map(|order| order["order_id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            assert_eq!(page["has_more"], Value::Bool(false));
            break;
        };
        assert!(!orders.is_empty() && page["has_more"] == Value::Bool(true));
        path = format!("/orders?limit=100&cursor={cursor}");
    }
    assert!(path.contains("cursor="), "the list has a single page");
    assert_eq!(ids.len(), ORDERS as usize);
    let newest_first = |ids: &mut Vec<String>| {
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
    };
    let mut sorted = ids.clone();
    newest_first(&mut sorted);
    assert_eq!(ids, sorted, "each order comes once, newest first");
    assert_eq!(partner.count_codes(&ids[0]).await, VOUCHERS as usize);
}

/// A GET of a connection that stays open.
fn get_request(target: &str, headers: &HeaderMap) -> String {
    let mut request = format!("GET {target} HTTP/1.1\r\nhost: vouchsafe.test\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    request + "\r\n"
}

/// Sends requests for a large page and reads a kibibyte from time to time. Returns when the service has
/// closed the connection.
async fn read_slowly(address: SocketAddr, request: String, requests: usize) -> usize {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1024).unwrap();
    let mut stream: TcpStream = socket.connect(address).await.unwrap();
    let last = request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    stream
        .write_all((request.repeat(requests - 1) + &last).as_bytes())
        .await
        .unwrap();
    let mut received = 0;
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return received,
            Ok(bytes) => received += bytes,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Resident memory of a process. MiB.
pub(crate) fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1_024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_are_capped_and_disconnected_and_others_are_served() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_MAX_IN_FLIGHT", &IN_FLIGHT.to_string()),
        ("VOUCHSAFE_RESPONSE_DEADLINE", "8"),
    ]);
    let (mut operator, mut partner, _) = add_partner_with_orders(&service).await;
    let mut other = operator.add_partner("1").await;
    let mut identity = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut identity);
    let request = get_request("/api/v1/orders?limit=100", &identity);
    let before = resident_mib(service.pid());
    let mut readers = JoinSet::new();
    for _ in 0..SLOW_READERS {
        readers.spawn(read_slowly(service.http_address(), request.clone(), REQUESTS));
    }

    let refused = eventually(
        "the key to have too many requests in flight",
        WAIT_TIMEOUT,
        async || Some(partner.get("/wallets").await).filter(|response| response.status.as_u16() == 429),
    );
    let refused = refused.await;
    let error = expect_error(&refused, 429, "TOO_MANY_REQUESTS_IN_FLIGHT");
    assert_eq!(error["retryable"], true);
    assert_eq!(refused.header("retry-after"), Some("1"), "{}", text_of(&refused));
    expect_success(&other.get("/wallets").await, 200);

    // They end only because the service resets their connections: at their speed a page takes 20 seconds.
    let mut peak = before;
    while let Some(ended) = readers.join_next().await {
        ended.unwrap();
        peak = peak.max(resident_mib(service.pid()));
        expect_success(&other.get("/wallets").await, 200);
    }
    assert!(
        peak - before < MAX_GROWTH_MIB,
        "memory grew from {before} to {peak} MiB"
    );
    // Their permits are free again.
    let served = eventually("the key to be served", WAIT_TIMEOUT, async || {
        Some(partner.get("/wallets").await).filter(|response| response.status.as_u16() == 200)
    });
    expect_success(&served.await, 200);
    let unread = count_unread(&service).await;
    assert!(unread >= IN_FLIGHT, "{unread}");
}

/// Responses whose connection was reset because the client did not read them.
async fn count_unread(service: &Instance) -> usize {
    let metrics = scrape(service).await;
    let unread = metrics
        .lines()
        .find_map(|line| line.strip_prefix("vouchsafe_http_responses_unread_total "));
    unread.unwrap().parse().unwrap()
}

/// A part of the codes may have arrived: the read stays recorded, and the order cannot be cancelled. The
/// client repeats the request.
#[tokio::test]
async fn codes_of_a_reset_connection_stay_recorded_as_read_and_are_read_again() {
    let service = Instance::start_with(&[("VOUCHSAFE_RESPONSE_DEADLINE", "1")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(VOUCHERS as usize).await;
    let mut partner = operator.add_partner("1000000").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, VOUCHERS).await, 201));
    let path = format!("/api/v1/orders/{order_id}/vouchers");
    let signed = partner.headers_of_get(&path);

    let received = read_slowly(service.http_address(), get_request(&path, &signed), CODE_REQUESTS).await;
    // On a slow machine the deadline ends this response, too.
    let complete = eventually("a complete response", WAIT_TIMEOUT, async || {
        partner.client.get_codes(&order_id).await.ok()
    })
    .await;
    assert!(
        received < CODE_REQUESTS * complete.body.len(),
        "{received} bytes: the client has read all"
    );
    assert!(count_unread(&service).await >= 1);
    let codes = expect_success(&complete, 200);
    assert_eq!(codes["data"].as_array().unwrap().len(), VOUCHERS as usize);
    let reads = partner
        .list_all(&format!("/orders/{order_id}/vouchers/access"))
        .await;
    assert!(reads.len() >= 2, "{reads:?}");
    let order = partner.read(&format!("/orders/{order_id}")).await;
    assert_eq!(
        order["vouchers"][0]["first_retrieved_at"],
        reads.last().unwrap()["at"]
    );
    let cancelled = partner
        .send_signed(Method::POST, &format!("/orders/{order_id}/cancel"), "")
        .await;
    expect_error(&cancelled, 409, "ORDER_NOT_CANCELLABLE");
}

/// Signed requests without their body: each is in flight until the service gives the body up, and then sent
/// again.
fn hold_permits(service: &Instance, partner: &Partner, count: usize) -> JoinSet<()> {
    let mut waiting = JoinSet::new();
    for _ in 0..count {
        let (partner, address) = (partner.reconnect(), service.http_address());
        waiting.spawn(async move {
            loop {
                let mut headers = partner.headers("/api/v1/orders", b"{}");
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("2"));
                drop(exchange_bytes(address, &request_head("POST /api/v1/orders", &headers)).await);
            }
        });
    }
    waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_at_its_cap_and_its_successor_are_refused_and_other_keys_are_served() {
    let service = Instance::start_with(&[("VOUCHSAFE_MAX_IN_FLIGHT", "2")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("1000").await;
    let mut other_partner = operator.add_partner("1").await;
    let credentials = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &credentials, &json!({})).await;
    let mut other_key = partner.with_credential(&issued);
    let rotated = partner.send_signed(Method::POST, "/credentials/rotate", "").await;
    let mut successor = partner.with_credential(&expect_success(&rotated, 201));

    let waiting = hold_permits(&service, &partner, 2);
    let refused = eventually("the key to be at its cap", WAIT_TIMEOUT, async || {
        Some(successor.order_with_key("capped", &sale, 1).await).filter(|response| response.status == 429)
    });
    expect_error(&refused.await, 429, "TOO_MANY_REQUESTS_IN_FLIGHT");
    expect_success(&other_key.get("/wallets").await, 200);
    expect_success(&other_partner.get("/wallets").await, 200);
    drop(waiting);
    await_free_permit(&mut successor, "the waiting requests").await;
}

/// Waits until the only permit of the key is free again.
async fn await_free_permit(partner: &mut Partner, after: &str) {
    let event = format!("a permit to be free after {after}");
    let served = eventually(&event, WAIT_TIMEOUT, async || {
        Some(partner.get("/wallets").await).filter(|response| response.status.as_u16() == 200)
    });
    served.await;
}

#[tokio::test]
async fn permit_is_free_after_an_order_and_its_refusals() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_MAX_IN_FLIGHT", "1"),
        ("VOUCHSAFE_LIMIT_ORDERS", "1/86400"),
    ]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let mut headers = partner.headers("/api/v1/orders", b"{}");
    headers.insert("x-signature", HeaderValue::from_static("t=1,v1=0"));
    expect_error(&partner.post(headers, "{}").await, 401, "INVALID_SIGNATURE");
    await_free_permit(&mut partner, "a wrong signature").await;

    expect_success(&partner.order(&sale, 1).await, 202);
    await_free_permit(&mut partner, "an order").await;

    expect_error(&partner.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
    await_free_permit(&mut partner, "429").await;
}

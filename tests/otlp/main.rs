//! OTLP trace export: one trace per order from request to commit, and unavailable collectors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests panic on failure"
)]

mod collector;

use std::collections::BTreeMap;
use std::process::Command;

use futures_util::future::join_all;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, PartnerClient};
use vouchsafe_api_client::partner_file::PartnerFile;
use vouchsafe_api_client::{ApiResponse, Client};

use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT, free_address, program, wait_until};

use self::collector::{Behavior, Collector, Span};

const ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

/// Prefix of every idempotency key; must not be exported.
const KEY_PREFIX: &str = "key-that-must-not-be-told";

/// The caller's trace and span.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_SPAN: &str = "00f067aa0ba902b7";

/// Starts a service that exports to this address. Its single lane batches concurrent records.
/// The collector expects the header of this file.
const HEADERS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp/headers");

fn start_exporting_to(url: String) -> Instance {
    Instance::start_with(&[
        ("VOUCHSAFE_OTLP_ENDPOINT", &url),
        ("OTEL_EXPORTER_OTLP_HEADERS_FILE", HEADERS_FILE),
        ("VOUCHSAFE_LANES", "1"),
    ])
}

fn partner_of(service: &Instance) -> PartnerClient {
    let file = PartnerFile::read(&service.data_dir().join("sandbox-partner.json")).unwrap();
    PartnerClient::new(&service.base_url(), file.credentials).unwrap()
}

/// Orders one voucher, with this `traceparent` if given.
async fn place_order(partner: &mut PartnerClient, key: &str, traceparent: Option<&str>) -> ApiResponse {
    let mut headers = HeaderMap::new();
    headers.insert(
        IDEMPOTENCY_KEY,
        HeaderValue::from_str(&format!("{KEY_PREFIX}-{key}")).unwrap(),
    );
    if let Some(traceparent) = traceparent {
        let name = HeaderName::from_static("traceparent");
        headers.insert(name, HeaderValue::from_str(traceparent).unwrap());
    }
    let response = partner
        .send_signed(Method::POST, "/orders", ORDER, headers)
        .await
        .unwrap();
    assert_eq!(response.status, 201, "{:?}", response.body);
    response
}

fn trace_of(response: &ApiResponse) -> &str {
    response.header("x-trace-id").unwrap()
}

async fn metric(service: &Instance, name: &str) -> u64 {
    let mut client = Client::new(Origin::parse(&service.admin_url()).unwrap());
    let response = client
        .call(Method::GET, "/metrics", HeaderMap::new(), "".into())
        .await;
    let text = String::from_utf8(response.unwrap().body.to_vec()).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

async fn read_codes(partner: &mut PartnerClient, order: &ApiResponse) -> Vec<String> {
    let order: Value = order.json().unwrap();
    let read = partner
        .get_codes(order["order_id"].as_str().unwrap())
        .await
        .unwrap();
    let read: Value = read.json().unwrap();
    let vouchers = read["data"].as_array().unwrap().iter();
    let credentials = vouchers.flat_map(|voucher| voucher["credentials"].as_array().unwrap());
    // The PIN 0000 is in IDs by chance.
    let codes = credentials.filter(|credential| credential["type"] == "code");
    codes
        .map(|code| code["value"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the spans of an order by name; asserts their hierarchy and the parent of the first span.
fn order_spans<'a>(spans: &'a [Span], trace: &str, caller: &str) -> BTreeMap<&'a str, &'a Span> {
    let matching = spans.iter().filter(|span| span.trace == trace);
    let matching: Vec<_> = matching.map(|span| (span.name.as_str(), span)).collect();
    let by_name: BTreeMap<_, _> = matching.iter().copied().collect();
    assert_eq!(
        by_name.keys().copied().collect::<Vec<_>>(),
        [
            "commit",
            "hold inventory",
            "hold wallet",
            "place_order",
            "request"
        ]
    );
    assert_eq!(
        matching.len(),
        by_name.len(),
        "duplicate span names: {matching:?}"
    );
    assert_eq!(by_name["request"].parent, caller);
    assert_eq!(by_name["place_order"].parent, by_name["request"].id);
    for name in ["hold wallet", "hold inventory", "commit"] {
        assert_eq!(by_name[name].parent, by_name["place_order"].id, "{name}");
    }
    by_name
}

fn attribute<'a>(span: &'a Span, name: &str) -> &'a str {
    let value = span.attributes.get(name);
    value.unwrap_or_else(|| panic!("{name} is missing in {span:?}"))
}

#[tokio::test]
async fn order_is_exported_as_one_trace_without_secrets() {
    let collector = Collector::start(Behavior::Accept);
    let mut service = start_exporting_to(collector.url());
    let mut partner = partner_of(&service);
    let continued = place_order(
        &mut partner,
        "continued",
        Some(&format!("00-{TRACE}-{PARENT_SPAN}-01")),
    )
    .await;
    let new_trace = place_order(&mut partner, "begun", None).await;
    let unrecorded = "5bf92f3577b34da6a3ce929d0e0e4736";
    let unrecorded = place_order(
        &mut partner,
        "unrecorded",
        Some(&format!("00-{unrecorded}-{PARENT_SPAN}-00")),
    )
    .await;
    let codes = read_codes(&mut partner, &new_trace).await;
    assert_eq!(trace_of(&continued), TRACE);
    // Shutdown exports the remaining spans.
    assert_eq!(service.stop(), Some(0));

    let spans = collector.spans();
    let continued_spans = order_spans(&spans, TRACE, PARENT_SPAN);
    order_spans(&spans, trace_of(&new_trace), "");
    assert!(spans.iter().all(|span| span.trace != trace_of(&unrecorded)));
    for (span, name, value) in [
        ("request", "http.method", "POST"),
        ("request", "http.route", "/api/v1/orders"),
        ("hold wallet", "currency", "USD"),
        ("commit", "batch.records", "1"),
        ("commit", "verdict", "committed"),
    ] {
        assert_eq!(attribute(continued_spans[span], name), value);
    }
    assert!(attribute(continued_spans["hold inventory"], "sku").contains("sbx-instant"));
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "vouchsafe");
    assert_eq!(resource["deployment.environment.name"], "sandbox");

    let credentials = std::fs::read_to_string(service.data_dir().join("sandbox-partner.json")).unwrap();
    let credentials: Value = serde_json::from_str(&credentials).unwrap();
    let stderr = |name: &str| credentials[name].as_str().unwrap().to_owned();
    let sent = String::from_utf8_lossy(&collector.bytes()).into_owned();
    assert!(!codes.is_empty() && sent.contains("/api/v1/orders"));
    for secret in
        codes
            .iter()
            .cloned()
            .chain([KEY_PREFIX.to_owned(), stderr("api_key"), stderr("api_secret")])
    {
        assert!(!sent.contains(&secret), "the export contains {secret}");
    }
}

#[tokio::test]
async fn batched_records_keep_separate_traces() {
    let collector = Collector::start(Behavior::Accept);
    let mut service = start_exporting_to(collector.url());
    let orders = (0..24).map(async |number| {
        let mut partner = partner_of(&service);
        let placed = place_order(&mut partner, &number.to_string(), None).await;
        trace_of(&placed).to_owned()
    });
    let traces = join_all(orders).await;
    assert_eq!(service.stop(), Some(0));

    let spans = collector.spans();
    for trace in &traces {
        order_spans(&spans, trace, "");
    }
    let mut batches: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for commit in spans.iter().filter(|span| span.name == "commit") {
        let batch = ["lane", "batch.number"].map(|name| attribute(commit, name));
        let records = attribute(commit, "batch.records");
        batches.entry(batch).or_default().push(records);
    }
    for (batch, records) in &batches {
        let expected = vec![records.len().to_string(); records.len()];
        assert_eq!(*records, expected, "{batch:?}");
    }
    assert!(batches.values().any(|records| records.len() > 1), "{batches:?}");
}

#[tokio::test]
async fn unavailable_collector_does_not_affect_orders() {
    let unused = free_address();
    let rejecting = Collector::start(Behavior::Reject);
    for url in [format!("http://{unused}"), rejecting.url()] {
        let mut service = start_exporting_to(url);
        let mut partner = partner_of(&service);
        place_order(&mut partner, "before", None).await;
        wait_until("spans to be dropped", WAIT_TIMEOUT, || {
            service.log().contains("span export dropping spans").then_some(())
        });
        place_order(&mut partner, "after", None).await;
        assert!(metric(&service, "vouchsafe_spans_dropped_total").await > 0);
        assert_eq!(metric(&service, "vouchsafe_spans_exported_total").await, 0);
        assert_eq!(service.stop(), Some(0));
    }
}

#[tokio::test]
async fn hanging_collector_delays_neither_orders_nor_shutdown() {
    let hanging = Collector::start(Behavior::Hang);
    let mut service = start_exporting_to(hanging.url());
    let mut partner = partner_of(&service);
    place_order(&mut partner, "before", None).await;
    wait_until("an export request", WAIT_TIMEOUT, || {
        hanging.has_requests().then_some(())
    });
    place_order(&mut partner, "after", None).await;
    assert_eq!(service.stop(), Some(0));
    assert!(service.log().contains("cannot flush spans to the collector"));
}

#[test]
fn endpoint_with_password_is_rejected_without_quoting_it() {
    let unused = free_address();
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command.arg("--data-dir").arg(scratch.path());
    command.env(
        "VOUCHSAFE_OTLP_ENDPOINT",
        "http://somebody:pass-word@collect.example",
    );
    // If the endpoint were accepted, the service would fail at this database instead.
    command.env("DATABASE_URL", format!("postgres://somebody@{unused}/orders"));
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.starts_with("vouchsafe: VOUCHSAFE_OTLP_ENDPOINT: expected only scheme, host"),
        "{stderr}"
    );
    assert!(!stderr.contains("pass-word"), "{stderr}");
}

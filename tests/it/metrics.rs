//! `GET /metrics` after traffic: money by currency, runtimes, exemplars.

use std::collections::BTreeMap;

use hyper::Method;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client};
use vouchsafe_test_harness::{Instance, Operator, expect_success, id_of, order_body, text_of};

use crate::payouts::{payout_body, request_payout};

/// The metrics in OpenMetrics, as Prometheus asks for them.
pub(crate) async fn scrape(service: &Instance) -> String {
    let mut client = Client::new(Origin::parse(&service.admin_url()).unwrap());
    let accept = HeaderValue::from_static("application/openmetrics-text;version=1.0.0");
    let headers = HeaderMap::from_iter([(ACCEPT, accept)]);
    let response = client
        .call(Method::GET, "/metrics", headers, "".into())
        .await
        .unwrap();
    assert_eq!(response.status, 200);
    text_of(&response).to_owned()
}

/// The samples whose line begins with `start`.
fn samples<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(start)).collect()
}

/// The counters of money by series, without their common prefix.
fn money(text: &str) -> BTreeMap<String, f64> {
    let counters = text
        .lines()
        .filter_map(|line| line.strip_prefix("vouchsafe_money_")?.split_once(' '));
    counters
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn committed_money_is_counted_in_major_units_by_currency() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    // A sandbox begins with money in the wallets of its partner.
    let before = money(&scrape(&service).await);
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100.5").await;
    operator.top_up(&partner.partner_id, "JPY", "250").await;
    let placed = expect_success(&partner.order(&sale, 2).await, 201);
    expect_success(&partner.order(&sale, 1).await, 201);
    // Refused, so nothing is debited.
    assert_eq!(partner.order(&sale, 1).await.status, 409);
    let cancel = format!("/orders/{}/cancel", id_of(&placed));
    expect_success(&partner.send_signed(Method::POST, &cancel, "").await, 200);
    let payout = request_payout(&mut partner, "payout", &payout_body("30.5")).await;
    expect_success(&payout, 202);

    let mut moved = money(&scrape(&service).await);
    for (series, amount) in &mut moved {
        *amount -= before.get(series).unwrap_or(&0.0);
    }
    moved.retain(|_, amount| *amount != 0.0);
    let expected = [
        (r#"credited_total{currency="JPY",kind="TOP_UP"}"#, 250.0),
        (r#"credited_total{currency="USD",kind="REFUND"}"#, 50.0),
        (r#"credited_total{currency="USD",kind="TOP_UP"}"#, 100.5),
        (r#"debited_total{currency="USD",kind="DEBIT"}"#, 75.0),
        (r#"debited_total{currency="USD",kind="PAYOUT"}"#, 30.5),
    ];
    let expected = expected.map(|(series, amount)| (series.to_owned(), amount));
    assert_eq!(moved, BTreeMap::from(expected));
}

#[tokio::test]
async fn order_duration_has_the_trace_of_a_recorded_order() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100").await;
    let trace_of = |response: &ApiResponse| response.header("x-trace-id").unwrap().to_owned();
    let mut traces = Vec::new();
    for traceparent in [
        None,
        Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        // Its caller does not record it.
        Some("00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b7-00"),
    ] {
        let body = order_body(&sale, 1).to_string();
        let mut headers = partner.headers("/api/v1/orders", body.as_bytes());
        if let Some(traceparent) = traceparent {
            let value = HeaderValue::from_static(traceparent);
            headers.insert(HeaderName::from_static("traceparent"), value);
        }
        let placed = partner.post(headers, body).await;
        expect_success(&placed, 201);
        traces.push(trace_of(&placed));

        let text = scrape(&service).await;
        let bucket = r#"vouchsafe_http_request_duration_seconds_bucket{le="#;
        let orders: Vec<_> = samples(&text, bucket)
            .into_iter()
            .filter(|line| line.contains(r#"route="/api/v1/orders",status_class="2xx""#))
            .collect();
        let has_exemplar = |trace: &str| {
            let exemplar = format!(r#" # {{trace_id="{trace}"}} "#);
            orders.iter().any(|line| line.contains(&exemplar))
        };
        let is_recorded = traceparent.is_none_or(|traceparent| traceparent.ends_with("01"));
        assert_eq!(
            has_exemplar(&traces[traces.len() - 1]),
            is_recorded,
            "{orders:#?}"
        );
    }
}

#[tokio::test]
async fn each_runtime_of_the_process_has_its_workers() {
    let service = Instance::start_with(&[("VOUCHSAFE_HTTP_WORKERS", "3")]);
    let text = scrape(&service).await;
    for (runtime, workers) in [
        ("database", 2),
        ("deliveries", 1),
        ("main", 1),
        ("operator_listener", 2),
        ("partner_listener", 3),
        ("procurement", 1),
        ("webhooks", 2),
    ] {
        let line = format!(r#"vouchsafe_tokio_workers{{runtime="{runtime}"}} {workers}"#);
        assert_eq!(samples(&text, &line).len(), 1, "{line}: {text}");
        for metric in ["alive_tasks", "global_queue_tasks", "busy_seconds_total"] {
            let start = format!(r#"vouchsafe_tokio_{metric}{{runtime="{runtime}"}} "#);
            assert_eq!(samples(&text, &start).len(), 1, "{start}: {text}");
        }
    }
    assert_eq!(samples(&text, "vouchsafe_tokio_workers{").len(), 7, "{text}");
}

//! `Retry-After` of webhook receivers, in seconds or as a date, within its bounds.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};
use vouchsafe_domain::clock::{Clock as _, SystemClock};

use vouchsafe_test_harness::{
    Behavior, Operator, Partner, Receiver, WAIT_TIMEOUT, eventually, expect_success, shared,
};

/// Between the first backoff (5 s) and twice that.
const REQUESTED_DELAY: time::Duration = time::Duration::seconds(8);

/// More than a busy machine needs, and less than an hour.
const MAX_EXPECTED_DELAY: time::Duration = time::Duration::minutes(10);

fn http_date(at: OffsetDateTime) -> String {
    at.format(&Rfc2822).unwrap().replace("+0000", "GMT")
}

fn parse_time(text: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(text.as_str().unwrap(), &Rfc3339).unwrap()
}

/// Registers a receiver that responds 429 with this `Retry-After`.
async fn register_busy_receiver(partner: &mut Partner, retry_after: &str) -> (Receiver, String) {
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::StatusWithHeaders(
        429,
        format!("Retry-After: {retry_after}\r\n"),
    ));
    let body = json!({ "url": receiver.url(), "events": ["order.delivered"] }).to_string();
    let webhook = expect_success(&partner.send_signed(Method::POST, "/webhooks", &body).await, 201);
    (receiver, webhook["webhook_id"].as_str().unwrap().to_owned())
}

/// Waits until the partner sees that an attempt at its endpoint has failed.
async fn wait_until_failed(partner: &mut Partner, webhook_id: &str) -> Value {
    eventually("an attempt to fail", WAIT_TIMEOUT, async || {
        let webhooks = partner.read("/webhooks").await;
        let webhooks = webhooks["data"].as_array().unwrap().iter();
        let mut failed = webhooks.filter(|webhook| webhook["failing_since"].is_string());
        failed
            .find(|webhook| webhook["webhook_id"] == webhook_id)
            .cloned()
    })
    .await
}

/// Returns when the only attempt so far ended.
async fn only_attempt_ended_at(operator: &mut Operator, webhook_id: &str) -> OffsetDateTime {
    let deliveries = operator
        .get(&format!("/admin/v1/deliveries?webhook_id={webhook_id}"))
        .await;
    let attempts = &deliveries["data"][0]["attempts"];
    assert_eq!(
        (attempts.as_array().unwrap().len(), &attempts[0]["status"]),
        (1, &json!(429))
    );
    parse_time(&attempts[0]["at"]) + Duration::from_millis(attempts[0]["latency_ms"].as_u64().unwrap())
}

#[tokio::test]
async fn retry_after_within_bounds_is_honoured() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("1000").await;
    let seconds = register_busy_receiver(&mut partner, "8").await;
    let date = SystemClock::new().now().replace_nanosecond(0).unwrap() + REQUESTED_DELAY;
    let dated = register_busy_receiver(&mut partner, &http_date(date)).await;
    expect_success(&partner.order(&sale, 1).await, 201);

    let next = parse_time(&wait_until_failed(&mut partner, &seconds.1).await["next_attempt_at"]);
    let ended = only_attempt_ended_at(&mut operator, &seconds.1).await;
    assert!(
        next >= ended + REQUESTED_DELAY,
        "{next}, expected 8 s after {ended}"
    );
    let next_dated = parse_time(&wait_until_failed(&mut partner, &dated.1).await["next_attempt_at"]);
    assert!(next_dated >= date, "{next_dated}, expected {date}");

    for ((receiver, _), not_before) in [(&seconds, next), (&dated, next_dated)] {
        let first = receiver.wait_for_events(1).remove(0);
        receiver.set_behavior(Behavior::Status(204));
        let second = receiver.wait_for_events(2).remove(1);
        assert_eq!(second.event_id(), first.event_id());
        let sent_at: i64 = second.headers["webhook-timestamp"].parse().unwrap();
        assert!(
            sent_at >= not_before.unix_timestamp(),
            "{sent_at}, not before {not_before}"
        );
    }
    eventually("both endpoints to be active", WAIT_TIMEOUT, async || {
        let webhooks = partner.read("/webhooks").await;
        let active = |webhook: &Value| webhook["status"] == "active" && webhook["next_attempt_at"].is_null();
        webhooks["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(active)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn retry_after_beyond_twice_backoff_or_past_is_ignored() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("1000").await;
    let mut listening = Vec::new();
    for retry_after in [
        "3600",
        "18446744073709551615",
        "-1",
        "soon",
        "Fri, 31 Dec 1999 23:59:59 GMT",
    ] {
        listening.push(register_busy_receiver(&mut partner, retry_after).await);
    }
    expect_success(&partner.order(&sale, 1).await, 201);
    for (_, webhook_id) in &listening {
        let next = parse_time(&wait_until_failed(&mut partner, webhook_id).await["next_attempt_at"]);
        let ended = only_attempt_ended_at(&mut operator, webhook_id).await;
        assert!(
            next >= ended + Duration::from_secs(5),
            "the first backoff must apply: {next}, {ended}"
        );
        assert!(next < ended + MAX_EXPECTED_DELAY, "{next}, {ended}");
    }
}

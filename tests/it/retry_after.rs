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

/// Waits until the event was sent again. Returns when the first attempt ended and when the second one began.
async fn wait_for_retry(operator: &mut Operator, webhook_id: &str) -> [OffsetDateTime; 2] {
    let path = format!("/admin/v1/deliveries?webhook_id={webhook_id}");
    eventually("a retry", WAIT_TIMEOUT, async || {
        let deliveries = operator.get(&path).await;
        let [first, second, ..] = &deliveries["data"][0]["attempts"].as_array()?[..] else {
            return None;
        };
        assert_eq!(first["status"], 429);
        let latency = Duration::from_millis(first["latency_ms"].as_u64().unwrap());
        Some([parse_time(&first["at"]) + latency, parse_time(&second["at"])])
    })
    .await
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

    let [ended, retried] = wait_for_retry(&mut operator, &seconds.1).await;
    let next = ended + REQUESTED_DELAY;
    assert!(retried >= next, "{retried}, expected 8 s after {ended}");
    let [_, retried] = wait_for_retry(&mut operator, &dated.1).await;
    assert!(retried >= date, "{retried}, expected {date}");

    for ((receiver, _), not_before) in [(&seconds, next), (&dated, date)] {
        receiver.set_behavior(Behavior::Status(204));
        let events = receiver.wait_for_events(2);
        assert_eq!(events[1].event_id(), events[0].event_id());
        let sent_at: i64 = events[1].headers["webhook-timestamp"].parse().unwrap();
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
        // A retry after an hour would be too late for the wait.
        let [ended, retried] = wait_for_retry(&mut operator, webhook_id).await;
        assert!(
            retried >= ended + Duration::from_secs(5),
            "the first backoff must apply: {retried}, {ended}"
        );
    }
}

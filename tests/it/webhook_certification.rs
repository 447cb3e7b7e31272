//! Certification of webhook receivers: signature verification and duplicate handling.

use hyper::Method;
use serde_json::{Value, json};

use crate::certification::{state, wait_for_state};
use crate::deliveries::register_webhook;
use vouchsafe_test_harness::{
    Behavior, Instance, Operator, Partner, Receiver, WAIT_TIMEOUT, eventually, expect_success, shared,
};

struct RegisteredReceiver {
    receiver: Receiver,
    webhook_id: String,
    secret: String,
}

impl RegisteredReceiver {
    async fn register(partner: &mut Partner) -> Self {
        let receiver = Receiver::start();
        let created = register_webhook(partner, &receiver, &json!({})).await;
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        Self {
            receiver,
            webhook_id: text("webhook_id"),
            secret: text("secret"),
        }
    }

    /// Sets the statuses for wrong signatures and duplicate events.
    fn respond_with(&self, wrong_status: u16, duplicate_status: u16) {
        let secret = self.secret.clone();
        self.receiver.set_behavior(Behavior::VerifySignature {
            secret,
            wrong_status,
            duplicate_status,
        });
    }

    async fn send_test_event(&self, partner: &mut Partner) -> Value {
        let path = format!("/webhooks/{}/test", self.webhook_id);
        expect_success(&partner.send_signed(Method::POST, &path, "").await, 200)
    }

    async fn replay(&self, partner: &mut Partner, event_id: &str) {
        let path = format!("/webhooks/{}/replay", self.webhook_id);
        let body = json!({ "event_id": event_id }).to_string();
        expect_success(&partner.send_signed(Method::POST, &path, &body).await, 202);
    }
}

/// Passes both webhook checks with a correct receiver.
pub(crate) async fn pass_webhook_checks(partner: &mut Partner) {
    let registered = RegisteredReceiver::register(partner).await;
    registered.respond_with(401, 200);
    registered.send_test_event(partner).await;
}

/// Waits until a check has this state and reason.
async fn wait_for_reason(partner: &mut Partner, point: &str, expected: &str, why: &str) {
    let found = async || {
        let checklist = partner.read("/certification").await;
        let mut points = checklist["checks"].as_array().unwrap().iter();
        let found = points.find(|found| found["check"] == point).unwrap();
        let reason = found["reason"].as_str().unwrap();
        (found["state"] == expected && reason.contains(why)).then_some(())
    };
    eventually(&format!("{point} is {expected}: {why}"), WAIT_TIMEOUT, found).await;
}

#[tokio::test]
async fn verifying_deduplicating_receiver_passes_both_checks() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let registered = RegisteredReceiver::register(&mut partner).await;
    registered.respond_with(401, 200);
    let result = registered.send_test_event(&mut partner).await;
    assert_eq!(
        (&result["delivered"], &result["status"]),
        (&json!(true), &json!(204))
    );
    let outcome = |name: &str| {
        json!([
            result[name]["passed"],
            result[name]["status"],
            result[name]["fault"]
        ])
    };
    assert_eq!(outcome("wrong_signature"), json!([true, 401, null]));
    assert_eq!(outcome("duplicate"), json!([true, 200, null]));
    wait_for_state(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
    wait_for_state(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    assert_eq!(
        registered.receiver.received().len(),
        3,
        "each event must be sent once"
    );
}

#[tokio::test]
async fn receiver_without_verification_fails_with_advice() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let registered = RegisteredReceiver::register(&mut partner).await;
    let redirect = Behavior::StatusWithHeaders(302, "Location: http://127.0.0.1:1/\r\n".to_owned());
    let disconnected = json!([false, null, "connection"]);
    let verify = "verify every signature";
    let no_2xx = "did not respond 2xx to a valid signature";
    let no_401 = "seconds: respond 401";
    for (behavior, wrong, right, why) in [
        (Behavior::Status(204), json!([false, 204, null]), true, verify),
        (Behavior::Status(400), json!([true, 400, null]), false, no_2xx),
        (Behavior::Status(500), json!([false, 500, null]), false, no_401),
        (redirect, json!([false, 302, null]), false, no_401),
        (Behavior::Status(410), json!([true, 410, null]), false, no_2xx),
        (Behavior::Disconnect, disconnected, false, no_401),
    ] {
        // Pass in between, so that each failure is new.
        registered.respond_with(403, 200);
        registered.send_test_event(&mut partner).await;
        wait_for_state(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
        registered.receiver.set_behavior(behavior.clone());
        let result = registered.send_test_event(&mut partner).await;
        let of_wrong = &result["wrong_signature"];
        assert_eq!(
            json!([of_wrong["passed"], of_wrong["status"], of_wrong["fault"]]),
            wrong,
            "{behavior:?}"
        );
        assert_eq!(result["delivered"], right, "{behavior:?}");
        assert_eq!(
            result["duplicate"].is_null(),
            !right,
            "a failed test event must not be repeated: {behavior:?}"
        );
        wait_for_reason(&mut partner, "WEBHOOK_SIGNATURE", "FAILED", why).await;
    }
    let checklist = partner.read("/certification").await;
    assert_eq!(
        state(&checklist, "DUPLICATE_EVENT"),
        "PASSED",
        "the duplicate check is independent"
    );
}

#[tokio::test]
async fn receiver_that_rejects_duplicates_fails_duplicate_check_only() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let registered = RegisteredReceiver::register(&mut partner).await;
    registered.respond_with(401, 409);
    let result = registered.send_test_event(&mut partner).await;
    let duplicate = &result["duplicate"];
    assert_eq!(
        (&duplicate["passed"], &duplicate["status"]),
        (&json!(false), &json!(409))
    );
    wait_for_reason(&mut partner, "DUPLICATE_EVENT", "FAILED", "store event_id").await;
    wait_for_state(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
}

#[tokio::test]
async fn replayed_event_counts_as_duplicate() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let registered = RegisteredReceiver::register(&mut partner).await;
    registered.respond_with(401, 409);
    expect_success(&partner.order(&sale, 1).await, 201);
    let event_id = registered.receiver.wait_for_events(3)[0].event_id();
    let checklist = partner.read("/certification").await;
    assert_eq!(
        state(&checklist, "DUPLICATE_EVENT"),
        "NOT_SEEN",
        "each event arrived once"
    );
    registered.replay(&mut partner, &event_id).await;
    wait_for_state(&mut partner, "DUPLICATE_EVENT", "FAILED").await;
    // The retry succeeds.
    registered.respond_with(401, 200);
    wait_for_state(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    let events = registered.receiver.received();
    let repeated: Vec<_> = events.iter().skip(3).map(|one| one.event_id()).collect();
    assert!(repeated.iter().all(|id| *id == event_id), "{repeated:?}");
    assert_eq!(
        state(&partner.read("/certification").await, "WEBHOOK_SIGNATURE"),
        "NOT_SEEN"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_observations_after_restart_are_retained() {
    let mut service = Instance::start();
    let mut partner = Operator::of(&service).add_partner("100").await;
    let registered = RegisteredReceiver::register(&mut partner).await;
    registered.receiver.set_behavior(Behavior::Status(204));
    registered.send_test_event(&mut partner).await;
    wait_for_state(&mut partner, "WEBHOOK_SIGNATURE", "FAILED").await;
    wait_for_state(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    let before = partner.read("/certification").await;
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    assert_eq!(partner.read("/certification").await, before);
    // Shutdown writes the observations that are still in memory.
    registered.respond_with(401, 200);
    registered.send_test_event(&mut partner).await;
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let checklist = partner
        .connect_to(&service.base_url())
        .read("/certification")
        .await;
    for point in ["WEBHOOK_SIGNATURE", "DUPLICATE_EVENT"] {
        assert_eq!(state(&checklist, point), "PASSED");
    }
    service.assert_verified();
}

//! Does a partner's receiver verify what comes, and take what it knows already? What its certification says of each kind.

use hyper::Method;
use serde_json::{Value, json};

use crate::certifications::{state, until};
use crate::support::{Instance, Mood, Operator, Partner, Receiver, SOON, accepted, eventually, shared};

/// A receiver that is registered, and its endpoint.
struct Registered {
    receiver: Receiver,
    webhook_id: String,
    secret: String,
}

impl Registered {
    async fn by(partner: &mut Partner) -> Self {
        let receiver = Receiver::new();
        let body = json!({ "url": receiver.url() }).to_string();
        let made = accepted(&partner.signed(Method::POST, "/webhooks", &body).await, 201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Self {
            receiver,
            webhook_id: text("webhook_id"),
            secret: text("secret"),
        }
    }

    /// It verifies, and answers so where a signature is wrong, and where it knows the event.
    fn answers(&self, wrong: u16, known: u16) {
        let secret = self.secret.clone();
        self.receiver.is(Mood::Verifies { secret, wrong, known });
    }

    async fn test(&self, partner: &mut Partner) -> Value {
        let path = format!("/webhooks/{}/test", self.webhook_id);
        accepted(&partner.signed(Method::POST, &path, "").await, 200)
    }

    async fn replay(&self, partner: &mut Partner, event_id: &str) {
        let path = format!("/webhooks/{}/replay", self.webhook_id);
        let body = json!({ "event_id": event_id }).to_string();
        accepted(&partner.signed(Method::POST, &path, &body).await, 202);
    }
}

/// What a good receiver does for its partner's certification.
pub(crate) async fn pass_with_a_receiver(partner: &mut Partner) {
    let registered = Registered::by(partner).await;
    registered.answers(401, 200);
    registered.test(partner).await;
}

/// Waits until a point is found so for this reason.
async fn until_found(partner: &mut Partner, point: &str, expected: &str, why: &str) {
    let found = async || {
        let checklist = partner.read("/certification").await;
        let mut points = checklist["points"].as_array().unwrap().iter();
        let found = points.find(|found| found["point"] == point).unwrap();
        let said = found["why"].as_str().unwrap();
        (found["state"] == expected && said.contains(why)).then_some(())
    };
    eventually(&format!("{point} is {expected}: {why}"), SOON, found).await;
}

#[tokio::test]
async fn who_verifies_and_remembers_passes_both_points_with_one_test() {
    let mut partner = Operator::of(shared()).partner("100").await;
    let registered = Registered::by(&mut partner).await;
    registered.answers(401, 200);
    let came = registered.test(&mut partner).await;
    assert_eq!((&came["delivered"], &came["status"]), (&json!(true), &json!(204)));
    let said = |name: &str| json!([came[name]["passed"], came[name]["status"], came[name]["fault"]]);
    assert_eq!(said("wrong_signature"), json!([true, 401, null]));
    assert_eq!(said("duplicate"), json!([true, 200, null]));
    until(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
    until(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    assert_eq!(registered.receiver.heard().len(), 3, "each was sent once");
}

#[tokio::test]
async fn who_does_not_verify_fails_and_is_told_what_to_do() {
    let mut partner = Operator::of(shared()).partner("100").await;
    let registered = Registered::by(&mut partner).await;
    let redirect = Mood::Adds(302, "Location: http://127.0.0.1:1/\r\n".to_owned());
    for (mood, wrong, right, why) in [
        (
            Mood::Says(204),
            json!([false, 204, null]),
            true,
            "verify every signature",
        ),
        (
            Mood::Says(400),
            json!([true, 400, null]),
            false,
            "the right signature was not",
        ),
        (
            Mood::Says(500),
            json!([false, 500, null]),
            false,
            "answer 401 to it",
        ),
        (redirect, json!([false, 302, null]), false, "answer 401 to it"),
        (
            Mood::Says(410),
            json!([true, 410, null]),
            false,
            "the right signature was not",
        ),
        (
            Mood::Resets,
            json!([false, null, "connection"]),
            false,
            "answer 401 to it",
        ),
    ] {
        // In between it passes, so that each failure is a new one.
        registered.answers(403, 200);
        registered.test(&mut partner).await;
        until(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
        registered.receiver.is(mood.clone());
        let came = registered.test(&mut partner).await;
        let of_wrong = &came["wrong_signature"];
        assert_eq!(
            json!([of_wrong["passed"], of_wrong["status"], of_wrong["fault"]]),
            wrong,
            "{mood:?}"
        );
        assert_eq!(came["delivered"], right, "{mood:?}");
        assert_eq!(
            came["duplicate"].is_null(),
            !right,
            "what was not taken is not sent again: {mood:?}"
        );
        until_found(&mut partner, "WEBHOOK_SIGNATURE", "FAILED", why).await;
    }
    let checklist = partner.read("/certification").await;
    assert_eq!(
        state(&checklist, "DUPLICATE_EVENT"),
        "PASSED",
        "that is another point"
    );
}

#[tokio::test]
async fn who_refuses_what_it_knows_fails_the_point_of_duplicates_alone() {
    let mut partner = Operator::of(shared()).partner("100").await;
    let registered = Registered::by(&mut partner).await;
    registered.answers(401, 409);
    let came = registered.test(&mut partner).await;
    let duplicate = &came["duplicate"];
    assert_eq!(
        (&duplicate["passed"], &duplicate["status"]),
        (&json!(false), &json!(409))
    );
    until_found(&mut partner, "DUPLICATE_EVENT", "FAILED", "remember event_id").await;
    until(&mut partner, "WEBHOOK_SIGNATURE", "PASSED").await;
}

#[tokio::test]
async fn an_event_that_is_replayed_to_who_has_taken_it_is_a_duplicate() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(1).await;
    let mut partner = operator.partner("100").await;
    let registered = Registered::by(&mut partner).await;
    registered.answers(401, 409);
    accepted(&partner.order(&sale, 1).await, 201);
    let event_id = registered.receiver.hears(3)[0].event_id();
    let checklist = partner.read("/certification").await;
    assert_eq!(state(&checklist, "DUPLICATE_EVENT"), "NOT_SEEN", "each came once");
    registered.replay(&mut partner, &event_id).await;
    until(&mut partner, "DUPLICATE_EVENT", "FAILED").await;
    // It is tried again like any other, and taken now.
    registered.answers(401, 200);
    until(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    let heard = registered.receiver.heard();
    let again: Vec<_> = heard.iter().skip(3).map(|one| one.event_id()).collect();
    assert!(again.iter().all(|id| *id == event_id), "{again:?}");
    assert_eq!(
        state(&partner.read("/certification").await, "WEBHOOK_SIGNATURE"),
        "NOT_SEEN"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_has_shown_outlives_the_process() {
    let mut service = Instance::start();
    let mut partner = Operator::of(&service).partner("100").await;
    let registered = Registered::by(&mut partner).await;
    registered.receiver.is(Mood::Says(204));
    registered.test(&mut partner).await;
    until(&mut partner, "WEBHOOK_SIGNATURE", "FAILED").await;
    until(&mut partner, "DUPLICATE_EVENT", "PASSED").await;
    let before = partner.read("/certification").await;
    service.kill();
    service.restart();
    let mut partner = partner.at(&service.base_url());
    assert_eq!(partner.read("/certification").await, before);
    // What is in memory when the service is told to stop is written before it ends.
    registered.answers(401, 200);
    registered.test(&mut partner).await;
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let checklist = partner.at(&service.base_url()).read("/certification").await;
    for point in ["WEBHOOK_SIGNATURE", "DUPLICATE_EVENT"] {
        assert_eq!(state(&checklist, point), "PASSED");
    }
    service.assert_verified();
}

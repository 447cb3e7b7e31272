//! Endpoints: how they are registered, changed, tested and rotated, and what is refused.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_load::client::ApiResponse;

use crate::support::{Behavior, Operator, Partner, Receiver, expect_success, expect_error, shared, text_of};

async fn post(partner: &mut Partner, path: &str, body: &Value) -> ApiResponse {
    partner.send_signed(Method::POST, path, &body.to_string()).await
}

async fn put_webhook(partner: &mut Partner, body: &Value) -> ApiResponse {
    post(partner, "/webhooks", body).await
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

#[tokio::test]
async fn an_endpoint_is_registered_once_and_its_secret_shown_once() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let url = Receiver::new().url();
    let answer = put_webhook(&mut partner, &json!({ "url": url, "description": "shop" })).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let made = expect_success(&answer, 201);
    assert!(text(&made, "webhook_id").starts_with("wh_") && text(&made, "secret").starts_with("whsec_"));
    assert_eq!(
        (&made["url"], &made["enabled"], &made["status"]),
        (&json!(url), &json!(true), &json!("active"))
    );
    assert_eq!(made["events"].as_array().unwrap().len(), 7, "all of them");
    let again = expect_success(
        &put_webhook(&mut partner, &json!({ "url": url, "events": ["order.created"] })).await,
        200,
    );
    assert_eq!(again["webhook_id"], made["webhook_id"]);
    assert_eq!(
        (&again["events"], &again["description"]),
        (&json!(["order.created"]), &json!("shop"))
    );
    assert!(again.get("secret").is_none());
    let moved = Receiver::new().url();
    let change = json!({ "url": moved, "webhook_id": made["webhook_id"], "enabled": false });
    let changed = expect_success(&put_webhook(&mut partner, &change).await, 200);
    assert_eq!(
        (&changed["url"], &changed["status"], &changed["disabled_reason"]),
        (&json!(moved), &json!("disabled"), &json!("PARTNER"))
    );
    assert_eq!(
        changed["events"],
        json!(["order.created"]),
        "what is left out stays"
    );
    let list = partner.read("/webhooks").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains("whsec_"));
    let path = format!("/webhooks/{}", text(&made, "webhook_id"));
    let mut other = Operator::of(shared()).add_partner("100").await;
    expect_error(
        &other.send_signed(Method::DELETE, &path, "").await,
        404,
        "WEBHOOK_NOT_FOUND",
    );
    assert_eq!(partner.send_signed(Method::DELETE, &path, "").await.status, 204);
    expect_error(
        &partner.send_signed(Method::DELETE, &path, "").await,
        404,
        "WEBHOOK_NOT_FOUND",
    );
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused_with_its_field() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    for (body, field) in [
        (json!({}), "url"),
        (json!({ "url": "shop.example" }), "url"),
        (json!({ "url": "http://shop.example/" }), "url"),
        (json!({ "url": "https://me:you@shop.example/" }), "url"),
        (json!({ "url": "https://10.0.0.1/" }), "url"),
        (
            json!({ "url": "https://169.254.169.254/latest/meta-data" }),
            "url",
        ),
        (json!({ "url": "https://[::ffff:10.0.0.1]/" }), "url"),
        (
            json!({ "url": format!("http://{}/", shared().admin_address()) }),
            "url",
        ),
        (json!({ "url": "https://a.example/", "events": [] }), "events"),
        (
            json!({ "url": "https://a.example/", "events": ["order.lost"] }),
            "events[0]",
        ),
        (json!({ "url": "https://a.example/", "hook": 1 }), "hook"),
    ] {
        let error = expect_error(&put_webhook(&mut partner, &body).await, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{body}");
    }
    let unknown = json!({ "url": "https://a.example/", "webhook_id": format!("wh_{}", "0".repeat(32)) });
    expect_error(&put_webhook(&mut partner, &unknown).await, 404, "WEBHOOK_NOT_FOUND");
}

#[tokio::test]
async fn a_partner_has_ten_endpoints_and_no_eleventh() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    for n in 0..10 {
        let body = json!({ "url": format!("http://127.0.0.1:9/{n}"), "enabled": false });
        expect_success(&put_webhook(&mut partner, &body).await, 201);
    }
    let eleventh = json!({ "url": "http://127.0.0.1:9/10" });
    expect_error(&put_webhook(&mut partner, &eleventh).await, 409, "WEBHOOK_LIMIT_REACHED");
    let first = partner.read("/webhooks?limit=1").await;
    assert_eq!(first["has_more"], true);
    assert_eq!(partner.list_all("/webhooks?limit=3").await.len(), 10);
    let second = json!({ "url": "http://127.0.0.1:9/1", "webhook_id": first["data"][0]["webhook_id"] });
    let error = expect_error(&put_webhook(&mut partner, &second).await, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "url", "another one has it");
}

#[tokio::test]
async fn a_test_sends_a_sample_and_says_what_came_of_it() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::new();
    let made = expect_success(&put_webhook(&mut partner, &json!({ "url": receiver.url() })).await, 201);
    let path = format!("/webhooks/{}/test", text(&made, "webhook_id"));
    let came = expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
    assert_eq!((&came["delivered"], &came["status"]), (&json!(true), &json!(204)));
    let heard = receiver.wait_for_events(3);
    for one in &heard {
        assert_eq!(
            (
                one.event(),
                one.event_id(),
                one.headers["x-vouchsafe-test"].as_str()
            ),
            (
                "order.delivered".to_owned(),
                text(&came, "event_id").to_owned(),
                "true"
            )
        );
    }
    let secret = text(&made, "secret");
    let [wrong, right] = [heard[0].signatures(), heard[0].expected_signatures(&[secret])];
    let [forms, expected] = [&wrong, &right].map(|both| both.each_ref().map(String::len));
    assert_eq!(forms, expected, "a wrong signature looks like a right one");
    assert!(wrong[0] != right[0] && wrong[1] != right[1], "both are wrong");
    heard[1].assert_signed(&[secret]);
    heard[2].assert_signed(&[secret]);
    for (mood, expected) in [
        (Behavior::Status(500), json!([false, 500, null])),
        (
            Behavior::StatusWithHeaders(302, "Location: http://127.0.0.1:1/\r\n".to_owned()),
            json!([false, 302, null]),
        ),
        (Behavior::Disconnect, json!([false, null, "connection"])),
        (Behavior::InvalidHttp, json!([false, null, "connection"])),
        (Behavior::NoResponse, json!([false, null, "timeout"])),
        (Behavior::LargeBody, json!([true, 200, null])),
        (Behavior::SlowBody, json!([true, 200, null])),
        (
            Behavior::DelayedOk(Duration::from_millis(4_700)),
            json!([true, 200, null]),
        ),
        (
            Behavior::DelayedOk(Duration::from_millis(5_200)),
            json!([false, null, "timeout"]),
        ),
    ] {
        receiver.set_behavior(mood.clone());
        let came = expect_success(
            &post(&mut partner, &path, &json!({ "event": "voucher.issued" })).await,
            200,
        );
        let said = json!([came["delivered"], came["status"], came["fault"]]);
        assert_eq!(said, expected, "{mood:?}");
    }
    assert_eq!(partner.read("/events").await["data"], json!([]), "in no feed");
}

#[tokio::test]
async fn an_endpoint_that_speaks_no_tls_or_is_not_there_says_so() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::new();
    for (url, fault) in [
        (receiver.url().replace("http:", "https:"), ["tls", "connection"]),
        ("http://127.0.0.1:1/".to_owned(), ["connection", "connection"]),
        ("https://shop.invalid/".to_owned(), ["unresolved", "internal"]),
    ] {
        let made = expect_success(&put_webhook(&mut partner, &json!({ "url": url })).await, 201);
        let path = format!("/webhooks/{}/test", text(&made, "webhook_id"));
        let came = expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
        assert_eq!(came["delivered"], false);
        assert!(fault.contains(&text(&came, "fault")), "{url}: {came}");
    }
}

#[tokio::test]
async fn in_a_rotation_both_secrets_sign_and_after_it_the_new_one_alone() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::new();
    let made = expect_success(&put_webhook(&mut partner, &json!({ "url": receiver.url() })).await, 201);
    let path = |action| format!("/webhooks/{}/{action}", text(&made, "webhook_id"));
    let answer = partner.send_signed(Method::POST, &path("rotate"), "").await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let rotated = expect_success(&answer, 200);
    assert!(rotated["previous_secret_expires_at"].is_string());
    let (old, new) = (text(&made, "secret"), text(&rotated, "secret"));
    assert_ne!(old, new);
    expect_success(&partner.send_signed(Method::POST, &path("test"), "").await, 200);
    receiver.wait_for_events(3)[1].assert_signed(&[new, old]);
    let at_once = expect_success(
        &post(&mut partner, &path("rotate"), &json!({ "overlap_seconds": 0 })).await,
        200,
    );
    expect_success(&partner.send_signed(Method::POST, &path("test"), "").await, 200);
    receiver.wait_for_events(6)[4].assert_signed(&[text(&at_once, "secret")]);
    let long = json!({ "overlap_seconds": 604_801 });
    expect_error(
        &post(&mut partner, &path("rotate"), &long).await,
        422,
        "VALIDATION_FAILED",
    );
}

#[tokio::test]
async fn secrets_are_kept_sealed() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let made = expect_success(
        &put_webhook(
            &mut partner,
            &json!({ "url": "http://127.0.0.1:9/", "enabled": false }),
        )
        .await,
        201,
    );
    assert!(!text_of(&partner.get("/webhooks").await).contains(text(&made, "secret")));
    assert!(!shared().log().contains(text(&made, "secret")));
}

//! Webhook endpoints: registration, changes, tests, rotation, limits.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::deliveries::register_webhook;
use vouchsafe_test_harness::{Behavior, Operator, Partner, Receiver, expect_error, expect_success, shared};

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
async fn endpoint_registration_is_idempotent_and_shows_secret_once() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let url = Receiver::start().url();
    let response = put_webhook(&mut partner, &json!({ "url": url, "description": "shop" })).await;
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let created = expect_success(&response, 201);
    assert!(
        text(&created, "webhook_id").starts_with("wh_") && text(&created, "secret").starts_with("whsec_")
    );
    assert_eq!(created["url"], json!(url));
    insta::assert_json_snapshot!(
        created,
        {
            ".webhook_id" => "[id]", ".secret" => "[secret]", ".url" => "[url]",
            ".created_at" => "[time]", ".updated_at" => "[time]",
        },
        @r#"
        {
          "created_at": "[time]",
          "description": "shop",
          "disabled_at": null,
          "disabled_reason": null,
          "enabled": true,
          "events": [
            "order.created",
            "order.processing",
            "order.delivered",
            "order.partially_delivered",
            "order.cancelled",
            "order.refunded",
            "voucher.issued"
          ],
          "failing_since": null,
          "next_attempt_at": null,
          "previous_secret_expires_at": null,
          "secret": "[secret]",
          "status": "active",
          "updated_at": "[time]",
          "url": "[url]",
          "webhook_id": "[id]"
        }
        "#
    );
    let repeated = expect_success(
        &put_webhook(&mut partner, &json!({ "url": url, "events": ["order.created"] })).await,
        200,
    );
    assert_eq!(repeated["webhook_id"], created["webhook_id"]);
    assert_eq!(
        (&repeated["events"], &repeated["description"]),
        (&json!(["order.created"]), &json!("shop"))
    );
    assert!(repeated.get("secret").is_none());
    let new_url = Receiver::start().url();
    let change = json!({ "url": new_url, "webhook_id": created["webhook_id"], "enabled": false });
    let changed = expect_success(&put_webhook(&mut partner, &change).await, 200);
    assert_eq!(
        (&changed["url"], &changed["status"], &changed["disabled_reason"]),
        (&json!(new_url), &json!("disabled"), &json!("PARTNER"))
    );
    assert_eq!(
        changed["events"],
        json!(["order.created"]),
        "omitted fields must keep their value"
    );
    let change = json!({ "webhook_id": created["webhook_id"], "enabled": true });
    let changed = expect_success(&put_webhook(&mut partner, &change).await, 200);
    assert_eq!(
        (&changed["url"], &changed["enabled"]),
        (&json!(new_url), &json!(true))
    );
    let list = partner.read("/webhooks").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains("whsec_"));
    let path = format!("/webhooks/{}", text(&created, "webhook_id"));
    let mut other = Operator::of(shared()).add_partner("100").await;
    let response = other.send_signed(Method::DELETE, &path, "").await;
    expect_error(&response, 404, "WEBHOOK_NOT_FOUND");
    assert_eq!(partner.send_signed(Method::DELETE, &path, "").await.status, 204);
    let response = partner.send_signed(Method::DELETE, &path, "").await;
    expect_error(&response, 404, "WEBHOOK_NOT_FOUND");
}

#[tokio::test]
async fn invalid_endpoint_is_rejected_by_field() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let url = |url: &str| json!({ "url": url });
    for (body, field) in [
        (json!({}), "url"),
        (url("https://10.0.0.1/"), "url"),
        (url(&format!("http://{}/", shared().admin_address())), "url"),
        (
            json!({ "url": "https://a.example/", "events": ["order.lost"] }),
            "events[0]",
        ),
    ] {
        let error = expect_error(&put_webhook(&mut partner, &body).await, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{body}");
    }
    let unknown = json!({ "url": "https://a.example/", "webhook_id": format!("wh_{}", "0".repeat(32)) });
    let response = put_webhook(&mut partner, &unknown).await;
    expect_error(&response, 404, "WEBHOOK_NOT_FOUND");
}

#[tokio::test]
async fn eleventh_endpoint_is_rejected() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    for n in 0..10 {
        let body = json!({ "url": format!("http://127.0.0.1:9/{n}"), "enabled": false });
        expect_success(&put_webhook(&mut partner, &body).await, 201);
    }
    let eleventh = json!({ "url": "http://127.0.0.1:9/10" });
    let response = put_webhook(&mut partner, &eleventh).await;
    expect_error(&response, 409, "WEBHOOK_LIMIT_REACHED");
    let first = partner.read("/webhooks?limit=1").await;
    assert_eq!(first["has_more"], true);
    assert_eq!(partner.list_all("/webhooks?limit=3").await.len(), 10);
    let second = json!({ "url": "http://127.0.0.1:9/1", "webhook_id": first["data"][0]["webhook_id"] });
    let response = put_webhook(&mut partner, &second).await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(
        error["details"][0]["field"], "url",
        "the URL belongs to another endpoint"
    );
}

#[tokio::test]
async fn endpoint_test_reports_receiver_behavior() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::start();
    let created = register_webhook(&mut partner, &receiver, &json!({})).await;
    let path = format!("/webhooks/{}/test", text(&created, "webhook_id"));
    let result = expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
    assert_eq!(
        (&result["delivered"], &result["status"]),
        (&json!(true), &json!(204))
    );
    let events = receiver.wait_for_events(3);
    for one in &events {
        assert_eq!(
            (
                one.event(),
                one.event_id(),
                one.headers["x-vouchsafe-test"].as_str()
            ),
            (
                "order.delivered".to_owned(),
                text(&result, "event_id").to_owned(),
                "true"
            )
        );
    }
    let secret = text(&created, "secret");
    let [wrong_signature, right_signature] =
        [events[0].signatures(), events[0].expected_signatures(&[secret])];
    let [forms, expected] = [&wrong_signature, &right_signature].map(|both| both.each_ref().map(String::len));
    assert_eq!(forms, expected, "a wrong signature must have the right format");
    assert!(
        wrong_signature[0] != right_signature[0] && wrong_signature[1] != right_signature[1],
        "both signatures must be wrong"
    );
    events[1].assert_signed(&[secret]);
    events[2].assert_signed(&[secret]);
    for (behavior, expected) in [
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
    ] {
        receiver.set_behavior(behavior.clone());
        let response = post(&mut partner, &path, &json!({ "event": "voucher.issued" })).await;
        let result = expect_success(&response, 200);
        let outcome = json!([result["delivered"], result["status"], result["fault"]]);
        assert_eq!(outcome, expected, "{behavior:?}");
        if result["fault"] == "timeout" {
            assert!(result["latency_ms"].as_u64() >= Some(5_000), "{result}");
        }
    }
    assert_eq!(
        partner.read("/events").await["data"],
        json!([]),
        "test events must not be in the feed"
    );
}

#[tokio::test]
async fn endpoint_test_reports_connection_fault() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::start();
    for (url, expected_faults) in [
        (receiver.url().replace("http:", "https:"), ["tls", "connection"]),
        ("http://127.0.0.1:1/".to_owned(), ["connection", "connection"]),
        ("https://shop.invalid/".to_owned(), ["unresolved", "internal"]),
    ] {
        let created = expect_success(&put_webhook(&mut partner, &json!({ "url": url })).await, 201);
        let path = format!("/webhooks/{}/test", text(&created, "webhook_id"));
        let result = expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
        assert_eq!(result["delivered"], false);
        assert!(
            expected_faults.contains(&text(&result, "fault")),
            "{url}: {result}"
        );
    }
}

#[tokio::test]
async fn rotated_secret_signs_with_both_during_overlap() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let receiver = Receiver::start();
    let created = register_webhook(&mut partner, &receiver, &json!({})).await;
    let path = |action| format!("/webhooks/{}/{action}", text(&created, "webhook_id"));
    let response = partner.send_signed(Method::POST, &path("rotate"), "").await;
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let rotated = expect_success(&response, 200);
    assert!(rotated["previous_secret_expires_at"].is_string());
    let (old, new) = (text(&created, "secret"), text(&rotated, "secret"));
    assert_ne!(old, new);
    expect_success(&partner.send_signed(Method::POST, &path("test"), "").await, 200);
    receiver.wait_for_events(3)[1].assert_signed(&[new, old]);
    let response = post(&mut partner, &path("rotate"), &json!({ "overlap_seconds": 0 })).await;
    let immediate = expect_success(&response, 200);
    expect_success(&partner.send_signed(Method::POST, &path("test"), "").await, 200);
    receiver.wait_for_events(6)[4].assert_signed(&[text(&immediate, "secret")]);
    let too_long = json!({ "overlap_seconds": 604_801 });
    let response = post(&mut partner, &path("rotate"), &too_long).await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

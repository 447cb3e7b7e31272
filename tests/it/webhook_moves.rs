//! Webhook endpoints whose URL changes: new secret for another host, and the audit trail.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{Operator, Partner, Receiver, expect_success, shared};

use crate::deliveries::register_webhook;

async fn put(partner: &mut Partner, body: Value) -> ApiResponse {
    partner
        .send_signed(Method::POST, "/webhooks", &body.to_string())
        .await
}

async fn act(partner: &mut Partner, webhook: &Value, action: &str) -> Value {
    let path = format!("/webhooks/{}/{action}", text(webhook, "webhook_id"));
    expect_success(&partner.send_signed(Method::POST, &path, "").await, 200)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// The secrets of a rotation with overlap do not sign what goes to the new host.
#[tokio::test]
async fn endpoint_gets_a_new_secret_when_it_moves_to_another_host() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    let (old, new) = (Receiver::start(), Receiver::start());
    let created = register_webhook(&mut partner, &old, &json!({})).await;
    let rotated = act(&mut partner, &created, "rotate").await;
    assert!(rotated["previous_secret_expires_at"].is_string());

    let change = json!({ "webhook_id": created["webhook_id"], "url": new.url() });
    let response = put(&mut partner, change.clone()).await;
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let moved = expect_success(&response, 200);
    let secret = text(&moved, "secret");
    assert!(secret != text(&created, "secret") && secret != text(&rotated, "secret"));
    assert_eq!(moved["previous_secret_expires_at"], Value::Null);
    act(&mut partner, &moved, "test").await;
    let received = new.wait_for_events(3);
    received[1].assert_signed(&[secret]);
    assert_eq!(old.received().len(), 0);

    // A repeated request moves nothing.
    let repeated = expect_success(&put(&mut partner, change).await, 200);
    assert!(repeated.get("secret").is_none(), "{repeated}");
    act(&mut partner, &moved, "test").await;
    new.wait_for_events(6)[4].assert_signed(&[secret]);

    // Back at the old host the endpoint has yet another secret.
    let back = json!({ "webhook_id": created["webhook_id"], "url": old.url() });
    let back = expect_success(&put(&mut partner, back).await, 200);
    let third = text(&back, "secret");
    assert!(![secret, text(&created, "secret"), text(&rotated, "secret")].contains(&third));
    act(&mut partner, &back, "test").await;
    old.wait_for_events(3)[1].assert_signed(&[third]);
}

#[tokio::test]
async fn change_of_the_path_keeps_the_secrets() {
    let mut partner = Operator::of(shared()).add_partner("1").await;
    let receiver = Receiver::start();
    let created = register_webhook(&mut partner, &receiver, &json!({})).await;
    let rotated = act(&mut partner, &created, "rotate").await;
    let url = format!("{}?path=other", receiver.url());
    let change = json!({ "webhook_id": created["webhook_id"], "url": url });
    let changed = expect_success(&put(&mut partner, change).await, 200);
    assert!(changed.get("secret").is_none(), "{changed}");
    assert_eq!(
        changed["previous_secret_expires_at"],
        rotated["previous_secret_expires_at"]
    );
    act(&mut partner, &changed, "test").await;
    receiver.wait_for_events(3)[1].assert_signed(&[text(&rotated, "secret"), text(&created, "secret")]);
}

#[tokio::test]
async fn change_of_the_url_is_audited_without_the_url() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1").await;
    let body = |url: &str| json!({ "url": url, "enabled": false });
    let first = "http://127.0.0.1:9/hook?token=s3cr3t-1";
    let created = expect_success(&put(&mut partner, body(first)).await, 201);
    let webhook_id = text(&created, "webhook_id").to_owned();
    for url in [
        "http://127.0.0.1:9/hook?token=s3cr3t-2",
        "http://127.0.0.1:19/hook?token=s3cr3t-2",
    ] {
        let change = json!({ "webhook_id": webhook_id, "url": url });
        expect_success(&put(&mut partner, change).await, 200);
    }
    let kept = json!({ "webhook_id": webhook_id, "description": "shop" });
    expect_success(&put(&mut partner, kept).await, 200);
    let path = format!("/webhooks/{webhook_id}");
    let removed = partner.send_signed(Method::DELETE, &path, "").await;
    assert_eq!(removed.status, 204);

    let mut entries = operator.audit_entries(&format!("subject={webhook_id}")).await;
    entries.reverse();
    let origin = |state: &Value| state["origin"].as_str().map(str::to_owned);
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                text(entry, "action"),
                origin(&entry["before"]),
                origin(&entry["after"]),
            )
        })
        .collect();
    let [near, far] = ["http://127.0.0.1:9", "http://127.0.0.1:19"].map(|origin| Some(origin.to_owned()));
    assert_eq!(
        seen,
        [
            ("webhook.create", None, near.clone()),
            ("webhook.change", near.clone(), near.clone()),
            ("webhook.change", near, far.clone()),
            ("webhook.change", None, None),
            ("webhook.remove", far, None),
        ]
    );
    let hash = |state: &Value| text(state, "url_hash").to_owned();
    assert_eq!(hash(&entries[0]["after"]), hash(&entries[1]["before"]));
    assert_ne!(hash(&entries[1]["before"]), hash(&entries[1]["after"]));
    assert_eq!(hash(&entries[2]["after"]), hash(&entries[4]["before"]));
    let shown = format!("{entries:?}");
    assert!(!shown.contains("s3cr3t") && !shown.contains("hook?"), "{shown}");
}

//! Reads of one object: webhook endpoint, event, transaction, and the partner's own account with its
//! credentials.

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{Operator, Receiver, expect_error, expect_success, shared};

#[tokio::test]
async fn object_of_a_list_is_read_alone_as_the_list_shows_it() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let receiver = Receiver::start();
    let webhook = json!({ "url": receiver.url() }).to_string();
    expect_success(
        &partner.send_signed(Method::POST, "/webhooks", &webhook).await,
        201,
    );
    expect_success(&partner.order(&sale, 2).await, 201);
    receiver.wait_for_events(4);
    for (list, id) in [
        ("/events", "event_id"),
        ("/transactions", "transaction_id"),
        ("/webhooks", "webhook_id"),
    ] {
        let all = partner.list_all(list).await;
        for listed in &all {
            let path = format!("{list}/{}", listed[id].as_str().unwrap());
            let alone = expect_success(&partner.get(&path).await, 200);
            assert_eq!(&alone, listed, "{path}");
        }
        assert!(!all.is_empty(), "{list}");
    }
    for (path, code) in [
        ("/events/evt_1", "EVENT_NOT_FOUND"),
        ("/transactions/txn_1", "TRANSACTION_NOT_FOUND"),
        ("/webhooks/wh_1", "WEBHOOK_NOT_FOUND"),
    ] {
        expect_error(&partner.get(path).await, 404, code);
    }
}

#[tokio::test]
async fn account_shows_credential_scopes_allowlist_and_used_limits() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("100").await;
    for _ in 0..3 {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    let me = partner.read("/me").await;
    assert_eq!(
        (&me["environment"], &me["partner_id"], &me["cancel_window_s"]),
        (&json!("sandbox"), &json!(partner.partner_id), &json!(86_400))
    );
    assert_eq!(
        me["scopes"],
        json!(["orders", "codes", "read", "payouts", "webhooks", "credentials"])
    );
    assert!(!me["allowlist"].as_array().unwrap().is_empty());
    let used = |class: &str| {
        let limits = me["limits"].as_array().unwrap();
        limits.iter().find(|limit| limit["class"] == class).unwrap()["used"].clone()
    };
    assert_eq!((used("orders"), used("general")), (json!(3), json!(1)));
    let rotated = expect_success(
        &partner.send_signed(Method::POST, "/credentials/rotate", "").await,
        201,
    );
    let mut successor = partner.with_credential(&rotated);
    let credentials = successor.list_all("/credentials").await;
    let flags: Vec<[&Value; 4]> = credentials
        .iter()
        .map(|one| ["credential_id", "rotated_from", "live", "current"].map(|field| &one[field]))
        .collect();
    let (old, new) = (&me["credential"]["credential_id"], &rotated["credential_id"]);
    assert_eq!(
        flags,
        [
            [new, old, &json!(true), &json!(true)],
            [old, &Value::Null, &json!(true), &json!(false)]
        ]
    );
    assert_eq!(successor.read("/me").await["credential"]["credential_id"], *new);
    let text = Value::from(credentials).to_string();
    assert!(!text.contains("vs_sandbox_") && !text.contains("vss_"), "{text}");
}

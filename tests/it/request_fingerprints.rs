//! Fingerprints of requests under idempotency keys, also beside and after version 0.2.0.

use serde_json::json;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::idempotency::{IdempotencyScope, scoped_hash, unkeyed_fingerprint};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    order_body, shared, unique,
};

use crate::idempotency::assert_replay;
use crate::payouts::{payout_body, request_payout};

/// Digits of an account number are few: from an unkeyed hash of the body they could be found by trying them all.
#[tokio::test]
async fn stored_fingerprint_is_keyed() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let (key, body) = (unique("key"), payout_body("1"));
    expect_success(&request_payout(&mut partner, &key, &body).await, 202);
    let path = "/api/v1/payouts";
    let (stored_key, unkeyed) = stored_key(&partner, IdempotencyScope::RequestPayout, &key, path, &body);
    let mut database = ServiceDatabase::of(shared()).await;
    let stored = "SELECT encode(fingerprint, 'hex') FROM idempotency_keys WHERE key::text = $1";
    let stored = database.texts(stored, &stored_key).await;
    assert!(stored.len() == 1 && stored[0] != unkeyed, "{stored:?}");
}

/// Requests payouts until one is stored with the fingerprint of version 0.2.0, or until one is not.
async fn wait_for_fingerprint(database: &mut ServiceDatabase, partner: &mut Partner, is_unkeyed: bool) {
    eventually("a look at the other nodes", WAIT_TIMEOUT, async || {
        let (key, body) = (unique("key"), payout_body("0.01"));
        expect_success(&request_payout(partner, &key, &body).await, 202);
        let path = "/api/v1/payouts";
        let (stored_key, unkeyed) = stored_key(partner, IdempotencyScope::RequestPayout, &key, path, &body);
        let stored = "SELECT encode(fingerprint, 'hex') FROM idempotency_keys WHERE key::text = $1";
        let stored = database.texts(stored, &stored_key).await;
        ((stored == [unkeyed]) == is_unkeyed).then_some(())
    })
    .await;
}

/// A node of version 0.2.0 may receive the repeated request, and compares the fingerprint of that version.
#[tokio::test]
async fn fingerprint_is_unkeyed_while_a_node_of_the_previous_version_is_live() {
    let service = Instance::start();
    let mut partner = Operator::of(&service).add_partner("1000").await;
    let mut database = ServiceDatabase::of(&service).await;
    wait_for_fingerprint(&mut database, &mut partner, false).await;
    let join =
        "INSERT INTO nodes (node, incarnation, lease_until) VALUES ('old', 1, now() + interval '1 hour')";
    database.run(join.to_owned()).await;
    wait_for_fingerprint(&mut database, &mut partner, true).await;
    let leave = "UPDATE nodes SET lease_until = now() - interval '1 minute' WHERE node = 'old'";
    database.run(leave.to_owned()).await;
    wait_for_fingerprint(&mut database, &mut partner, false).await;
}

/// Text of the stored key, and the fingerprint of version 0.2.0 in hexadecimal digits.
fn stored_key(
    partner: &Partner,
    scope: IdempotencyScope,
    key: &str,
    path: &str,
    body: &str,
) -> (String, String) {
    let partner_id: PartnerId = partner.partner_id.parse().unwrap();
    let unkeyed = unkeyed_fingerprint("POST", path, body.as_bytes());
    (
        scoped_hash(partner_id, scope, key).0.to_string(),
        hex::encode(unkeyed.0),
    )
}

/// Moves the stored response to an order under `sample` to `key`, as version 0.2.0 would have stored it for this body.
async fn store_as_previous_version(partner: &Partner, sample: &str, key: &str, body: &str) {
    let of_key = |key| stored_key(partner, IdempotencyScope::PlaceOrder, key, "/api/v1/orders", body);
    let ((sample, _), (key, unkeyed)) = (of_key(sample), of_key(key));
    let mut database = ServiceDatabase::of(shared()).await;
    let moved = format!(
        "UPDATE idempotency_keys SET key = '{key}', fingerprint = '\\x{unkeyed}' WHERE key = '{sample}'"
    );
    database.run(moved).await;
}

#[tokio::test]
async fn response_stored_before_the_upgrade_is_replayed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let body = order_body(&sale, 1).to_string();
    let [sample, key] = [unique("sample"), unique("key")];
    let stored = partner.send_text(&sample, &body).await;
    store_as_previous_version(&partner, &sample, &key, &body).await;
    for _ in 0..2 {
        assert_replay(&stored, &partner.send_text(&key, &body).await);
    }
    let other = partner.send_text(&key, &order_body(&sale, 2).to_string()).await;
    expect_error(&other, 422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(partner.balance("USD").await, "75.00", "one order");
}

/// Version 0.2.0 accepted control characters in references.
#[tokio::test]
async fn response_to_body_that_is_refused_now_is_replayed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let mut body = order_body(&sale, 1);
    let [sample, key] = [unique("sample"), unique("key")];
    let stored = partner.send(&sample, &body).await;
    expect_success(&stored, 201);
    body["reference"] = json!("PO 1\t");
    let body = body.to_string();
    expect_error(&partner.send_text(&key, &body).await, 422, "VALIDATION_FAILED");
    store_as_previous_version(&partner, &sample, &key, &body).await;
    assert_replay(&stored, &partner.send_text(&key, &body).await);
}

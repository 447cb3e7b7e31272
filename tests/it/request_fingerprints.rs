//! Fingerprints of requests under idempotency keys.

use serde_json::json;
use tokio::runtime::Handle;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::idempotency::{IdempotencyScope, scoped_hash};
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_store::PgStore;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_test_harness::{
    Instance, Operator, ServiceDatabase, expect_error, expect_success, order_body, unique,
};

use crate::idempotency::assert_replay;

/// The key of the service's fingerprints, unwrapped by its master key.
async fn fingerprint_key(service: &Instance, master_key: &str) -> FingerprintKey {
    let options = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let store = PgStore::open(options, Handle::current());
    let master_key = MasterKey::parse(master_key).unwrap();
    let keyring = Keyring::open(store.data_keys, master_key.into()).await.unwrap();
    keyring.vault().fingerprints().clone()
}

/// The digits of an account number in a body are few: from a hash without a key they could be found by trying
/// them all. The test stores the response under a body that this version refuses, as an earlier version may
/// have accepted it.
#[tokio::test(flavor = "multi_thread")]
async fn fingerprint_is_keyed_and_a_response_to_a_body_that_is_refused_now_is_replayed() {
    let master_key = "5c".repeat(32);
    let service = Instance::start_with(&[("VOUCHSAFE_MASTER_KEY", &master_key)]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let mut body = order_body(&sale, 1);
    let key = unique("key");
    let stored = partner.send_text(&key, &body.to_string()).await;
    expect_success(&stored, 201);

    let partner_id: PartnerId = partner.partner_id.parse().unwrap();
    let stored_key = scoped_hash(partner_id, IdempotencyScope::PlaceOrder, &key)
        .0
        .to_string();
    let fingerprint_key = fingerprint_key(&service, &master_key).await;
    let fingerprint_of = |body: &str| {
        let fingerprint = fingerprint_key.fingerprint("POST", "/api/v1/orders", body.as_bytes());
        hex::encode(fingerprint.0)
    };
    let mut database = ServiceDatabase::of(&service).await;
    let sql = "SELECT encode(fingerprint, 'hex') FROM idempotency_keys WHERE key::text = $1";
    let in_database = database.texts(sql, &stored_key).await;
    assert_eq!(in_database, [fingerprint_of(&body.to_string())]);

    body["reference"] = json!("PO 1\u{0}");
    let body = body.to_string();
    let refused = partner.send_text(&unique("key"), &body).await;
    expect_error(&refused, 422, "VALIDATION_FAILED");
    let fingerprint = fingerprint_of(&body);
    let changed =
        format!("UPDATE idempotency_keys SET fingerprint = '\\x{fingerprint}' WHERE key = '{stored_key}'");
    database.run(changed).await;
    assert_replay(&stored, &partner.send_text(&key, &body).await);
}

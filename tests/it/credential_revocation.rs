//! Revocation of a credential, with those rotated from it.

use hyper::Method;
use serde_json::{Value, json};

use crate::commands::run_json;
use crate::credential_rotation::{add_partner, assert_rejected, assert_works, rotate};
use vouchsafe_test_harness::{Operator, Partner, expect_error, expect_success};

/// A credential that an operator issued, two rotated from it, and one rotated from the first of these.
async fn add_rotated_credentials(operator: &mut Operator, partner: &Partner) -> [Partner; 4] {
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    let mut root = partner.with_credential(&issued);
    let (mut first, _) = rotate(&mut root, "{}").await;
    assert_works(&mut first).await;
    let (mut second, _) = rotate(&mut root, "{}").await;
    assert_works(&mut second).await;
    let (last, _) = rotate(&mut first, "{}").await;
    [root, first, second, last]
}

#[tokio::test]
async fn revocation_covers_credentials_rotated_from_it() {
    let (mut operator, mut other) = add_partner().await;
    let [mut root, mut first, mut second, mut last] = add_rotated_credentials(&mut operator, &other).await;
    let path = format!("/admin/v1/credentials/{}", first.credential_id);
    let response = operator.call_json(Method::DELETE, &path, "").await;
    assert_eq!(
        expect_success(&response, 200),
        json!({
            "credential_id": first.credential_id,
            "revoked": [first.credential_id, last.credential_id],
            "live_descendants": [],
        })
    );
    for revoked in [&mut first, &mut last] {
        assert_rejected(revoked).await;
    }
    for live in [&mut root, &mut second, &mut other] {
        assert_works(live).await;
    }
    let trail = operator
        .audit_entries(&format!("subject={}", last.credential_id))
        .await;
    assert_eq!(trail[0]["action"], "credential.revoke");
}

#[tokio::test]
async fn narrowed_revocation_shows_credentials_that_stay_valid() {
    let (mut operator, mut other) = add_partner().await;
    let [mut root, mut first, mut second, mut last] = add_rotated_credentials(&mut operator, &other).await;
    let root_id = root.credential_id.clone();
    let revoke = ["credential", "revoke", &root_id];
    let mut descendants = [&first, &second, &last].map(|partner| json!(partner.credential_id));
    descendants.sort_by_key(Value::to_string);
    let narrowed = run_json(&[&revoke[..], &["--descendants", "keep"]].concat());
    assert_eq!(narrowed["revoked"], json!([root_id]));
    assert_eq!(narrowed["live_descendants"], json!(descendants));
    assert_rejected(&mut root).await;
    for live in [&mut first, &mut second, &mut last] {
        assert_works(live).await;
    }
    // The revoked credential still leads to those rotated from it.
    assert_eq!(run_json(&revoke)["revoked"], json!(descendants));
    for revoked in [&mut first, &mut second, &mut last] {
        assert_rejected(revoked).await;
    }
    assert_works(&mut other).await;
    let path = format!("/admin/v1/credentials/{}?descendants=all", root.credential_id);
    let refused = operator.call_json(Method::DELETE, &path, "").await;
    expect_error(&refused, 422, "VALIDATION_FAILED");
}

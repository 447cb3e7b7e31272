//! Changes that need a second operator and are requested twice, or whose object has changed meanwhile.

use hyper::Method;
use serde_json::json;
use vouchsafe_test_harness::{ServiceDatabase, expect_error, expect_success};

use crate::change_requests::{FourEyes, top_ups};

#[tokio::test]
async fn repeated_change_that_still_waits_is_stored_once() {
    let mut eyes = FourEyes::start();
    let [one, other] = [
        eyes.admin.add_partner("0").await,
        eyes.admin.add_partner("0").await,
    ];
    let [one, other] = [top_ups(&one), top_ups(&other)];
    let adjustments = one.replace("top-ups", "adjustments");
    let body = json!({ "amount": "5000", "reference": "wire-1" });
    let request = eyes.request(Method::POST, &one, &body).await;
    assert_eq!(eyes.request(Method::POST, &one, &body).await, request);
    let next = json!({ "amount": "5000", "reference": "wire-2" });
    for (path, body) in [(&one, &next), (&other, &body), (&adjustments, &body)] {
        let different = eyes.request(Method::POST, path, body).await;
        assert_ne!(different, request, "{path} {body}");
    }
    let by_sam = eyes.sam.call_json(Method::POST, &one, body.to_string()).await;
    let by_sam = expect_success(&by_sam, 202);
    assert_eq!(by_sam["requested_by"], "sam");
    let listed = eyes.admin.get("/admin/v1/requests?status=WAITING").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 5, "{listed}");
    let id = request.rsplit('/').next().unwrap();
    let trail = eyes.admin.audit_entries(&format!("subject={id}")).await;
    assert_eq!(trail.len(), 1, "{trail:?}");

    // Once it has ended, the same change is a new request.
    let decline = format!("{request}/decline");
    eyes.sam.send_json(Method::POST, &decline, &json!({})).await;
    assert_ne!(eyes.request(Method::POST, &one, &body).await, request);
}

/// A patch must not overwrite what was changed after it was requested.
#[tokio::test]
async fn change_of_terms_changed_meanwhile_is_refused() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let account = format!("/admin/v1/partners/{}", partner.partner_id);
    let narrow = json!({ "allowlist": ["203.0.113.0/24"] });
    let request = eyes.request(Method::PATCH, &account, &narrow).await;
    let window = json!({ "cancel_window_s": 60 });
    eyes.admin.send_json(Method::PATCH, &account, &window).await;
    expect_error(&eyes.confirm(&request).await, 409, "CHANGE_REQUEST_NOT_WAITING");
    assert_eq!(eyes.status(&request).await, "REFUSED");
    let terms = eyes.admin.get(&account).await;
    assert_ne!(terms["allowlist"], narrow["allowlist"]);
}

/// The first confirmation has issued the credential, and the service has died before its response and the end of the request.
#[tokio::test]
async fn credential_whose_issue_is_confirmed_twice_is_issued_once() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let credentials = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let request = eyes.request(Method::POST, &credentials, &json!({})).await;
    let mut database = ServiceDatabase::of(&eyes.service).await;
    let keep = "CREATE TABLE waiting AS SELECT request_id, sealed FROM change_requests";
    database.run(keep.to_owned()).await;
    let issued = expect_success(&eyes.confirm(&request).await, 201);
    let restore = "UPDATE change_requests AS r
                      SET status = 'CONFIRMED', sealed = w.sealed, decided_at = now() - interval '61 seconds'
                     FROM waiting AS w
                    WHERE w.request_id = r.request_id";
    database.run(restore.to_owned()).await;
    let listed = eyes.admin.get(&credentials).await;
    let again = eyes.confirm(&request).await;
    let error = expect_error(&again, 409, "CHANGE_REQUEST_NOT_WAITING");
    let credential_id = issued["credential_id"].as_str().unwrap();
    assert!(
        error["message"].as_str().unwrap().contains(credential_id),
        "{error}"
    );
    assert_eq!(eyes.admin.get(&credentials).await, listed);
    expect_success(&partner.with_credential(&issued).get("/wallets").await, 200);
}

//! Changes that need a second operator and are requested twice, or whose object has changed meanwhile.

use hyper::Method;
use serde_json::json;
use vouchsafe_api_client::ApiResponse;
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

/// Confirms a request twice: after the first time the service has died before the response, and before the
/// end of the request.
async fn confirm_twice(eyes: &mut FourEyes, request: &str) -> [ApiResponse; 2] {
    let mut database = ServiceDatabase::of(&eyes.service).await;
    let keep =
        "CREATE TABLE waiting AS SELECT request_id, sealed FROM change_requests WHERE status = 'WAITING'";
    database.run(keep.to_owned()).await;
    let first = eyes.confirm(request).await;
    let restore = "UPDATE change_requests AS r
                      SET status = 'CONFIRMED', sealed = w.sealed, decided_at = now() - interval '61 seconds'
                     FROM waiting AS w
                    WHERE w.request_id = r.request_id;
                   DROP TABLE waiting";
    database.run(restore.to_owned()).await;
    let second = eyes.confirm(request).await;
    assert_eq!(eyes.status(request).await, "EXECUTED");
    [first, second]
}

#[tokio::test]
async fn credential_whose_issue_is_confirmed_twice_is_issued_once() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let credentials = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let rotate = format!("/admin/v1/credentials/{}/rotate", partner.credential_id);
    for (path, number) in [(credentials.as_str(), 2), (&rotate, 3)] {
        let request = eyes.request(Method::POST, path, &json!({})).await;
        let [first, second] = confirm_twice(&mut eyes, &request).await;
        let issued = expect_success(&first, 201);
        let error = expect_error(&second, 409, "CREDENTIAL_ISSUED_BEFORE");
        let credential_id = issued["credential_id"].as_str().unwrap();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(credential_id), "{error}");
        let listed = eyes.admin.get(&credentials).await;
        assert_eq!(listed["data"].as_array().unwrap().len(), number, "{listed}");
        expect_success(&partner.with_credential(&issued).get("/wallets").await, 200);
    }
}

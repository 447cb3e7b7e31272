//! Credential rotation by partners: overlap, lost responses, limits.

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vouchsafe_api_client::ApiResponse;

use crate::access::{api_headers, get_wallets};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, expect_error, expect_success, shared, text_of,
};

pub(crate) async fn add_partner() -> (Operator, Partner) {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    (operator, partner)
}

async fn request_rotation(partner: &mut Partner, body: &str) -> ApiResponse {
    partner
        .send_signed(Method::POST, "/credentials/rotate", body)
        .await
}

/// Rotates and returns the partner with its new credential.
pub(crate) async fn rotate(partner: &mut Partner, body: &str) -> (Partner, Value) {
    let issued = expect_success(&request_rotation(partner, body).await, 201);
    (partner.with_credential(&issued), issued)
}

async fn credentials(operator: &mut Operator, partner: &Partner) -> Vec<Value> {
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    operator.get(&path).await["data"].as_array().unwrap().clone()
}

async fn count_live(operator: &mut Operator, partner: &Partner) -> usize {
    let credentials = credentials(operator, partner).await;
    credentials.iter().filter(|one| one["live"] == true).count()
}

fn previous_expires_at(issued: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(issued["previous_expires_at"].as_str().unwrap(), &Rfc3339).unwrap()
}

pub(crate) async fn assert_works(partner: &mut Partner) {
    expect_success(&partner.get("/wallets").await, 200);
}

pub(crate) async fn assert_rejected(partner: &mut Partner) {
    expect_error(&partner.get("/wallets").await, 401, "INVALID_CREDENTIALS");
}

#[tokio::test]
async fn both_credentials_work_during_overlap() {
    let (mut operator, mut old) = add_partner().await;
    let response = request_rotation(&mut old, "{}").await;
    let issued = expect_success(&response, 201);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert!(
        response
            .header("ratelimit-policy")
            .unwrap()
            .starts_with(r#""auth";"#)
    );
    let mut fields: Vec<_> = issued.as_object().unwrap().keys().collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["api_key", "api_secret", "credential_id", "previous_expires_at"]
    );
    let mut new = old.with_credential(&issued);
    assert_works(&mut new).await;
    assert_works(&mut old).await;

    let shown = credentials(&mut operator, &old).await;
    let [of_new, of_old] = &shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(of_new["credential_id"], issued["credential_id"], "newest first");
    assert_eq!(of_new["rotated_from"], json!(old.credential_id));
    assert_eq!((&of_new["live"], &of_old["live"]), (&json!(true), &json!(true)));
    assert_eq!(of_old["not_after"], issued["previous_expires_at"]);
    assert!(
        of_old["rotated_at"].is_string() && of_new["first_used_at"].is_string(),
        "{shown:?}"
    );
    let rotated_at = OffsetDateTime::parse(of_old["rotated_at"].as_str().unwrap(), &Rfc3339).unwrap();
    assert_eq!(previous_expires_at(&issued) - rotated_at, time::Duration::DAY);
}

#[tokio::test]
async fn rotation_is_audited_as_partner_without_secret() {
    let (mut operator, mut old) = add_partner().await;
    let response = request_rotation(&mut old, "").await;
    let issued = expect_success(&response, 201);
    let trail = operator
        .get(&format!("/admin/v1/audit?operator={}", old.partner_id))
        .await;
    let entries: Vec<(&str, &str, Option<&str>)> = trail["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str();
            (
                text("action").unwrap(),
                text("subject").unwrap(),
                text("trace_id"),
            )
        })
        .collect();
    let trace = response.header("x-trace-id");
    let new_id = issued["credential_id"].as_str().unwrap();
    assert_eq!(
        entries,
        [
            ("credential.issue", new_id, trace),
            ("credential.rotate", &old.credential_id, trace)
        ]
    );
    let mut database = ServiceDatabase::of(shared()).await;
    for secret in ["api_key", "api_secret"] {
        let written = "SELECT count(*) FROM audit_log AS a WHERE a::text LIKE '%' || $1 || '%'";
        assert_eq!(
            database.count(written, issued[secret].as_str().unwrap()).await,
            0,
            "{secret}"
        );
    }
}

#[tokio::test]
async fn rotation_without_overlap_ends_old_credential() {
    let (mut operator, mut old) = add_partner().await;
    let (mut new, _) = rotate(&mut old, r#"{"overlap_seconds":0}"#).await;
    assert_rejected(&mut old).await;
    assert_works(&mut new).await;
    assert_eq!(count_live(&mut operator, &new).await, 1);
}

#[tokio::test]
async fn repeated_rotation_revokes_unused_credential() {
    let (mut operator, mut old) = add_partner().await;
    let (mut rotated_out, _) = rotate(&mut old, "{}").await;
    let (mut second, _) = rotate(&mut old, "{}").await;
    assert_rejected(&mut rotated_out).await;
    assert_works(&mut second).await;
    assert_eq!(count_live(&mut operator, &old).await, 2);
    // A credential that was used is not revoked.
    let (mut third, _) = rotate(&mut old, "{}").await;
    for partner in [&mut second, &mut third, &mut old] {
        assert_works(partner).await;
    }
    assert_eq!(count_live(&mut operator, &old).await, 3);
}

#[tokio::test]
async fn rejected_request_does_not_count_as_use() {
    let (_, mut old) = add_partner().await;
    let (mut rotated_out, _) = rotate(&mut old, "{}").await;
    // A request without the right secret or signature does not prove that the response arrived.
    let mut without_secret = api_headers(&rotated_out);
    without_secret.remove("x-api-secret");
    let response = get_wallets(&mut rotated_out, without_secret).await;
    expect_error(&response, 401, "INVALID_CREDENTIALS");
    expect_error(
        &rotated_out.get("/orders/ord_0/vouchers").await,
        401,
        "INVALID_SIGNATURE",
    );
    rotate(&mut old, "{}").await;
    assert_rejected(&mut rotated_out).await;
}

#[tokio::test]
async fn repeated_rotation_never_extends_overlap() {
    let (_, mut old) = add_partner().await;
    let (_, first) = rotate(&mut old, r#"{"overlap_seconds":3600}"#).await;
    let (_, later) = rotate(&mut old, r#"{"overlap_seconds":604800}"#).await;
    assert_eq!(previous_expires_at(&first), previous_expires_at(&later));
    let (_, sooner) = rotate(&mut old, r#"{"overlap_seconds":1800}"#).await;
    assert!(previous_expires_at(&sooner) < previous_expires_at(&first));
    assert_works(&mut old).await;
    rotate(&mut old, r#"{"overlap_seconds":0}"#).await;
    assert_rejected(&mut old).await;
}

#[tokio::test]
async fn rotation_beyond_five_live_credentials_is_rejected() {
    let (mut operator, mut old) = add_partner().await;
    let mut last = None;
    for _ in 0..4 {
        let (mut used, _) = rotate(&mut old, "{}").await;
        assert_works(&mut used).await;
        last = Some(used);
    }
    let before = credentials(&mut operator, &old).await;
    let response = request_rotation(&mut old, r#"{"overlap_seconds":60}"#).await;
    let error = expect_error(&response, 409, "CREDENTIAL_LIMIT_REACHED");
    assert_eq!(error["retryable"], false);
    assert_eq!(credentials(&mut operator, &old).await, before);
    // A credential that ends immediately frees a place for its successor.
    rotate(&mut old, r#"{"overlap_seconds":0}"#).await;
    operator.revoke_credential(&last.unwrap()).await;
    assert_eq!(count_live(&mut operator, &old).await, 4);
}

#[tokio::test]
async fn rotated_credential_keeps_allowlist() {
    let (mut operator, partner) = add_partner().await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let allowlist = json!({ "allowlist": ["127.0.0.1/32"] });
    let issued = operator.send_json(Method::POST, &path, &allowlist).await;
    let (mut new, _) = rotate(&mut partner.with_credential(&issued), "{}").await;
    assert_works(&mut new).await;
    assert_eq!(
        credentials(&mut operator, &partner).await[0]["allowlist"],
        allowlist["allowlist"]
    );
}

#[tokio::test]
async fn invalid_rotation_is_rejected() {
    let (mut operator, mut old) = add_partner().await;
    for (body, status, code) in [
        (r#"{"overlap_seconds":604801}"#, 422, "VALIDATION_FAILED"),
        (r#"{"overlap_seconds":"1"}"#, 422, "VALIDATION_FAILED"),
        (r#"{"overlap":1}"#, 422, "VALIDATION_FAILED"),
        ("{", 400, "MALFORMED_REQUEST"),
        ("[]", 400, "MALFORMED_REQUEST"),
    ] {
        expect_error(&request_rotation(&mut old, body).await, status, code);
    }
    let response = old
        .client
        .send_raw(Method::POST, "/api/v1/credentials/rotate", api_headers(&old), "")
        .await
        .unwrap();
    expect_error(&response, 401, "INVALID_SIGNATURE");
    expect_error(&old.get("/credentials/rotate").await, 405, "METHOD_NOT_ALLOWED");
    assert_eq!(count_live(&mut operator, &old).await, 1);
}

#[tokio::test]
async fn concurrent_rotations_leave_one_new_credential() {
    let (mut operator, old) = add_partner().await;
    for _ in 0..5 {
        let (mut one, mut other) = (old.reconnect(), old.reconnect());
        let (first, second) = tokio::join!(
            request_rotation(&mut one, "{}"),
            request_rotation(&mut other, "{}")
        );
        let both = [expect_success(&first, 201), expect_success(&second, 201)];
        let mut working = 0;
        for issued in &both {
            working += usize::from(old.with_credential(issued).get("/wallets").await.status == 200);
        }
        assert_eq!(working, 1, "only the last rotation's credential works");
        // Free places for the next iteration.
        for issued in &both {
            operator.revoke_credential(&old.with_credential(issued)).await;
        }
    }
    assert_eq!(count_live(&mut operator, &old).await, 1);
}

#[tokio::test]
async fn concurrent_first_use_and_rotation_are_consistent() {
    let (mut operator, old) = add_partner().await;
    for _ in 0..10 {
        let (mut new, _) = rotate(&mut old.reconnect(), "{}").await;
        let mut client = old.reconnect();
        let (used, rotated) = tokio::join!(new.get("/wallets"), request_rotation(&mut client, "{}"));
        let third = expect_success(&rotated, 201);
        match used.status.as_u16() {
            200 => assert_works(&mut new).await,
            _ => {
                expect_error(&used, 401, "INVALID_CREDENTIALS");
                assert_rejected(&mut new).await;
            }
        }
        operator.revoke_credential(&new).await;
        operator.revoke_credential(&old.with_credential(&third)).await;
    }
}

#[tokio::test]
async fn credential_use_after_kill_is_retained() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let [mut with_use, mut without_use] = [operator.add_partner("0").await, operator.add_partner("0").await];
    let (mut used, _) = rotate(&mut with_use, "{}").await;
    assert_works(&mut used).await;
    let (rotated_out, _) = rotate(&mut without_use, "{}").await;
    service.kill();
    service.restart();
    let base_url = service.base_url();
    let mut operator = Operator::of(&service);
    let [mut with_use, mut without_use] = [with_use.connect_to(&base_url), without_use.connect_to(&base_url)];
    rotate(&mut with_use, "{}").await;
    rotate(&mut without_use, "{}").await;
    assert_works(&mut used.connect_to(&base_url)).await;
    assert_rejected(&mut rotated_out.connect_to(&base_url)).await;
    assert_eq!(count_live(&mut operator, &with_use).await, 3);
    let response = operator
        .call(
            Method::GET,
            "/admin/v1/partners/nobody/credentials",
            "text/plain",
            "",
        )
        .await;
    assert_eq!(response.status, 404, "{}", text_of(&response));
}

#[tokio::test]
async fn operator_rotates_a_credential_as_its_partner_does() {
    let (mut operator, mut old) = add_partner().await;
    let id = credentials(&mut operator, &old).await[0]["credential_id"].clone();
    let path = format!("/admin/v1/credentials/{}/rotate", id.as_str().unwrap());
    let response = operator
        .call_json(Method::POST, &path, r#"{"overlap_seconds":60}"#)
        .await;
    let issued = expect_success(&response, 201);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let mut new = old.with_credential(&issued);
    assert_works(&mut new).await;
    assert_works(&mut old).await;
    let listed = credentials(&mut operator, &old).await;
    assert_eq!(listed[0]["rotated_from"], id);
    let audited = operator
        .get(&format!(
            "/admin/v1/audit?action=credential.rotate&subject={}",
            id.as_str().unwrap()
        ))
        .await;
    assert_eq!(audited["data"][0]["operator"], "admin");

    let ended = operator
        .call_json(Method::POST, &path, r#"{"overlap_seconds":0}"#)
        .await;
    expect_success(&ended, 201);
    assert_rejected(&mut old).await;
    let refused = operator.call_json(Method::POST, &path, "").await;
    expect_error(&refused, 409, "CREDENTIAL_NOT_LIVE");
    for (path, body, status, code) in [
        (
            &path[..],
            r#"{"overlap_seconds":604801}"#,
            422,
            "VALIDATION_FAILED",
        ),
        (
            "/admin/v1/credentials/cred_1/rotate",
            "",
            404,
            "CREDENTIAL_NOT_FOUND",
        ),
    ] {
        expect_error(&operator.call_json(Method::POST, path, body).await, status, code);
    }
}

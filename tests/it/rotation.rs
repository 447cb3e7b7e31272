//! Does a partner change its credential without a moment in which none works, and without two that nobody knows of?

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vouchsafe_load::client::Answer;

use crate::support::{Database, Instance, Operator, Partner, accepted, refused, shared, text_of};

async fn ask(partner: &mut Partner, body: &str) -> Answer {
    partner.signed(Method::POST, "/credentials/rotate", body).await
}

/// Asks for the next credential, and gives the partner with it.
async fn next(partner: &mut Partner, body: &str) -> (Partner, Value) {
    let issued = accepted(&ask(partner, body).await, 201);
    (partner.with_issued(&issued), issued)
}

async fn credentials(operator: &mut Operator, partner: &Partner) -> Vec<Value> {
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    operator.get(&path).await["data"].as_array().unwrap().clone()
}

async fn live(operator: &mut Operator, partner: &Partner) -> usize {
    let credentials = credentials(operator, partner).await;
    credentials.iter().filter(|one| one["live"] == true).count()
}

fn end_of(issued: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(issued["previous_expires_at"].as_str().unwrap(), &Rfc3339).unwrap()
}

async fn assert_works(partner: &mut Partner) {
    accepted(&partner.get("/wallets").await, 200);
}

async fn assert_out(partner: &mut Partner) {
    refused(&partner.get("/wallets").await, 401, "INVALID_CREDENTIALS");
}

#[tokio::test]
async fn both_credentials_work_until_the_old_one_ends() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let answer = ask(&mut old, "{}").await;
    let issued = accepted(&answer, 201);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(
        answer
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
    let mut new = old.with_issued(&issued);
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
    let asked_at = OffsetDateTime::parse(of_old["rotated_at"].as_str().unwrap(), &Rfc3339).unwrap();
    assert_eq!(end_of(&issued) - asked_at, time::Duration::DAY);
}

#[tokio::test]
async fn a_rotation_is_in_the_trail_as_the_partners_and_shows_no_secret() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let answer = ask(&mut old, "").await;
    let issued = accepted(&answer, 201);
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
    let trace = answer.header("x-trace-id");
    let new_id = issued["credential_id"].as_str().unwrap();
    assert_eq!(
        entries,
        [
            ("credential.issue", new_id, trace),
            ("credential.rotate", &old.credential_id, trace)
        ]
    );
    let mut database = Database::of(shared()).await;
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
async fn without_overlap_the_old_one_is_out_at_once() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let (mut new, _) = next(&mut old, r#"{"overlap_seconds":0}"#).await;
    assert_out(&mut old).await;
    assert_works(&mut new).await;
    assert_eq!(live(&mut operator, &new).await, 1);
}

#[tokio::test]
async fn who_lost_the_answer_asks_again_and_the_lost_one_is_taken_back() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let (mut lost, _) = next(&mut old, "{}").await;
    let (mut found, _) = next(&mut old, "{}").await;
    assert_out(&mut lost).await;
    assert_works(&mut found).await;
    assert_eq!(live(&mut operator, &old).await, 2);
    // One that was used is not taken back.
    let (mut third, _) = next(&mut old, "{}").await;
    for partner in [&mut found, &mut third, &mut old] {
        assert_works(partner).await;
    }
    assert_eq!(live(&mut operator, &old).await, 3);
}

#[tokio::test]
async fn a_request_that_is_refused_is_no_use() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let (mut lost, _) = next(&mut old, "{}").await;
    // Whoever has the key without the secret, or no signature, has not shown that the answer came.
    let answer = lost
        .client
        .raw(Method::GET, "/api/v1/wallets", key_alone(&lost), "")
        .await
        .unwrap();
    refused(&answer, 401, "INVALID_CREDENTIALS");
    refused(
        &lost.get("/orders/ord_0/vouchers").await,
        401,
        "INVALID_SIGNATURE",
    );
    next(&mut old, "{}").await;
    assert_out(&mut lost).await;
}

fn key_alone(partner: &Partner) -> hyper::HeaderMap {
    let mut headers = hyper::HeaderMap::new();
    partner.client.credentials().identify(&mut headers);
    headers.remove("x-api-secret");
    headers
}

#[tokio::test]
async fn an_end_comes_nearer_and_never_moves_off() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let (_, first) = next(&mut old, r#"{"overlap_seconds":3600}"#).await;
    let (_, later) = next(&mut old, r#"{"overlap_seconds":604800}"#).await;
    assert_eq!(end_of(&first), end_of(&later));
    let (_, sooner) = next(&mut old, r#"{"overlap_seconds":1800}"#).await;
    assert!(end_of(&sooner) < end_of(&first));
    assert_works(&mut old).await;
    next(&mut old, r#"{"overlap_seconds":0}"#).await;
    assert_out(&mut old).await;
}

#[tokio::test]
async fn five_live_at_most_and_what_is_refused_changes_nothing() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    let mut last = None;
    for _ in 0..4 {
        let (mut used, _) = next(&mut old, "{}").await;
        assert_works(&mut used).await;
        last = Some(used);
    }
    let before = credentials(&mut operator, &old).await;
    let error = refused(
        &ask(&mut old, r#"{"overlap_seconds":60}"#).await,
        409,
        "CREDENTIAL_LIMIT_REACHED",
    );
    assert_eq!(error["retryable"], false);
    assert_eq!(credentials(&mut operator, &old).await, before);
    // The one that ends at once makes room for its own.
    next(&mut old, r#"{"overlap_seconds":0}"#).await;
    operator.revoke(&last.unwrap()).await;
    assert_eq!(live(&mut operator, &old).await, 4);
}

#[tokio::test]
async fn the_new_one_is_as_narrow_as_the_one_that_asks() {
    let mut operator = Operator::of(shared());
    let partner = operator.partner("0").await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let narrow = json!({ "allowlist": ["127.0.0.1/32"] });
    let issued = operator.put(Method::POST, &path, &narrow).await;
    let (mut new, _) = next(&mut partner.with_issued(&issued), "{}").await;
    assert_works(&mut new).await;
    assert_eq!(
        credentials(&mut operator, &partner).await[0]["allowlist"],
        narrow["allowlist"]
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_rotates_nothing() {
    let mut operator = Operator::of(shared());
    let mut old = operator.partner("0").await;
    for (body, status, code) in [
        (r#"{"overlap_seconds":604801}"#, 422, "VALIDATION_FAILED"),
        (r#"{"overlap_seconds":"1"}"#, 422, "VALIDATION_FAILED"),
        (r#"{"overlap":1}"#, 422, "VALIDATION_FAILED"),
        ("{", 400, "MALFORMED_REQUEST"),
        ("[]", 400, "MALFORMED_REQUEST"),
    ] {
        refused(&ask(&mut old, body).await, status, code);
    }
    let answer = old
        .client
        .raw(Method::POST, "/api/v1/credentials/rotate", identity(&old), "")
        .await
        .unwrap();
    refused(&answer, 401, "INVALID_SIGNATURE");
    refused(&old.get("/credentials/rotate").await, 405, "METHOD_NOT_ALLOWED");
    assert_eq!(live(&mut operator, &old).await, 1);
}

fn identity(partner: &Partner) -> hyper::HeaderMap {
    let mut headers = hyper::HeaderMap::new();
    partner.client.credentials().identify(&mut headers);
    headers
}

#[tokio::test]
async fn asking_twice_at_once_leaves_one_new_credential() {
    let mut operator = Operator::of(shared());
    let old = operator.partner("0").await;
    for _ in 0..5 {
        let (mut one, mut other) = (old.again(), old.again());
        let (first, second) = tokio::join!(ask(&mut one, "{}"), ask(&mut other, "{}"));
        let both = [accepted(&first, 201), accepted(&second, 201)];
        let mut working = 0;
        for issued in &both {
            working += usize::from(old.with_issued(issued).get("/wallets").await.status == 200);
        }
        assert_eq!(working, 1, "the one that was asked for last");
        // Make room: the used ones go.
        for issued in &both {
            operator.revoke(&old.with_issued(issued)).await;
        }
    }
    assert_eq!(live(&mut operator, &old).await, 1);
}

#[tokio::test]
async fn a_first_use_and_a_taking_back_at_once_end_in_one_of_the_two() {
    let mut operator = Operator::of(shared());
    let old = operator.partner("0").await;
    for _ in 0..10 {
        let (mut new, _) = next(&mut old.again(), "{}").await;
        let mut asking = old.again();
        let (used, asked) = tokio::join!(new.get("/wallets"), ask(&mut asking, "{}"));
        let third = accepted(&asked, 201);
        match used.status.as_u16() {
            200 => assert_works(&mut new).await,
            _ => {
                refused(&used, 401, "INVALID_CREDENTIALS");
                assert_out(&mut new).await;
            }
        }
        operator.revoke(&new).await;
        operator.revoke(&old.with_issued(&third)).await;
    }
}

#[tokio::test]
async fn what_was_used_and_what_was_not_is_known_after_a_crash() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let [mut careful, mut unlucky] = [operator.partner("0").await, operator.partner("0").await];
    let (mut used, _) = next(&mut careful, "{}").await;
    assert_works(&mut used).await;
    let (lost, _) = next(&mut unlucky, "{}").await;
    service.kill();
    service.restart();
    let base_url = service.base_url();
    let mut operator = Operator::of(&service);
    let [mut careful, mut unlucky] = [careful.at(&base_url), unlucky.at(&base_url)];
    next(&mut careful, "{}").await;
    next(&mut unlucky, "{}").await;
    assert_works(&mut used.at(&base_url)).await;
    assert_out(&mut lost.at(&base_url)).await;
    assert_eq!(live(&mut operator, &careful).await, 3);
    let answer = operator
        .call(
            Method::GET,
            "/admin/v1/partners/nobody/credentials",
            "text/plain",
            "",
        )
        .await;
    assert_eq!(answer.status, 404, "{}", text_of(&answer));
}

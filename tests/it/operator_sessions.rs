//! Sessions of operators: role, end, idle time, forgery of requests, and who sees and ends them.

use hyper::Method;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vouchsafe_test_harness::{Operator, expect_error, expect_success, json_of, shared};

use crate::browser::{Browser, SAME_ORIGIN};
use crate::change_requests::FourEyes;
use crate::multi_node::start_two_nodes;
use crate::operator_accounts::{add_operator, text};

const PARTNERS: &str = "/admin/v1/partners";

#[tokio::test(flavor = "multi_thread")]
async fn session_has_the_current_role_of_its_account_at_every_node() {
    let [first, second] = start_two_nodes();
    let mut admin = Operator::of(&first);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let cookie = Browser::signed_in(&first, &mut admin, &name).await.cookie;
    let mut jane = Browser::of(&second);
    jane.cookie = cookie;
    assert_eq!(jane.status(Method::GET, PARTNERS).await, 200);
    assert_eq!(jane.status(Method::POST, PARTNERS).await, 403);
    let account = format!("/admin/v1/operators/{name}");
    for (change, expected) in [
        // Invalid without a body, but permitted.
        (json!({ "role": "admin" }), 400),
        (json!({ "disabled": true }), 401),
        // Disabling has ended the session.
        (json!({ "role": "viewer", "disabled": false }), 401),
    ] {
        admin.send_json(Method::PATCH, &account, &change).await;
        assert_eq!(jane.status(Method::POST, PARTNERS).await, expected, "{change}");
    }
    let listed = admin.get(&format!("/admin/v1/sessions?operator={name}")).await;
    let session = format!("/admin/v1/sessions/{}", text(&listed["data"][0], "session_id"));
    for _ in 0..2 {
        admin.send_json(Method::DELETE, &session, &json!(null)).await;
        assert_eq!(jane.status(Method::GET, PARTNERS).await, 401, "ended");
    }
    let log = second.log();
    assert!(
        !log.contains("security event"),
        "an ended session is no guess: {log}"
    );
}

#[tokio::test]
async fn session_ends_when_idle_for_30_minutes_and_after_12_hours() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = database.connect().await.unwrap();
    let sessions = format!("/admin/v1/sessions?operator={name}");
    for (change, expected) in [
        ("last_used_at = now() - interval '29 minutes'", 200),
        ("last_used_at = now() - interval '30 minutes'", 401),
        // The end is part of the HMAC: an earlier one cannot be tried without the key.
        ("expires_at = expires_at - interval '12 hours'", 401),
    ] {
        let mut jane = Browser::signed_in(service, &mut admin, &name).await;
        let used = admin.get(&sessions).await["data"][0]["last_used_at"].clone();
        assert_eq!(jane.status(Method::GET, PARTNERS).await, 200);
        let unchanged = &admin.get(&sessions).await["data"][0]["last_used_at"];
        assert_eq!(*unchanged, used, "a use within the minute is not written");
        let sql = format!("UPDATE operator_sessions SET {change} WHERE operator = $1 AND ended_at IS NULL");
        let update = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(&name);
        update.execute(&mut connection).await.unwrap();
        let aged = admin.get(&sessions).await["data"][0].clone();
        assert_eq!(jane.status(Method::GET, PARTNERS).await, expected, "{change}");
        let after = admin.get(&sessions).await["data"][0].clone();
        let is_use_recorded = after["last_used_at"] != aged["last_used_at"];
        assert_eq!(
            is_use_recorded,
            expected == 200 && change.starts_with("last_used"),
            "{change}"
        );
    }
}

#[tokio::test]
async fn open_page_does_not_keep_a_session() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let mut jane = Browser::signed_in(service, &mut admin, &name).await;
    let database = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
    let mut connection = database.connect().await.unwrap();
    let aged =
        "UPDATE operator_sessions SET last_used_at = now() - interval '29 minutes' WHERE operator = $1";
    sqlx::query(aged)
        .bind(&name)
        .execute(&mut connection)
        .await
        .unwrap();
    let sessions = format!("/admin/v1/sessions?operator={name}");
    let before = admin.get(&sessions).await["data"][0]["last_used_at"].clone();
    for (destination, is_kept) in [("empty", false), ("document", true)] {
        let headers = [("sec-fetch-dest", destination)];
        let response = jane.send(Method::GET, PARTNERS, &headers, "").await;
        assert_eq!(response.status, 200, "{destination}");
        let after = admin.get(&sessions).await["data"][0]["last_used_at"].clone();
        assert_eq!(after != before, is_kept, "{destination}");
    }
}

#[tokio::test]
async fn change_with_session_must_come_from_the_console() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "operator").await;
    let mut jane = Browser::signed_in(service, &mut admin, &name).await;
    let own = service.admin_url();
    let order = format!("/admin/v1/orders/ord_{}/cancel", "0".repeat(32));
    for (headers, is_own) in [
        (&[SAME_ORIGIN][..], true),
        (&[("origin", own.as_str())], true),
        (&[], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("sec-fetch-site", "same-site")], false),
        (&[("sec-fetch-site", "none")], false),
        (
            &[("origin", own.as_str()), ("sec-fetch-site", "cross-site")],
            false,
        ),
        (&[("origin", "http://evil.example")], false),
        (&[("origin", "null")], false),
    ] {
        for (method, path, expected) in [
            (Method::POST, order.as_str(), 404),
            (Method::DELETE, "/admin/v1/sessions/ses_0", 404),
        ] {
            let body = r#"{"reason":"agreed"}"#;
            let response = jane.send_json(method, path, headers, body).await;
            if is_own {
                assert_eq!(response.status.as_u16(), expected, "{path} {headers:?}");
            } else {
                let error = expect_error(&response, 403, "FORBIDDEN");
                let message = error["message"].as_str().unwrap();
                assert!(message.contains(&own), "{message}");
            }
        }
        let page = format!("/orders/ord_{}/cancel", "0".repeat(32));
        let response = jane.send(Method::POST, &page, headers, "reason=agreed").await;
        assert_eq!(
            response.status == 403,
            !is_own,
            "a form of the console: {headers:?}"
        );
        let read = jane.send(Method::GET, PARTNERS, headers, "").await;
        assert_eq!(read.status, 200, "a read changes nothing");
    }
}

#[tokio::test]
async fn operators_see_and_end_their_own_sessions_and_admins_all() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (jane, _) = add_operator(&mut admin, "viewer").await;
    let (sam, _) = add_operator(&mut admin, "operator").await;
    let mut at_jane = Browser::signed_in(service, &mut admin, &jane).await;
    let mut at_sam = Browser::signed_in(service, &mut admin, &sam).await;
    let of_sam = admin.get(&format!("/admin/v1/sessions?operator={sam}")).await;
    let of_sam = &of_sam["data"][0];
    assert_eq!(
        (&of_sam["method"], &of_sam["address"], &of_sam["ended_at"]),
        (&json!("link"), &json!("127.0.0.1"), &json!(null))
    );
    let own = json_of(&at_jane.send(Method::GET, "/admin/v1/sessions", &[], "").await);
    assert_eq!(own["data"].as_array().unwrap().len(), 1, "{own}");
    assert_eq!(own["data"][0]["operator"], json!(jane));
    let others = format!("/admin/v1/sessions?operator={sam}");
    let refused = at_jane.send(Method::GET, &others, &[], "").await;
    expect_error(&refused, 403, "FORBIDDEN");
    let session = format!("/admin/v1/sessions/{}", text(of_sam, "session_id"));
    assert_eq!(at_jane.status(Method::DELETE, &session).await, 403);
    assert_eq!(at_sam.status(Method::GET, PARTNERS).await, 200);
    assert_eq!(at_sam.status(Method::DELETE, &session).await, 204);
    assert_eq!(at_sam.status(Method::GET, PARTNERS).await, 401);

    // In a session, an operator cannot issue a sign-in link.
    let link = |name: &str| format!("/admin/v1/operators/{name}/sign-in-links");
    assert_eq!(at_jane.status(Method::POST, &link(&jane)).await, 403);
    assert_eq!(at_jane.status(Method::POST, &link(&sam)).await, 403);
    assert_eq!(at_jane.status(Method::POST, &link("nobody")).await, 404);
}

#[tokio::test]
async fn four_eyes_permits_links_for_oneself_only() {
    let mut eyes = FourEyes::start();
    for (name, expected) in [("sam", 201), ("admin", 403), ("nobody", 404)] {
        let path = format!("/admin/v1/operators/{name}/sign-in-links");
        let response = eyes.sam.call_json(Method::POST, &path, "").await;
        assert_eq!(response.status.as_u16(), expected, "{name}: {response:?}");
    }
}

#[tokio::test]
async fn session_issues_no_token_of_its_account_while_changes_need_a_second_operator() {
    let mut eyes = FourEyes::start();
    let mut browser = Browser::signed_in(&eyes.service, &mut eyes.sam, "sam").await;
    let path = "/admin/v1/operators/sam/tokens";
    for body in ["{}", r#"{"days":1}"#] {
        let refused = browser.send_json(Method::POST, path, &[SAME_ORIGIN], body).await;
        expect_error(&refused, 403, "FORBIDDEN");
    }
    eyes.sam.send_json(Method::POST, path, &json!({})).await;
}

#[tokio::test]
async fn token_that_a_session_issues_ends_with_the_session() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "admin").await;
    let mut browser = Browser::signed_in(service, &mut admin, &name).await;
    let path = format!("/admin/v1/operators/{name}/tokens");
    let issued = browser
        .send_json(Method::POST, &path, &[SAME_ORIGIN], r#"{"days":366}"#)
        .await;
    let issued = expect_success(&issued, 201);
    let time = |text: &str| OffsetDateTime::parse(text, &Rfc3339).unwrap();
    let validity = time(&text(&issued, "expires_at")) - time(&text(&issued, "created_at"));
    assert!(validity <= time::Duration::hours(12), "{issued}");
    let mut by_token = Operator::of(service).with_token(&text(&issued, "token"));
    by_token.get(PARTNERS).await;
    // Neither does a token that this token issues last longer, and a link would start another session.
    let next = by_token
        .send_json(Method::POST, &path, &json!({ "days": 366 }))
        .await;
    assert!(
        time(&text(&next, "expires_at")) <= time(&text(&issued, "expires_at")),
        "{next}"
    );
    let link = format!("/admin/v1/operators/{name}/sign-in-links");
    let refused = by_token.call_json(Method::POST, &link, "").await;
    expect_error(&refused, 403, "FORBIDDEN");
    let sessions = admin.get(&format!("/admin/v1/sessions?operator={name}")).await;
    let session = format!("/admin/v1/sessions/{}", text(&sessions["data"][0], "session_id"));
    admin.send_json(Method::DELETE, &session, &json!(null)).await;
    for token in [&issued, &next] {
        let mut by_token = Operator::of(service).with_token(&text(token, "token"));
        let refused = by_token.call_json(Method::GET, PARTNERS, "").await;
        expect_error(&refused, 401, "INVALID_CREDENTIALS");
    }
    let tokens = admin.get(&path).await;
    let tokens = tokens["data"].as_array().unwrap();
    let ended = tokens
        .iter()
        .find(|token| token["token_id"] == issued["token_id"]);
    assert_ne!(ended.unwrap()["revoked_at"], Value::Null, "{tokens:?}");
}

//! Rows that a user of the service's database role has planted or changed: they grant nothing, are
//! security events, and `verify` finds them.

use hyper::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use vouchsafe_private_postgres::Durability;
use vouchsafe_test_harness::{
    Database, Instance, Operator, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    text_of,
};

use crate::browser::Browser;
use crate::change_requests::{FourEyes, top_ups};
use crate::commands::run_in_production;
use crate::operator_accounts::text;
use crate::production::{add_certified_partner, start_production, start_production_with};

/// Names of the invariants that `vouchsafe verify` finds broken.
fn broken_invariants(database: &Database) -> Vec<String> {
    let report = run_in_production(database, &["verify"]);
    let invariants = report["invariants"].as_array().unwrap().iter();
    let broken = invariants.filter(|invariant| invariant["holds"] == false);
    broken.map(|invariant| text(invariant, "name")).collect()
}

async fn attacker(database: &Database) -> PgConnection {
    PgConnection::connect_with(&database.service_options())
        .await
        .unwrap()
}

async fn execute(connection: &mut PgConnection, sql: String) {
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// Waits until this many forged rows have been counted.
async fn wait_for_forged(operator: &mut Operator, expected: u64) {
    let poll = async || (forged(operator).await >= expected).then_some(());
    eventually("the security event", WAIT_TIMEOUT, poll).await;
    assert_eq!(forged(operator).await, expected);
}

async fn forged(operator: &mut Operator) -> u64 {
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let metrics = text_of(&metrics);
    let name = "vouchsafe_security_events_total{reason=\"forged_grant\"} ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse().unwrap()
}

async fn status(service: &Instance, token: &str) -> u16 {
    let mut stranger = Operator::of(service).with_token(token);
    let response = stranger.call_json(Method::GET, "/admin/v1/partners", "").await;
    response.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_and_changed_rows_of_operators_grant_nothing() {
    let database = Database::create_on(Durability::Durable).await;
    let service = start_production_with(
        &database,
        &[("VOUCHSAFE_CONSOLE_URL", "https://console.example.com")],
    );
    let mut operator = Operator::of(&service);
    let sam = run_in_production(&database, &["operator", "create", "sam", "--admin"]);
    let sam = text(&sam, "token");
    assert_eq!(status(&service, &sam).await, 200);
    let mut attacker = attacker(&database).await;
    let planted = format!("vso_{}", "5e".repeat(32));
    let hash = hex::encode(Sha256::digest(&planted));
    let entry = |action: &str, subject: &str| {
        format!(
            "INSERT INTO audit_log (at, operator, action, subject, after)
             VALUES (now() - interval '30 days', 'sam', '{action}', '{subject}', '{{\"role\": \"admin\", \"disabled\": false}}');"
        )
    };
    let token_of = |name: &str| {
        format!(
            "INSERT INTO operator_tokens (token_id, operator, token_hash, expires_at, mac)
             VALUES ('01900000-0000-7000-8000-000000000001', '{name}', decode('{hash}', 'hex'), now() + interval '1 year', sha256('x'));"
        )
    };
    let token_entry = entry("operator_token.issue", "otk_01900000000070008000000000000001");
    let account = "INSERT INTO operators (name, role) VALUES ('mallory', 'admin');";
    for attack in [
        [
            account,
            &entry("operator.create", "mallory"),
            &token_of("mallory"),
            &token_entry,
        ]
        .concat(),
        [&*token_of("sam"), &token_entry].concat(),
    ] {
        let before = forged(&mut operator).await;
        execute(&mut attacker, attack.clone()).await;
        assert_eq!(status(&service, &planted).await, 401, "{attack}");
        wait_for_forged(&mut operator, before + 1).await;
        assert_eq!(broken_invariants(&database), ["access.mac"], "{attack}");
        execute(
            &mut attacker,
            "DELETE FROM operator_tokens WHERE token_id = '01900000-0000-7000-8000-000000000001';
             DELETE FROM operator_sessions WHERE operator = 'mallory'"
                .to_owned(),
        )
        .await;
    }
    // The same row, counted twice, has one entry.
    let audited = operator.audit_entries("action=security.forged_grant").await;
    let of_token = audited
        .iter()
        .filter(|entry| entry["subject"] == "otk_01900000000070008000000000000001");
    assert_eq!(of_token.count(), 1, "{audited:?}");
    // The service's role may delete no account, so that mallory stays, and is found.
    assert_eq!(broken_invariants(&database), ["access.mac"]);
    let backdated: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_log WHERE operator = 'sam' AND at < now() - interval '1 day'",
    )
    .fetch_one(&mut attacker)
    .await
    .unwrap();
    assert_eq!(
        backdated, 0,
        "the service's role cannot choose the time of an entry"
    );

    let session = format!("vsn_{}", "5e".repeat(32));
    let hash = hex::encode(Sha256::digest(&session));
    execute(
        &mut attacker,
        format!(
            "INSERT INTO operator_sessions (session_id, operator, token_hash, method, address, expires_at)
             VALUES (gen_random_uuid(), 'sam', decode('{hash}', 'hex'), 'link', '127.0.0.1', now() + interval '12 hours')"
        ),
    )
    .await;
    let before = forged(&mut operator).await;
    let mut browser = Browser::of(&service);
    browser.cookie = Some(format!("__Host-vouchsafe_session={session}"));
    assert_eq!(browser.status(Method::GET, "/admin/v1/partners").await, 401);
    let link = format!("vsl_{}", "5e".repeat(32));
    let hash = hex::encode(Sha256::digest(&link));
    execute(
        &mut attacker,
        format!(
            "INSERT INTO operator_sign_in_links (operator, token_hash, expires_at)
             VALUES ('sam', decode('{hash}', 'hex'), now() + interval '10 minutes')"
        ),
    )
    .await;
    let from_console = [("origin", "https://console.example.com")];
    let redeemed = Browser::of(&service)
        .send(
            Method::POST,
            "/sign-in/link",
            &from_console,
            &format!("token={link}"),
        )
        .await;
    assert_eq!(redeemed.status, 401);
    wait_for_forged(&mut operator, before + 2).await;
    // A role that no admin has given.
    execute(
        &mut attacker,
        "UPDATE operators SET role = 'viewer' WHERE name = 'sam'".to_owned(),
    )
    .await;
    assert_eq!(status(&service, &sam).await, 401);
    drop(service);
    database.remove().await;
}

/// An operator who can write to the database makes another one the requester, and confirms.
#[tokio::test]
async fn request_whose_requester_was_changed_in_the_database_is_not_carried_out() {
    let mut eyes = FourEyes::start();
    let mut partner = eyes.admin.add_partner("1").await;
    let body = json!({ "amount": "5000", "reference": "a" });
    let request = eyes.request(Method::POST, &top_ups(&partner), &body).await;
    let mut database = ServiceDatabase::of(&eyes.service).await;
    database
        .run("UPDATE change_requests SET requested_by = 'sam'".to_owned())
        .await;
    let confirm = format!("{request}/confirm");
    let response = eyes.admin.call_json(Method::POST, &confirm, "").await;
    expect_error(&response, 403, "OWN_CHANGE_REQUEST");
    assert_eq!(partner.balance("USD").await, "1.00");
}

/// An operator who can write to the database requests a change and shows the second operator another one.
#[tokio::test]
async fn request_shows_its_change_and_not_what_the_database_says() {
    let mut eyes = FourEyes::start();
    let mut partner = eyes.admin.add_partner("1").await;
    let body = json!({ "amount": "5000", "reference": "a" });
    let request = eyes.request(Method::POST, &top_ups(&partner), &body).await;
    let mut database = ServiceDatabase::of(&eyes.service).await;
    let harmless = [
        "details = jsonb_set(details, '{amount}', '\"1.00\"')",
        "object = 'ptn_00000000000000000000000000000000'",
        "kind = 'PAYOUT_REJECT'",
    ];
    let truthful = eyes.sam.get(&request).await;
    let mut in_list = truthful.clone();
    // A list computes no preview.
    in_list.as_object_mut().unwrap().remove("preview").unwrap();
    for change in harmless {
        database
            .run("CREATE TABLE IF NOT EXISTS kept AS SELECT object, details, kind, requested_by FROM change_requests".to_owned())
            .await;
        database.run(format!("UPDATE change_requests SET {change}")).await;
        assert_eq!(eyes.sam.get(&request).await, truthful, "{change}");
        let listed = eyes.sam.get("/admin/v1/requests?status=WAITING").await;
        assert_eq!(listed["data"][0], in_list, "{change}");
        expect_error(&eyes.confirm(&request).await, 500, "INTERNAL_ERROR");
        assert_eq!(partner.balance("USD").await, "1.00");
        // A confirmation can be repeated a minute later.
        database
            .run(
                "UPDATE change_requests SET object = kept.object, details = kept.details, kind = kept.kind,
                        requested_by = kept.requested_by, status = 'WAITING', decided_by = NULL, decided_at = NULL
                   FROM kept"
                    .to_owned(),
            )
            .await;
    }
    expect_success(&eyes.confirm(&request).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_and_changed_rows_of_partners_grant_nothing() {
    let database = Database::create_on(Durability::Durable).await;
    let mut service = start_production(&database);
    let mut operator = Operator::of(&service);
    let mut partner = add_certified_partner(&service, &mut operator).await;
    expect_success(&partner.get("/wallets").await, 200);
    let mut attacker = attacker(&database).await;
    let (key, secret) = (
        format!("vs_live_{}", "5e".repeat(16)),
        format!("vss_{}", "5e".repeat(32)),
    );
    let id = partner.partner_id.trim_start_matches("ptn_").to_owned();
    execute(
        &mut attacker,
        format!(
            "INSERT INTO credentials (credential_id, partner_id, key_hash, secret_hash, family_id, mac)
             VALUES ('01900000-0000-7000-8000-000000000001', '{id}', sha256('{key}'), sha256('{secret}'),
                     '01900000-0000-7000-8000-000000000001', sha256('x'));
             INSERT INTO audit_log (operator, action, subject, after, partner_id)
             VALUES ('sam', 'credential.issue', 'cred_01900000000070008000000000000001', '{{\"partner_id\": \"ptn_{id}\"}}', '{id}')"
        ),
    )
    .await;
    let issued = json!({ "api_key": key, "api_secret": secret, "credential_id": "cred_01900000000070008000000000000001" });
    let mut planted = partner.with_credential(&issued);
    // The node has loaded the row, because of the forged audit entry.
    eventually("the security event", WAIT_TIMEOUT, async || {
        let entries = operator.audit_entries("action=security.forged_grant").await;
        (!entries.is_empty()).then(|| {
            assert_eq!(entries[0]["subject"], "cred_01900000000070008000000000000001");
        })
    })
    .await;
    expect_error(&planted.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    assert!(forged(&mut operator).await >= 1);
    assert_eq!(broken_invariants(&database), ["access.mac"]);
    // Neither has a node that loads it at its start, and no rotation makes it valid.
    assert_eq!(service.stop(), Some(0));
    service.restart();
    expect_error(&planted.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    let rotate = "/admin/v1/credentials/cred_01900000000070008000000000000001/rotate";
    let rotated = operator.call_json(Method::POST, rotate, "{}").await;
    expect_error(&rotated, 409, "INVALID_ROW_HMAC");
    expect_success(&partner.get("/wallets").await, 200);

    execute(
        &mut attacker,
        format!("UPDATE partners SET allowlist = '{{0.0.0.0/0}}' WHERE partner_id = '{id}'"),
    )
    .await;
    let change = json!({ "cancel_window_s": 60 }).to_string();
    let path = format!("/admin/v1/partners/{}", partner.partner_id);
    let laundered = operator.call_json(Method::PATCH, &path, change).await;
    expect_error(&laundered, 409, "INVALID_ROW_HMAC");
    // The node has loaded the partner before its row was changed.
    eventually("the suspension", WAIT_TIMEOUT, async || {
        (partner.get("/wallets").await.status == 403).then_some(())
    })
    .await;
    assert_eq!(service.stop(), Some(0));
    service.restart();
    expect_error(&partner.get("/wallets").await, 403, "PARTNER_SUSPENDED");
    drop(service);
    database.remove().await;
}

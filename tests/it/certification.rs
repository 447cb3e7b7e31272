//! Certification checklist of a partner's client in the sandbox.

use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use vouchsafe_api_client::RequestFailure;
use vouchsafe_api_client::partner::PartnerClient;

use crate::commands::{run_error, run_json, run_ok};
use crate::webhook_certification::pass_webhook_checks;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    id_of, shared, unique,
};

const LOST_RESPONSE_ORDER: &str =
    r#"{"items":[{"product_id":"sbx-lost-response","denomination":25,"quantity":1}]}"#;

/// One voucher from stock and one whose vendor takes a minute.
const PARTIAL_ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1},
    {"product_id":"sbx-slow","denomination":25,"quantity":1}]}"#;

/// Returns the state of a check.
pub(crate) fn state<'a>(checklist: &'a Value, point: &str) -> &'a str {
    let mut points = checklist["checks"].as_array().unwrap().iter();
    let found = points.find(|found| found["check"] == point).unwrap();
    assert_eq!(found["at"].is_null(), found["state"] == "NOT_SEEN", "{found}");
    found["state"].as_str().unwrap()
}

/// Waits until the partner sees this state.
pub(crate) async fn wait_for_state(partner: &mut Partner, point: &str, expected: &str) {
    let is_reached = async || (state(&partner.read("/certification").await, point) == expected).then_some(());
    eventually(&format!("{point} is {expected}"), WAIT_TIMEOUT, is_reached).await;
}

/// Places an order whose response is lost.
async fn place_order_with_lost_response(partner: &Partner, base_url: &str, key: &str) {
    let mut client = PartnerClient::new(base_url, partner.client.credentials().clone()).unwrap();
    let is_lost = async || match client.order(key, LOST_RESPONSE_ORDER).await {
        Err(RequestFailure::Unknown(_)) => Some(()),
        // Retry on a busy machine.
        Ok(response) if response.status == 503 => None,
        other => panic!("{other:?}"),
    };
    eventually("the response to be lost", WAIT_TIMEOUT, is_lost).await;
}

#[tokio::test]
async fn lost_response_repeated_under_same_key_passes() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let [first, second] = [unique("key"), unique("key")];
    place_order_with_lost_response(&partner, &shared().base_url(), &first).await;
    place_order_with_lost_response(&partner, &shared().base_url(), &second).await;
    wait_for_state(&mut partner, "LOST_RESPONSE", "FAILED").await;
    expect_success(&partner.send_text(&second, LOST_RESPONSE_ORDER).await, 201);
    wait_for_state(&mut partner, "LOST_RESPONSE", "PASSED").await;
}

/// Sends an order with a wrong signature. Variant 1 repeats it unchanged.
async fn send_wrong_signature(partner: &mut Partner, variant: u8) -> Value {
    let mut headers = partner.headers("/api/v1/orders", LOST_RESPONSE_ORDER.as_bytes());
    let time = headers["x-timestamp"].to_str().unwrap();
    let wrong = format!("t={time},v1={}", hex::encode([variant; 32]));
    headers.insert("x-signature", HeaderValue::from_str(&wrong).unwrap());
    let repeated = headers.clone();
    let response = partner.post(headers, LOST_RESPONSE_ORDER).await;
    expect_error(&response, 401, "INVALID_SIGNATURE");
    if variant == 1 {
        expect_error(
            &partner.post(repeated, LOST_RESPONSE_ORDER).await,
            401,
            "INVALID_SIGNATURE",
        )
    } else {
        Value::Null
    }
}

#[tokio::test]
async fn wrong_signature_repeated_unchanged_fails() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    send_wrong_signature(&mut partner, 1).await;
    wait_for_state(&mut partner, "WRONG_SIGNATURE", "FAILED").await;
    send_wrong_signature(&mut partner, 2).await;
    let response = partner.send_signed(Method::POST, "/credentials/rotate", "").await;
    expect_success(&response, 201);
    wait_for_state(&mut partner, "WRONG_SIGNATURE", "PASSED").await;
}

/// Delivers an order in two parts, with codes fetched in between, and skips the vendor's minute.
async fn deliver_in_parts(partner: &mut Partner, database: &mut ServiceDatabase) -> String {
    let order = expect_success(&partner.send_text(&unique("key"), PARTIAL_ORDER).await, 202);
    let order_id = id_of(&order);
    let path = format!("/orders/{order_id}");
    wait_for_order_status(partner, &path, "PARTIALLY_DELIVERED").await;
    assert_eq!(partner.count_codes(&order_id).await, 1);
    let observed = "SELECT count(*) FROM certification_observations WHERE observation ->> 'order_id' = $1";
    wait_for_rows(database, observed, &order_id).await;
    // The vendor was polled once; the next poll is due when the minute is over.
    let requested = "SELECT count(*)
                   FROM purchases
                  WHERE 'ord_' || replace(order_id::text, '-', '') = $1
                    AND next_at > now() + interval '5 seconds'";
    wait_for_rows(database, requested, &order_id).await;
    let of = format!("order_id = '{}'", order_id.strip_prefix("ord_").unwrap());
    database
        .run(format!(
            "UPDATE purchases SET requested_at = requested_at - interval '1 minute', next_at = now() WHERE {of}"
        ))
        .await;
    wait_for_order_status(partner, &path, "DELIVERED").await;
    order_id
}

async fn wait_for_order_status(partner: &mut Partner, path: &str, status: &str) {
    let is_reached = async || (partner.read(path).await["status"] == status).then_some(());
    eventually(&format!("{path} is {status}"), WAIT_TIMEOUT, is_reached).await;
}

async fn wait_for_rows(database: &mut ServiceDatabase, rows: &'static str, order_id: &str) {
    let written = async || (database.count(rows, order_id).await > 0).then_some(());
    eventually(rows, WAIT_TIMEOUT, written).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_codes_fetched_again_pass() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut database = ServiceDatabase::of(&service).await;
    let mut partner = operator.add_partner("1000").await;
    let order_id = deliver_in_parts(&mut partner, &mut database).await;
    assert_eq!(
        state(&partner.read("/certification").await, "PARTIAL_CODES"),
        "NOT_SEEN",
        "the deadline has not passed"
    );
    // Pretend that ten minutes have passed.
    database
        .run(format!(
            "UPDATE orders
                SET timeline = jsonb_set(timeline, '{{-1,at}}', '\"2026-01-01T00:00:00.000000Z\"')
              WHERE order_id = '{}'",
            order_id.strip_prefix("ord_").unwrap()
        ))
        .await;
    wait_for_state(&mut partner, "PARTIAL_CODES", "FAILED").await;
    let order_id = deliver_in_parts(&mut partner, &mut database).await;
    assert_eq!(partner.count_codes(&order_id).await, 2);
    wait_for_state(&mut partner, "PARTIAL_CODES", "PASSED").await;
}

/// Creates a partner with a quota of one order per window and uses it up.
async fn add_partner_at_limit(operator: &mut Operator, window_s: u32) -> Partner {
    let mut partner = operator.add_partner("1000").await;
    let limits = json!({ "limits": { "orders": { "quota": 1, "window_s": window_s } } });
    operator.patch_partner(&partner, &limits).await;
    expect_success(&partner.send_text(&unique("key"), INSTANT_ORDER).await, 201);
    partner
}

const INSTANT_ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

#[tokio::test]
async fn rate_limited_client_that_pauses_passes() {
    let mut operator = Operator::of(shared());
    let mut pausing = add_partner_at_limit(&mut operator, 3).await;
    // On a slow machine the window may end before the second order.
    let limited = async || {
        let response = pausing.send_text(&unique("key"), INSTANT_ORDER).await;
        (response.status == 429).then(|| expect_error(&response, 429, "RATE_LIMIT_EXCEEDED"))
    };
    eventually("an order to be limited", WAIT_TIMEOUT, limited).await;
    // Requests of another class do not count: the partner that pauses reads its checklist meanwhile.
    wait_for_state(&mut pausing, "RATE_LIMIT", "PASSED").await;
    let mut not_pausing = add_partner_at_limit(&mut operator, 86_400).await;
    let failed = async || {
        expect_error(
            &not_pausing.send_text(&unique("key"), INSTANT_ORDER).await,
            429,
            "RATE_LIMIT_EXCEEDED",
        );
        (state(&not_pausing.read("/certification").await, "RATE_LIMIT") == "FAILED").then_some(())
    };
    eventually("the check to fail after an immediate retry", WAIT_TIMEOUT, failed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn observations_after_restart_are_retained() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("1000").await;
    let key = unique("key");
    place_order_with_lost_response(&partner, &service.base_url(), &key).await;
    send_wrong_signature(&mut partner, 2).await;
    let mut database = ServiceDatabase::of(&service).await;
    let rows = "SELECT count(*) FROM certification_observations WHERE $1 <> ''";
    let written = async || (database.count(rows, "any").await == 2).then_some(());
    eventually("both observations to be stored", WAIT_TIMEOUT, written).await;
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    let known = async || {
        expect_success(&partner.send_text(&key, LOST_RESPONSE_ORDER).await, 201);
        let checklist = partner.read("/certification").await;
        let points = ["LOST_RESPONSE", "WRONG_SIGNATURE"];
        points
            .iter()
            .all(|point| state(&checklist, point) == "PASSED")
            .then_some(())
    };
    eventually("both checks to pass after the restart", WAIT_TIMEOUT, known).await;
    // Shutdown writes the observations that are still in memory.
    let last = unique("key");
    place_order_with_lost_response(&partner, &service.base_url(), &last).await;
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let mut database = ServiceDatabase::of(&service).await;
    let is_lost =
        "SELECT count(DISTINCT at) FROM certification_observations WHERE observation ->> 'kind' = $1";
    assert_eq!(database.count(is_lost, "response_dropped").await, 2);
    service.assert_verified();
}

#[tokio::test]
async fn operators_read_and_restart_certification() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let path = format!("/admin/v1/partners/{}/certification", partner.partner_id);
    let empty = operator.get(&path).await;
    assert_eq!(
        empty,
        partner.read("/certification").await,
        "partner and operator must see the same"
    );
    assert_eq!(
        (&empty["passed"], &empty["passed_at"]),
        (&json!(false), &Value::Null)
    );
    let states: Vec<_> = empty["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["state"])
        .collect();
    assert_eq!(states, ["NOT_SEEN"; 6]);
    let key = unique("key");
    place_order_with_lost_response(&partner, &shared().base_url(), &key).await;
    expect_success(&partner.send_text(&key, LOST_RESPONSE_ORDER).await, 201);
    wait_for_state(&mut partner, "LOST_RESPONSE", "PASSED").await;
    // The commands show the same checklist.
    let id = partner.partner_id.clone();
    let table = run_ok(&["partner", "certification", &id]);
    let lines: Vec<_> = table.lines().collect();
    assert!(
        lines[0].starts_with("CHECK") && lines[0].ends_with("REASON"),
        "{table}"
    );
    assert!(
        lines[1].starts_with("LOST_RESPONSE") && lines[1].contains("PASSED"),
        "{table}"
    );
    let advised = |check: &str| lines.iter().any(|line| line.starts_with(&format!("{check}: ")));
    assert!(advised("WRONG_SIGNATURE") && !advised("LOST_RESPONSE"), "{table}");
    let exported = run_json(&["partner", "certification", &id]);
    assert_eq!(exported, operator.get(&path).await);
    run_ok(&["partner", "certification", &id, "--start-over"]);
    assert_eq!(partner.read("/certification").await, empty);
    let audit_log = operator
        .get(&format!(
            "/admin/v1/audit?action=certification.restart&subject={id}"
        ))
        .await;
    assert_eq!(audit_log["data"][0]["before"], json!({ "observations": 2 }));
    let unknown = "ptn_00000000000070008000000000000000";
    let stderr = run_error(&["partner", "certification", unknown]);
    assert!(stderr.contains("PARTNER_NOT_FOUND"), "{stderr}");
    let stderr = run_error(&["partner", "certification", unknown, "--start-over"]);
    assert!(stderr.contains("PARTNER_NOT_FOUND"), "{stderr}");
}

#[tokio::test]
async fn correct_client_passes_all_checks() {
    let mut operator = Operator::of(shared());
    let mut database = ServiceDatabase::of(shared()).await;
    let mut partner = add_partner_at_limit(&mut operator, 3).await;
    let response = partner.send_text(&unique("key"), INSTANT_ORDER).await;
    expect_error(&response, 429, "RATE_LIMIT_EXCEEDED");
    wait_for_state(&mut partner, "RATE_LIMIT", "PASSED").await;
    operator
        .patch_partner(&partner, &json!({ "limits": { "orders": null } }))
        .await;
    let key = unique("key");
    place_order_with_lost_response(&partner, &shared().base_url(), &key).await;
    expect_success(&partner.send_text(&key, LOST_RESPONSE_ORDER).await, 201);
    send_wrong_signature(&mut partner, 2).await;
    let order_id = deliver_in_parts(&mut partner, &mut database).await;
    expect_success(&partner.get_codes(&order_id).await, 200);
    pass_webhook_checks(&mut partner).await;
    let passed = async || {
        let checklist = partner.read("/certification").await;
        (checklist["passed"] == json!(true)).then_some(checklist)
    };
    let checklist = eventually("all checks to pass", WAIT_TIMEOUT, passed).await;
    // An operator of production records the certification.
    let record = json!({ "certified_at": checklist["passed_at"] });
    let path = format!("/admin/v1/partners/{}", partner.partner_id);
    let recorded = operator.send_json(Method::PATCH, &path, &record).await;
    assert_eq!(recorded["certified_at"], checklist["passed_at"]);
    // A later failure is a warning.
    send_wrong_signature(&mut partner, 1).await;
    let warned = async || {
        let checklist = partner.read("/certification").await;
        (checklist["warnings"][0]["check"] == "WRONG_SIGNATURE").then_some(checklist)
    };
    let warned = eventually("the failure to be a warning", WAIT_TIMEOUT, warned).await;
    let first_passed_at = &checklist["first_passed_at"];
    assert_eq!(
        (&warned["passed"], &warned["first_passed_at"]),
        (&json!(true), first_passed_at)
    );
    let stored = "SELECT count(*)
                    FROM certification_observations
                   WHERE observation ->> 'kind' = 'certification_passed'
                     AND 'ptn_' || replace(partner_id::text, '-', '') = $1";
    let is_stored = async || (database.count(stored, &partner.partner_id).await == 1).then_some(());
    eventually("the pass to be stored", WAIT_TIMEOUT, is_stored).await;
}

//! Changes that need a second operator: threshold, confirmation, refusal, withdrawal, and what the trail
//! shows.

use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, expect_error, expect_success, id_of, json_of, text_of, unique,
};

use crate::activation::activate;
use crate::commands::{run_with, utf8};
use crate::payouts::{payout_body, request_payout};

/// Prefix of the codes in these tests.
const CANARY: &str = "CNRYFOUREYES";

/// A service that requires a second operator above 1,000 USD, with two admins.
pub(crate) struct FourEyes {
    pub(crate) service: Instance,
    pub(crate) admin: Operator,
    pub(crate) sam: Operator,
}

impl FourEyes {
    pub(crate) fn start() -> Self {
        let service = Instance::start_with(&[("VOUCHSAFE_FOUR_EYES", "USD=1000")]);
        let output = run_with(
            &service,
            &["operator", "create", "sam", "--admin", "--json"],
            None,
        );
        let issued: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sam = Operator::of(&service).with_token(issued["token"].as_str().unwrap());
        Self {
            admin: Operator::of(&service),
            sam,
            service,
        }
    }

    /// Sends a change of the built-in admin that waits for a second operator. Returns the path of the
    /// request.
    pub(crate) async fn request(&mut self, method: Method, path: &str, body: &Value) -> String {
        let response = self.admin.call_json(method, path, body.to_string()).await;
        let request = expect_success(&response, 202);
        assert_eq!(
            (&request["status"], &request["requested_by"]),
            (&json!("WAITING"), &json!("admin"))
        );
        assert!(!text_of(&response).contains(CANARY), "{}", text_of(&response));
        let path = format!("/admin/v1/requests/{}", request["request_id"].as_str().unwrap());
        assert_eq!(response.headers["location"], *path);
        path
    }

    /// Confirms as the second admin and returns the response of the change.
    pub(crate) async fn confirm(&mut self, request: &str) -> vouchsafe_api_client::ApiResponse {
        self.sam
            .call_json(Method::POST, &format!("{request}/confirm"), "")
            .await
    }

    /// Makes a change as the built-in admin, confirmed by the second one if it waits for that. Adds action
    /// and subject of the audit entries of the request, and returns the response of the change.
    pub(crate) async fn change(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
        entries: &mut Vec<(&'static str, String)>,
    ) -> Value {
        let response = self.admin.call_json(method, path, body.to_string()).await;
        let made = json_of(&response);
        assert!(response.status.is_success(), "{path}: {made}");
        let Some(request_id) = made["request_id"].as_str().map(str::to_owned) else {
            return made;
        };
        let confirmed = self.confirm(&format!("/admin/v1/requests/{request_id}")).await;
        assert!(confirmed.status.is_success(), "{path}: {}", text_of(&confirmed));
        entries.extend([
            ("request.create", request_id.clone()),
            ("request.confirm", request_id),
        ]);
        json_of(&confirmed)
    }

    pub(crate) async fn status(&mut self, request: &str) -> String {
        self.admin.get(request).await["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

pub(crate) fn top_ups(partner: &Partner) -> String {
    format!("/admin/v1/partners/{}/wallets/USD/top-ups", partner.partner_id)
}

#[tokio::test]
async fn top_up_above_threshold_is_posted_once_another_operator_confirms_it() {
    let mut eyes = FourEyes::start();
    let mut partner = eyes.admin.add_partner("1000").await;
    let body = json!({ "amount": "1000.01", "reference": "wire-1" });
    let request = eyes.request(Method::POST, &top_ups(&partner), &body).await;
    assert_eq!(partner.balance("USD").await, "1000.00");
    let own = eyes
        .admin
        .call_json(Method::POST, &format!("{request}/confirm"), "")
        .await;
    expect_error(&own, 403, "OWN_CHANGE_REQUEST");
    let waiting = eyes.admin.get(&request).await;
    assert_eq!(
        (&waiting["status"], &waiting["preview"]),
        (
            &json!("WAITING"),
            &json!({ "before": { "balance": 1000.0 }, "after": { "balance": 2000.01 } })
        )
    );
    for (object, count) in [(&partner.partner_id, 1), (&"ptn_0".to_owned(), 0)] {
        let path = format!("/admin/v1/requests?status=WAITING&object={object}");
        let found = eyes.admin.get(&path).await;
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{found}");
    }

    let posted = expect_success(&eyes.confirm(&request).await, 201);
    assert_eq!(posted["reference"], "wire-1");
    assert_eq!(partner.balance("USD").await, "2000.01");
    let ended = eyes.admin.get(&request).await;
    assert_eq!(
        (&ended["status"], &ended["decided_by"], &ended["preview"]),
        (&json!("EXECUTED"), &json!("sam"), &Value::Null)
    );
    let again = eyes.confirm(&request).await;
    expect_error(&again, 409, "CHANGE_REQUEST_NOT_WAITING");
    assert!(
        text_of(&again).contains("sam has confirmed"),
        "{}",
        text_of(&again)
    );

    let id = request.rsplit('/').next().unwrap();
    let found = eyes.admin.get(&format!("/admin/v1/search?q={id}")).await;
    assert_eq!(
        (&found["data"][0]["kind"], &found["data"][0]["label"]),
        (&json!("request"), &json!("EXECUTED"))
    );
    let trail = eyes.admin.audit_entries(&format!("subject={id}")).await;
    let seen: Vec<_> = trail
        .iter()
        .map(|entry| {
            (
                entry["operator"].as_str().unwrap(),
                entry["action"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [("sam", "request.confirm"), ("admin", "request.create")]);
    assert_eq!(trail[0]["after"]["requested_by"], "admin");
    let posting = &eyes.admin.audit_entries("action=wallet.top_up&limit=1").await[0];
    assert_eq!(
        (&posting["operator"], &posting["trace_id"]),
        (&json!("admin"), &trail[0]["trace_id"])
    );
}

#[tokio::test]
async fn declined_withdrawn_and_refused_requests_change_nothing() {
    let mut eyes = FourEyes::start();
    let mut partner = eyes.admin.add_partner("10").await;
    let large = |reference: &str| json!({ "amount": "5000", "reference": reference });
    let declined = eyes.request(Method::POST, &top_ups(&partner), &large("a")).await;
    let body = json!({ "reason": "the statement has another amount" });
    let ended = eyes
        .sam
        .send_json(Method::POST, &format!("{declined}/decline"), &body)
        .await;
    assert_eq!(
        (&ended["status"], &ended["reason"]),
        (&json!("DECLINED"), &body["reason"])
    );
    expect_error(&eyes.confirm(&declined).await, 409, "CHANGE_REQUEST_NOT_WAITING");
    let withdrawn = eyes.request(Method::POST, &top_ups(&partner), &large("b")).await;
    eyes.admin
        .send_json(Method::POST, &format!("{withdrawn}/decline"), &json!({}))
        .await;
    let adjustments = top_ups(&partner).replace("top-ups", "adjustments");
    let body = json!({ "amount": "-1000.01", "reference": "c" });
    let refused = eyes.request(Method::POST, &adjustments, &body).await;
    expect_error(&eyes.confirm(&refused).await, 402, "INSUFFICIENT_FUNDS");
    let ended = eyes.admin.get(&refused).await;
    assert_eq!(
        (&ended["status"], &ended["error_code"]),
        (&json!("REFUSED"), &json!("INSUFFICIENT_FUNDS"))
    );
    assert_eq!(partner.balance("USD").await, "10.00");
    for (status, expected) in [("DECLINED", 2), ("REFUSED", 1), ("WAITING", 0)] {
        let page = eyes
            .admin
            .get(&format!("/admin/v1/requests?status={status}"))
            .await;
        assert_eq!(page["data"].as_array().unwrap().len(), expected, "{status}");
    }
    let invalid = json!({ "amount": "-5000", "reference": "d" }).to_string();
    let response = eyes
        .admin
        .call_json(Method::POST, &top_ups(&partner), invalid)
        .await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn fulfilment_waits_encrypted_and_is_delivered_after_confirmation() {
    let mut eyes = FourEyes::start();
    let sale = eyes.admin.add_product("vendor", 0).await;
    let mut partner = eyes.admin.add_partner("1000").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 202));
    let code = format!("{CANARY}-{}", unique("code"));
    let body = json!({ "vouchers": [{ "code": code, "pin": "0000", "expiry": "2099-12-31" }] });
    let path = format!("/admin/v1/orders/{order_id}/fulfil");
    let request = eyes.request(Method::POST, &path, &body).await;
    let shown = eyes.sam.get(&request).await;
    assert_eq!(shown["object"], order_id);
    assert_eq!(
        (&shown["details"]["product_id"], &shown["details"]["vouchers"]),
        (&json!(sale.product_id), &json!(1))
    );
    let delivered = expect_success(&eyes.confirm(&request).await, 200);
    assert_eq!(delivered["order"]["status"], "DELIVERED");
    assert_eq!(partner.count_codes(&order_id).await, 1);
    assert!(!eyes.service.log().contains(CANARY));
}

#[tokio::test]
async fn access_of_partners_and_operators_needs_second_operator() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let account = format!("/admin/v1/partners/{}", partner.partner_id);
    let suspend = json!({ "suspended": true });
    eyes.admin.send_json(Method::PATCH, &account, &suspend).await;
    for (method, path, body) in [
        (
            Method::PATCH,
            account.clone(),
            json!({ "allowlist": ["203.0.113.0/24"] }),
        ),
        (
            Method::PATCH,
            account.clone(),
            json!({ "approval_rule": { "first_orders": 3 } }),
        ),
        (
            Method::PATCH,
            account.clone(),
            json!({ "certified_at": "2026-01-02T03:04:05Z" }),
        ),
        (Method::POST, format!("{account}/credentials"), json!({})),
    ] {
        let before = eyes.admin.get(&account).await;
        let request = eyes.request(method, &path, &body).await;
        assert_eq!(eyes.admin.get(&account).await, before, "{path} {body}");
        let preview = eyes.admin.get(&request).await["preview"].take();
        for (field, value) in preview["before"].as_object().into_iter().flatten() {
            assert_eq!(*value, before[field], "{path} {body}");
            assert_ne!(*value, preview["after"][field], "{path} {body}");
        }
        assert_eq!(
            preview == Value::Null,
            path.ends_with("/credentials"),
            "{preview}"
        );
        let response = eyes.confirm(&request).await;
        assert!(response.status.is_success(), "{response:?}");
        assert_ne!(eyes.admin.get(&account).await, before, "{path} {body}");
    }
    let new = json!({ "name": "jo", "role": "operator" });
    let request = eyes.request(Method::POST, "/admin/v1/operators", &new).await;
    let created = expect_success(&eyes.confirm(&request).await, 201);
    assert_eq!(created["active"], false);
    let tokens = "/admin/v1/operators/jo/tokens";
    let visible = eyes.admin.call_json(Method::POST, tokens, "{}").await;
    expect_error(&visible, 422, "VALIDATION_FAILED");
    let token = format!("vso_{}", "4e".repeat(32));
    let hash = json!({ "token_sha256": hex::encode(Sha256::digest(&token)) });
    let request = eyes.request(Method::POST, tokens, &hash).await;
    let issued = expect_success(&eyes.confirm(&request).await, 201);
    assert_eq!(issued["token"], Value::Null, "only its operator knows it");
    let mut jo = Operator::of(&eyes.service).with_token(&token);
    activate(&mut jo, issued["activation_code"].as_str().unwrap()).await;
    let promotion = json!({ "role": "admin" });
    let request = eyes
        .request(Method::PATCH, "/admin/v1/operators/jo", &promotion)
        .await;
    assert_eq!(
        eyes.admin.get(&request).await["preview"],
        json!({ "before": { "role": "operator" }, "after": { "role": "admin" } })
    );
    let response = jo
        .call_json(Method::POST, &format!("{request}/confirm"), "")
        .await;
    expect_error(&response, 403, "FORBIDDEN");
    let disable = json!({ "disabled": true });
    eyes.sam
        .send_json(Method::PATCH, "/admin/v1/operators/jo", &disable)
        .await;
    let own = json!({});
    eyes.sam
        .send_json(Method::POST, "/admin/v1/operators/sam/tokens", &own)
        .await;
}

/// What cannot be done now is refused at once, not stored for a second operator.
#[tokio::test]
async fn approval_and_payout_wait_and_those_already_decided_are_refused() {
    let mut eyes = FourEyes::start();
    let sale = eyes.admin.add_stocked_product(2).await;
    let mut partner = eyes.admin.add_partner("1000").await;
    let account = format!("/admin/v1/partners/{}", partner.partner_id);
    let rule = json!({ "approval_rule": { "first_orders": 1 } });
    let request = eyes.request(Method::PATCH, &account, &rule).await;
    expect_success(&eyes.confirm(&request).await, 200);
    let order_id = id_of(&expect_success(&partner.order(&sale, 1).await, 202));
    let approve = format!("/admin/v1/orders/{order_id}/approve");
    let reason = json!({ "reason": "known buyer" });
    let request = eyes.request(Method::POST, &approve, &reason).await;
    let approved = expect_success(&eyes.confirm(&request).await, 200);
    assert_eq!(approved["status"], "DELIVERED");
    let again = eyes
        .admin
        .call_json(Method::POST, &approve, reason.to_string())
        .await;
    expect_error(&again, 409, "ORDER_NOT_AWAITING_APPROVAL");

    let requested = request_payout(&mut partner, &unique("key"), &payout_body("5")).await;
    let payout = expect_success(&requested, 202);
    let pay = format!("/admin/v1/payouts/{}/pay", payout["payout_id"].as_str().unwrap());
    let request = eyes
        .request(Method::POST, &pay, &json!({ "reference": "bank-1" }))
        .await;
    let paid = expect_success(&eyes.confirm(&request).await, 200);
    assert_eq!(paid["status"], "PAID");
    let again = eyes.admin.call_json(Method::POST, &pay, "{}").await;
    expect_error(&again, 409, "PAYOUT_NOT_PENDING");
}

#[tokio::test]
async fn request_of_disabled_operator_cannot_be_confirmed() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let body = json!({ "amount": "5000", "reference": "a" });
    let response = eyes
        .sam
        .call_json(Method::POST, &top_ups(&partner), body.to_string())
        .await;
    let request = expect_success(&response, 202);
    eyes.admin
        .send_json(
            Method::PATCH,
            "/admin/v1/operators/sam",
            &json!({ "disabled": true }),
        )
        .await;
    let confirm = format!(
        "/admin/v1/requests/{}/confirm",
        request["request_id"].as_str().unwrap()
    );
    let response = eyes.admin.call_json(Method::POST, &confirm, "").await;
    expect_error(&response, 409, "CHANGE_REQUEST_NOT_WAITING");
}

#[tokio::test]
async fn command_of_waiting_change_exits_with_4_and_names_the_next_command() {
    let mut eyes = FourEyes::start();
    let partner = eyes.admin.add_partner("0").await;
    let partner_id = &partner.partner_id;
    let arguments = ["wallet", "top-up", partner_id, "USD", "5000", "--reference", "a"];
    let output = run_with(&eyes.service, &arguments, None);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let (out, error) = (utf8(&output.stdout), utf8(&output.stderr));
    assert!(out.contains("WAITING") && out.contains("5000"), "{out}");
    let listed = eyes.admin.get("/admin/v1/requests?status=WAITING").await;
    let request_id = listed["data"][0]["request_id"].as_str().unwrap();
    assert!(
        error.contains(&format!("vouchsafe request confirm {request_id}")),
        "{error}"
    );
    let own = run_with(&eyes.service, &["request", "confirm", request_id], None);
    assert!(utf8(&own.stderr).contains("OWN_CHANGE_REQUEST"), "{own:?}");
    let table = utf8(&run_with(&eyes.service, &["request", "list"], None).stdout);
    assert!(table.contains(request_id) && table.contains("TOP_UP"), "{table}");
    let arguments = ["request", "decline", request_id, "--reason", "a mistake"];
    let declined = utf8(&run_with(&eyes.service, &arguments, None).stdout);
    assert!(
        declined.contains("DECLINED") && declined.contains("a mistake"),
        "{declined}"
    );
}

//! Activation of accounts and tokens of operators that a second operator has confirmed.

use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vouchsafe_test_harness::{Operator, expect_error, expect_success};

use crate::change_requests::FourEyes;

pub(crate) async fn activate(operator: &mut Operator, code: &str) -> Value {
    let body = json!({ "activation_code": code }).to_string();
    let activated = operator.call_json(Method::POST, "/activation", body).await;
    expect_success(&activated, 200)
}

/// The requester of a token can know its text. Without the code of the confirming operator it is of no use,
/// and the code is of none without the token: neither operator holds both.
#[tokio::test]
async fn token_of_another_operator_needs_the_code_of_the_confirming_operator() {
    let mut eyes = FourEyes::start();
    let new = json!({ "name": "jo", "role": "admin" });
    let request = eyes.request(Method::POST, "/admin/v1/operators", &new).await;
    expect_success(&eyes.confirm(&request).await, 201);
    // For a new account and for one that is in use.
    for (round, active) in [(0_u8, false), (1, true)] {
        assert_eq!(account(&mut eyes, "jo").await["active"], active);
        let token = format!("vso_{}", hex::encode([0x40 + round; 32]));
        let hash = json!({ "token_sha256": hex::encode(Sha256::digest(&token)) });
        let path = "/admin/v1/operators/jo/tokens";
        let request = eyes.request(Method::POST, path, &hash).await;
        let issued = expect_success(&eyes.confirm(&request).await, 201);
        assert_eq!(
            (&issued["token"], &issued["active"]),
            (&Value::Null, &json!(false))
        );
        let code = issued["activation_code"].as_str().unwrap();
        // The requester, who may have generated the token.
        let mut requester = Operator::of(&eyes.service).with_token(&token);
        let refused = requester.call_json(Method::GET, "/admin/v1/partners", "").await;
        expect_error(&refused, 401, "INVALID_CREDENTIALS");
        let body = json!({ "activation_code": code }).to_string();
        let other_code = json!({ "activation_code": format!("vsa_{}", "7".repeat(64)) }).to_string();
        for (holder, body) in [(&mut requester, &other_code), (&mut eyes.sam, &body)] {
            let refused = holder.call_json(Method::POST, "/activation", body.clone()).await;
            expect_error(&refused, 401, "INVALID_CREDENTIALS");
        }
        let shown = eyes.admin.get(&request).await;
        let listed = eyes.admin.get(path).await;
        let audited = eyes.admin.audit_entries("limit=50").await;
        for text in [shown.to_string(), listed.to_string(), json!(audited).to_string()] {
            assert!(!text.contains(&code[4..]), "{text}");
        }
        assert!(!eyes.service.log().contains(&code[4..]));

        let mut jo = Operator::of(&eyes.service).with_token(&token);
        assert_eq!(activate(&mut jo, code).await["active"], true);
        jo.get("/admin/v1/partners").await;
        let again = jo.call_json(Method::POST, "/activation", body).await;
        expect_error(&again, 401, "INVALID_CREDENTIALS");
    }
}

async fn account(eyes: &mut FourEyes, name: &str) -> Value {
    let page = eyes.admin.get("/admin/v1/operators").await;
    let accounts = page["data"].as_array().unwrap();
    let found = accounts.iter().find(|account| account["name"] == name);
    found.unwrap().clone()
}

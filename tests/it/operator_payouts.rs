//! Payout administration with unknown ids and invalid requests.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::commands::{run_error, run_ok};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared};

const UNKNOWN_PAYOUT: &str = "po_00000000000000000000000000000000";

async fn get_payouts(operator: &mut Operator, path: &str) -> ApiResponse {
    let path = format!("/admin/v1/payouts{path}");
    operator.call_json(Method::GET, &path, "").await
}

async fn post_decision(operator: &mut Operator, verb: &str, payout_id: &str, body: &str) -> ApiResponse {
    let path = format!("/admin/v1/payouts/{payout_id}/{verb}");
    operator.call_json(Method::POST, &path, body.to_owned()).await
}

#[tokio::test]
async fn payout_list_without_payouts_is_empty() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("0").await;
    let unknown = json!({ "data": [], "has_more": false, "next_cursor": null });
    for filter in ["", "&status=PENDING", "&status=FAILED&limit=100"] {
        let list = get_payouts(
            &mut operator,
            &format!("?partner_id={}{filter}", partner.partner_id),
        )
        .await;
        assert_eq!(expect_success(&list, 200), unknown, "{filter}");
    }
    assert!(run_ok(&["payout", "list", "--partner", &partner.partner_id]).contains("(no entries)"));
}

#[tokio::test]
async fn invalid_payout_filter_is_rejected() {
    let mut operator = Operator::of(shared());
    for (query, field) in [
        ("?status=paid", "status"),
        ("?partner_id=somebody", "partner_id"),
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?reference=november", "reference"),
        ("?status=PAID&status=PAID", "status"),
    ] {
        let error = expect_error(&get_payouts(&mut operator, query).await, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{query}");
    }
    let response = get_payouts(&mut operator, "?cursor=AAAA").await;
    expect_error(&response, 400, "INVALID_CURSOR");
}

#[tokio::test]
async fn unknown_payout_returns_404() {
    let mut operator = Operator::of(shared());
    for unknown in [UNKNOWN_PAYOUT, "po_1", "ord_00000000000000000000000000000000"] {
        let response = get_payouts(&mut operator, &format!("/{unknown}")).await;
        expect_error(&response, 404, "PAYOUT_NOT_FOUND");
        for verb in ["pay", "reject", "fail"] {
            for body in ["", "{}", r#"{"reason":"so","reference":"bank-1"}"#] {
                let response = post_decision(&mut operator, verb, unknown, body).await;
                expect_error(&response, 404, "PAYOUT_NOT_FOUND");
            }
        }
    }
    let stderr = run_error(&["payout", "pay", UNKNOWN_PAYOUT, "--reference", "bank-1"]);
    assert!(
        stderr.contains("PAYOUT_NOT_FOUND") && stderr.contains("vouchsafe payout list"),
        "{stderr}"
    );
}

#[tokio::test]
async fn invalid_payout_decision_is_rejected() {
    let mut operator = Operator::of(shared());
    let (reason, reference) = ("x".repeat(501), "x".repeat(129));
    for verb in ["pay", "reject", "fail"] {
        for (body, field) in [
            (json!({ "reason": "" }), "reason"),
            (json!({ "reason": reason }), "reason"),
            (json!({ "reference": " " }), "reference"),
            (json!({ "reference": reference }), "reference"),
            (json!({ "amount": 1 }), "amount"),
        ] {
            let response = post_decision(&mut operator, verb, UNKNOWN_PAYOUT, &Value::to_string(&body)).await;
            let error = expect_error(&response, 422, "VALIDATION_FAILED");
            assert_eq!(error["details"][0]["field"], field, "{body}");
        }
        expect_error(
            &post_decision(&mut operator, verb, UNKNOWN_PAYOUT, "no object").await,
            400,
            "MALFORMED_REQUEST",
        );
    }
}

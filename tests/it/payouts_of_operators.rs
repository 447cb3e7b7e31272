//! What are operators told of payouts that are not there, and of words that say nothing?

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_load::client::Answer;

use crate::commands::{complaint, told};
use crate::support::{Operator, accepted, refused, shared};

const UNKNOWN: &str = "po_00000000000000000000000000000000";

async fn get(operator: &mut Operator, path: &str) -> Answer {
    let path = format!("/admin/v1/payouts{path}");
    operator.call(Method::GET, &path, "application/json", "").await
}

async fn say(operator: &mut Operator, verb: &str, payout_id: &str, body: &str) -> Answer {
    let path = format!("/admin/v1/payouts/{payout_id}/{verb}");
    operator
        .call(Method::POST, &path, "application/json", body.to_owned())
        .await
}

#[tokio::test]
async fn a_partner_without_payouts_has_an_empty_list() {
    let mut operator = Operator::of(shared());
    let partner = operator.partner("0").await;
    let nothing = json!({ "data": [], "has_more": false, "next_cursor": null });
    for filter in ["", "&status=PENDING", "&status=FAILED&limit=100"] {
        let list = get(
            &mut operator,
            &format!("?partner_id={}{filter}", partner.partner_id),
        )
        .await;
        assert_eq!(accepted(&list, 200), nothing, "{filter}");
    }
    assert!(told(&["payout", "list", "--partner", &partner.partner_id]).contains("(nothing)"));
}

#[tokio::test]
async fn a_list_that_cannot_be_is_refused() {
    let mut operator = Operator::of(shared());
    for (query, field) in [
        ("?status=paid", "status"),
        ("?partner_id=somebody", "partner_id"),
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?reference=november", "reference"),
        ("?status=PAID&status=PAID", "status"),
    ] {
        let error = refused(&get(&mut operator, query).await, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{query}");
    }
    refused(&get(&mut operator, "?cursor=AAAA").await, 400, "INVALID_CURSOR");
}

#[tokio::test]
async fn a_payout_that_is_not_there_is_404() {
    let mut operator = Operator::of(shared());
    for nothing in [UNKNOWN, "po_1", "ord_00000000000000000000000000000000"] {
        refused(
            &get(&mut operator, &format!("/{nothing}")).await,
            404,
            "PAYOUT_NOT_FOUND",
        );
        for verb in ["pay", "reject", "fail"] {
            for body in ["", "{}", r#"{"reason":"so","reference":"bank-1"}"#] {
                refused(
                    &say(&mut operator, verb, nothing, body).await,
                    404,
                    "PAYOUT_NOT_FOUND",
                );
            }
        }
    }
    let said = complaint(&["payout", "pay", UNKNOWN, "--reference", "bank-1"]);
    assert!(
        said.contains("PAYOUT_NOT_FOUND") && said.contains("vouchsafe payout list"),
        "{said}"
    );
}

#[tokio::test]
async fn a_word_out_of_bounds_is_refused() {
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
            let answer = say(&mut operator, verb, UNKNOWN, &Value::to_string(&body)).await;
            let error = refused(&answer, 422, "VALIDATION_FAILED");
            assert_eq!(error["details"][0]["field"], field, "{body}");
        }
        refused(
            &say(&mut operator, verb, UNKNOWN, "no object").await,
            400,
            "MALFORMED_REQUEST",
        );
    }
}

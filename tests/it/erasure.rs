//! Erasure of personal data of orders, payouts and partners.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_success, id_of, order_body, shared, stages, text_of, unique,
};

use crate::approvals::{
    add_manual_product_under_approval, assert_verified, decide, place_order_awaiting_approval,
};
use crate::change_requests::FourEyes;
use crate::payouts::{payout_body, request_payout};

const PERSON: &str = "Erika Mustermann";

async fn erase(operator: &mut Operator, path: &str) -> ApiResponse {
    let body = json!({ "reason": "request of 24 November" }).to_string();
    operator
        .call_json(Method::POST, &format!("/admin/v1/{path}/erase"), body)
        .await
}

async fn order_about_a_person(partner: &mut Partner, sale: &Sale) -> String {
    let mut body = order_body(sale, 1);
    body["reference"] = PERSON.into();
    body["metadata"] = json!({ "recipient": PERSON });
    id_of(&expect_success(&partner.send(&unique("key"), &body).await, 201))
}

async fn audited(operator: &mut Operator, action: &str, subject: &str) -> Vec<Value> {
    let entries = operator
        .audit_entries(&format!("subject={subject}&action={action}"))
        .await;
    entries.into_iter().map(|entry| entry["after"].clone()).collect()
}

#[tokio::test]
async fn erased_order_keeps_money_and_vouchers_and_no_text() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = order_about_a_person(&mut partner, &sale).await;
    let path = format!("/orders/{order_id}");
    let before = partner.read(&path).await;

    let erased = expect_success(&erase(&mut operator, &path[1..]).await, 200);
    assert_eq!(erased, json!({ "orders": 1, "payouts": 0, "next_after": null }));
    let after = partner.read(&path).await;
    assert_eq!(
        (&after["reference"], &after["metadata"]),
        (&Value::Null, &Value::Null)
    );
    for field in ["vouchers", "items", "total_amount", "status", "created_at"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_events_are_erased(&mut operator, &mut partner, &path).await;
    let found = partner.read("/orders?reference=Erika%20Mustermann").await;
    assert_eq!(found["data"], json!([]));
    let repeated = expect_success(&erase(&mut operator, &path[1..]).await, 200);
    assert_eq!(repeated["orders"], 0);
    let entries = audited(&mut operator, "order.erase", &order_id).await;
    assert_eq!(
        entries,
        [json!({ "orders": 1, "payouts": 0, "reason": "request of 24 November" })]
    );

    // What a later change writes is erased, too.
    let cancelled = expect_success(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(cancelled["status"], "REFUNDED");
    let order = partner.read(&path).await;
    assert!(
        stages(&order).iter().all(|(_, _, reason)| reason.is_none()),
        "{order}"
    );
    assert_eq!(partner.usd_balances().await, (100.0, 0.0));
    assert_events_are_erased(&mut operator, &mut partner, &path).await;
    assert_verified().await;
}

/// In the feed, at the order, and for operators.
async fn assert_events_are_erased(operator: &mut Operator, partner: &mut Partner, order: &str) {
    for events in [
        partner.read("/events?limit=100").await,
        operator.get(&format!("/admin/v1{order}/events")).await,
    ] {
        let events = events["data"].as_array().unwrap();
        assert!(events.len() >= 3, "{events:?}");
        for event in events {
            let text = event.to_string();
            assert!(!text.contains(PERSON) && !text.contains("says Ann"), "{text}");
        }
    }
}

#[tokio::test]
async fn open_order_is_erased_only_once_it_is_closed() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = add_manual_product_under_approval(&mut operator, 1).await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 1).await;
    let path = format!("orders/{order_id}");
    expect_error(&erase(&mut operator, &path).await, 409, "NOT_CLOSED");
    expect_success(&decide(&mut operator, "reject", &order_id).await, 200);
    assert_eq!(
        expect_success(&erase(&mut operator, &path).await, 200)["orders"],
        1
    );
    let order = partner.read(&format!("/{path}")).await;
    assert!(
        stages(&order).iter().all(|(_, _, reason)| reason.is_none()),
        "{order}"
    );
    assert_verified().await;
}

#[tokio::test]
async fn erased_payout_keeps_its_amount_and_no_destination() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let response = request_payout(&mut partner, &unique("key"), &payout_body("30")).await;
    let payout = expect_success(&response, 202);
    let payout_id = payout["payout_id"].as_str().unwrap();
    let path = format!("payouts/{payout_id}");
    expect_error(&erase(&mut operator, &path).await, 409, "NOT_CLOSED");
    let paid = json!({ "reason": PERSON, "reference": PERSON });
    operator
        .send_json(Method::POST, &format!("/admin/v1/{path}/pay"), &paid)
        .await;
    assert_eq!(
        expect_success(&erase(&mut operator, &path).await, 200)["payouts"],
        1
    );
    for erased in [
        partner.read(&format!("/{path}")).await,
        operator.get(&format!("/admin/v1/{path}")).await,
    ] {
        assert_eq!(erased["destination"], json!({ "type": "bank_account" }));
        assert_eq!(
            (&erased["amount"], &erased["status"]),
            (&json!(30.0), &json!("PAID"))
        );
        let text = erased.to_string();
        assert!(!text.contains(PERSON) && !text.contains("march"), "{text}");
    }
    assert_verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_payout_is_not_shown_by_the_request_of_its_decision() {
    let mut operators = FourEyes::start();
    let mut partner = operators.admin.add_partner("900").await;
    let response = request_payout(&mut partner, &unique("key"), &payout_body("5")).await;
    let path = format!(
        "payouts/{}",
        expect_success(&response, 202)["payout_id"].as_str().unwrap()
    );
    let paid = json!({ "reason": PERSON, "reference": PERSON });
    let request = operators
        .request(Method::POST, &format!("/admin/v1/{path}/pay"), &paid)
        .await;
    expect_success(&operators.confirm(&request).await, 200);
    assert!(operators.admin.get(&request).await.to_string().contains(PERSON));
    let body = json!({ "reason": "request of 24 November" });
    operators
        .admin
        .send_json(Method::POST, &format!("/admin/v1/{path}/erase"), &body)
        .await;
    let shown = operators.admin.get(&request).await;
    assert_eq!(
        (&shown["details"], &shown["status"]),
        (&json!({}), &json!("EXECUTED"))
    );
}

#[tokio::test]
async fn erasure_of_a_partner_leaves_out_what_is_open_and_other_partners() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("200").await;
    let mut other = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(3).await;
    let closed = [
        order_about_a_person(&mut partner, &sale).await,
        order_about_a_person(&mut partner, &sale).await,
    ];
    let others = order_about_a_person(&mut other, &sale).await;
    let manual = add_manual_product_under_approval(&mut operator, 1).await;
    let mut body = order_body(&manual, 1);
    body["reference"] = PERSON.into();
    let open = id_of(&expect_success(&partner.send(&unique("key"), &body).await, 202));
    request_payout(&mut partner, &unique("key"), &payout_body("30")).await;

    let path = format!("partners/{}", partner.partner_id);
    let erased = expect_success(&erase(&mut operator, &path).await, 200);
    assert_eq!(erased, json!({ "orders": 2, "payouts": 0, "next_after": null }));
    for order_id in &closed {
        let order = partner.get(&format!("/orders/{order_id}")).await;
        assert!(!text_of(&order).contains(PERSON), "{}", text_of(&order));
    }
    assert_eq!(
        partner.read(&format!("/orders/{open}")).await["reference"],
        PERSON
    );
    assert_eq!(
        other.read(&format!("/orders/{others}")).await["reference"],
        PERSON
    );
    let entries = audited(&mut operator, "personal_data.erase", &partner.partner_id).await;
    assert_eq!(entries.len(), 1);
    let repeated = expect_success(&erase(&mut operator, &path).await, 200);
    assert_eq!(repeated["orders"], 0);
    let unknown = erase(&mut operator, "partners/ptn_00000000000000000000000000000000").await;
    expect_error(&unknown, 404, "PARTNER_NOT_FOUND");
    assert_verified().await;
}

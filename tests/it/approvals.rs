//! Approval and rejection of orders by operators.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::commands::run_json;
use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_success, id_of, line_counts, shared, stages, unique,
};

const UNAVAILABLE_REMAINDER: &str = "the rest is not available";

const UNAVAILABLE_ORDER: &str = "no voucher of the order is available";

const UNKNOWN_ORDER: &str = "ord_00000000000000000000000000000000";

async fn post_decision(operator: &mut Operator, verb: &str, order_id: &str, body: &Value) -> ApiResponse {
    let path = format!("/admin/v1/orders/{order_id}/{verb}");
    operator.call_json(Method::POST, &path, body.to_string()).await
}

pub(crate) async fn decide(operator: &mut Operator, verb: &str, order_id: &str) -> ApiResponse {
    post_decision(
        operator,
        verb,
        order_id,
        &json!({ "reason": format!(" {verb}, says Ann ") }),
    )
    .await
}

/// Creates a product that needs approval; a manual vendor fills the shortfall.
pub(crate) async fn add_manual_product_under_approval(operator: &mut Operator, vouchers: usize) -> Sale {
    let vendor = unique("by-hand");
    operator
        .send_json(
            Method::PUT,
            &format!("/admin/v1/vendors/{vendor}"),
            &json!({ "adapter": "manual" }),
        )
        .await;
    let changes = json!({ "approval": "always", "route": "vendor", "vendor": vendor });
    operator.add_product_with(changes, "25", vouchers).await
}

/// Creates a product that needs approval and is sold from stock only.
async fn add_stocked_product_under_approval(operator: &mut Operator, vouchers: usize) -> Sale {
    operator
        .add_product_with(json!({ "approval": "always" }), "25", vouchers)
        .await
}

/// Places an order that waits for approval and returns its id.
pub(crate) async fn place_order_awaiting_approval(
    partner: &mut Partner,
    sale: &Sale,
    quantity: u32,
) -> String {
    let order = expect_success(&partner.order(sale, quantity).await, 202);
    assert_eq!(order["pending_reason"], "APPROVAL");
    id_of(&order)
}

/// Returns the audited decisions on an order, oldest first.
pub(crate) async fn decisions_in_audit_log(operator: &mut Operator, order_id: &str) -> Vec<Value> {
    let entries = operator.audit_entries(&format!("subject={order_id}")).await;
    let decisions = entries.into_iter().rev();
    decisions
        .filter(|entry| entry["action"] != "codes.retrieve")
        .collect()
}

pub(crate) async fn assert_verified() {
    let checked = tokio::task::spawn_blocking(|| shared().assert_verified());
    checked.await.unwrap();
}

const APPROVED: (&str, &str, Option<&str>) = ("PROCESSING", "operator", Some("approve, says Ann"));
const ACCEPTED: (&str, &str, Option<&str>) = ("PENDING", "partner", None);

#[tokio::test]
async fn approved_order_in_stock_is_delivered() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 2).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 2).await;
    assert_eq!(partner.usd_balances().await, (50.0, 50.0));
    let order = expect_success(&decide(&mut operator, "approve", &order_id).await, 200);
    assert_eq!(
        stages(&order),
        [ACCEPTED, APPROVED, ("DELIVERED", "system", None)]
    );
    assert_eq!((line_counts(&order), &order["closed"]), ([2, 0, 0], &json!(true)));
    assert_eq!(order["partner_id"], json!(partner.partner_id));
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
    assert_eq!(operator.get(&format!("/admin/v1/orders/{order_id}")).await, order);
    let fetched = partner.read(&format!("/orders/{order_id}")).await;
    assert_eq!(
        (&fetched["status"], &fetched["timeline"]),
        (&json!("DELIVERED"), &order["timeline"])
    );
    assert_eq!(partner.count_codes(&order_id).await, 2);
    let audited = decisions_in_audit_log(&mut operator, &order_id).await;
    let [entry] = &audited[..] else {
        panic!("{audited:?}")
    };
    assert!(entry["trace_id"].is_string(), "{entry}");
    insta::assert_json_snapshot!(
        entry,
        { ".audit_id" => "[id]", ".at" => "[time]", ".subject" => "[id]", ".partner_id" => "[id]", ".trace_id" => "[id]" },
        @r#"
        {
          "action": "order.approve",
          "after": {
            "closed": true,
            "currency": "USD",
            "reason": "approve, says Ann",
            "refunded": 0.0,
            "status": "DELIVERED"
          },
          "at": "[time]",
          "audit_id": "[id]",
          "before": {
            "closed": false,
            "currency": "USD",
            "refunded": 0.0,
            "status": "PENDING"
          },
          "operator": "admin",
          "partner_id": "[id]",
          "subject": "[id]",
          "trace_id": "[id]"
        }
        "#
    );
    assert_verified().await;
}

#[tokio::test]
async fn approved_order_with_unavailable_remainder_is_refunded() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 3).await;
    let mut partner = operator.add_partner("200").await;
    // Approval checks stock without reserving it: three orders wait for three vouchers.
    let [available, partial, none] = [
        place_order_awaiting_approval(&mut partner, &sale, 2).await,
        place_order_awaiting_approval(&mut partner, &sale, 3).await,
        place_order_awaiting_approval(&mut partner, &sale, 1).await,
    ];
    assert_eq!(partner.usd_balances().await, (50.0, 150.0));
    let available = expect_success(&decide(&mut operator, "approve", &available).await, 200);
    assert_eq!(available["status"], "DELIVERED");
    let partial = expect_success(&decide(&mut operator, "approve", &partial).await, 200);
    assert_eq!(
        stages(&partial),
        [
            ACCEPTED,
            APPROVED,
            ("PARTIALLY_DELIVERED", "system", None),
            ("PARTIALLY_DELIVERED", "system", Some(UNAVAILABLE_REMAINDER))
        ]
    );
    assert_eq!(
        (line_counts(&partial), &partial["closed"]),
        ([1, 0, 2], &json!(true))
    );
    assert_eq!(
        (&partial["refunded_amount"], &partial["pending_reason"]),
        (&json!(50.0), &Value::Null)
    );
    assert_eq!(partner.usd_balances().await, (100.0, 25.0));
    let none = expect_success(&decide(&mut operator, "approve", &none).await, 200);
    assert_eq!(
        stages(&none),
        [
            ACCEPTED,
            APPROVED,
            ("CANCELLED", "system", Some(UNAVAILABLE_ORDER)),
            ("REFUNDED", "system", None)
        ]
    );
    assert_eq!(
        (line_counts(&none), &none["refunded_amount"]),
        ([0, 0, 1], &json!(25.0))
    );
    assert_eq!(partner.usd_balances().await, (125.0, 0.0));
    assert_verified().await;
}

#[tokio::test]
async fn approved_order_with_vendor_remainder_waits_for_vendor() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    for (in_stock, expected) in [
        (0, vec![ACCEPTED, APPROVED]),
        (
            1,
            vec![ACCEPTED, APPROVED, ("PARTIALLY_DELIVERED", "system", None)],
        ),
    ] {
        let sale = add_manual_product_under_approval(&mut operator, in_stock).await;
        let order_id = place_order_awaiting_approval(&mut partner, &sale, 3).await;
        let order = expect_success(&decide(&mut operator, "approve", &order_id).await, 200);
        assert_eq!(stages(&order), expected);
        let delivered = in_stock as u64;
        assert_eq!(line_counts(&order), [delivered, 3 - delivered, 0]);
        assert_eq!(
            (
                &order["pending_reason"],
                &order["closed"],
                &order["refunded_amount"]
            ),
            (&json!("VENDOR"), &json!(false), &json!(0.0))
        );
    }
    assert_eq!(partner.usd_balances().await, (850.0, 125.0));
    assert_verified().await;
}

#[tokio::test]
async fn rejected_order_is_refunded() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 1).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 1).await;
    let order = expect_success(&decide(&mut operator, "reject", &order_id).await, 200);
    assert_eq!(
        stages(&order),
        [
            ACCEPTED,
            ("CANCELLED", "operator", Some("reject, says Ann")),
            ("REFUNDED", "operator", None)
        ]
    );
    assert_eq!(
        (line_counts(&order), &order["refunded_amount"]),
        ([0, 0, 0], &json!(25.0))
    );
    assert_eq!(partner.usd_balances().await, (100.0, 0.0));
    let audited = decisions_in_audit_log(&mut operator, &order_id).await;
    let [entry] = &audited[..] else {
        panic!("{audited:?}")
    };
    assert_eq!(
        (
            &entry["action"],
            &entry["before"]["status"],
            &entry["after"]["refunded"]
        ),
        (&json!("order.reject"), &json!("PENDING"), &json!(25.0))
    );
    assert_verified().await;
}

#[tokio::test]
async fn order_not_awaiting_approval_cannot_be_decided() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let [sale, under_approval] = [
        operator.add_stocked_product(1).await,
        add_stocked_product_under_approval(&mut operator, 2).await,
    ];
    let delivered = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let bought = operator.add_product("vendor", 0).await;
    let unapproved = id_of(&expect_success(&partner.order(&bought, 1).await, 202));
    let [approved, rejected] = [
        place_order_awaiting_approval(&mut partner, &under_approval, 1).await,
        place_order_awaiting_approval(&mut partner, &under_approval, 1).await,
    ];
    expect_success(&decide(&mut operator, "approve", &approved).await, 200);
    expect_success(&decide(&mut operator, "reject", &rejected).await, 200);
    for order_id in [&delivered, &unapproved, &approved, &rejected] {
        for verb in ["approve", "reject"] {
            let response = decide(&mut operator, verb, order_id).await;
            expect_error(&response, 409, "ORDER_NOT_AWAITING_APPROVAL");
        }
    }
    for verb in ["approve", "reject", "cancel"] {
        for unknown in [UNKNOWN_ORDER, "ord_1", &partner.partner_id] {
            expect_error(
                &decide(&mut operator, verb, unknown).await,
                404,
                "ORDER_NOT_FOUND",
            );
        }
    }
    for unknown in [&delivered, &unapproved] {
        assert_eq!(
            decisions_in_audit_log(&mut operator, unknown).await.len(),
            0,
            "no decision must be recorded"
        );
    }
}

#[tokio::test]
async fn decision_without_reason_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 1).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 1).await;
    let long = "ß".repeat(501);
    for verb in ["approve", "reject", "cancel"] {
        for (body, field) in [
            (json!({}), "reason"),
            (json!({ "reason": null }), "reason"),
            (json!({ "reason": " " }), "reason"),
            (json!({ "reason": "a\nb" }), "reason"),
            (json!({ "reason": long }), "reason"),
            (json!({ "reason": 1 }), "reason"),
            (json!({ "reason": "so", "force": true }), "force"),
        ] {
            let response = post_decision(&mut operator, verb, &order_id, &body).await;
            let error = expect_error(&response, 422, "VALIDATION_FAILED");
            assert_eq!(error["details"][0]["field"], field, "{body}");
        }
    }
    let fetched = partner.read(&format!("/orders/{order_id}")).await;
    assert_eq!(fetched["pending_reason"], "APPROVAL");
    let longest = json!({ "reason": "ß".repeat(500) });
    expect_success(
        &post_decision(&mut operator, "approve", &order_id, &longest).await,
        200,
    );
}

#[tokio::test]
async fn concurrent_decisions_apply_once() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 8).await;
    let mut partner = operator.add_partner("200").await;
    let (mut approved, mut orders) = (0, Vec::new());
    for _ in 0..8 {
        orders.push(place_order_awaiting_approval(&mut partner, &sale, 1).await);
    }
    for order_id in &orders {
        let (mut one, mut other) = (Operator::of(shared()), Operator::of(shared()));
        let (approval, rejection) = tokio::join!(
            decide(&mut one, "approve", order_id),
            decide(&mut other, "reject", order_id)
        );
        let (winner, loser) = if approval.status == 200 {
            (&approval, &rejection)
        } else {
            (&rejection, &approval)
        };
        let order = expect_success(winner, 200);
        expect_error(loser, 409, "ORDER_NOT_AWAITING_APPROVAL");
        approved += u32::from(order["status"] == "DELIVERED");
        assert_eq!(decisions_in_audit_log(&mut operator, order_id).await.len(), 1);
    }
    assert_eq!(
        partner.usd_balances().await,
        (200.0 - 25.0 * f64::from(approved), 0.0)
    );
    assert_verified().await;
}

#[tokio::test]
async fn order_commands_decide_order() {
    let mut operator = Operator::of(shared());
    let sale = add_stocked_product_under_approval(&mut operator, 3).await;
    let mut partner = operator.add_partner("100").await;
    for (verb, expected) in [
        ("approve", "DELIVERED"),
        ("reject", "REFUNDED"),
        ("cancel", "REFUNDED"),
    ] {
        let order_id = place_order_awaiting_approval(&mut partner, &sale, 1).await;
        let order = run_json(&["order", verb, &order_id, "--reason", "by hand"]);
        assert_eq!(order["status"], expected, "{verb}");
        assert_eq!(stages(&order)[1].2, Some("by hand"), "{verb}");
    }
}

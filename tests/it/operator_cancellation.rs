//! Cancellation of orders by operators.

use serde_json::json;

use crate::approvals::{
    add_manual_product_under_approval, assert_verified, decide, decisions_in_audit_log,
    place_order_awaiting_approval,
};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, id_of, line_counts, shared, stages};

#[tokio::test]
async fn operator_cancels_unretrieved_order() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 2).await, 201));
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    let order = expect_success(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(
        stages(&order)[1..],
        [
            ("CANCELLED", "operator", Some("cancel, says Ann")),
            ("REFUNDED", "operator", None)
        ]
    );
    assert_eq!((line_counts(&order), &order["vouchers"]), ([0, 0, 0], &json!([])));
    assert_eq!(partner.usd_balances().await, (100.0, 0.0));
    let repeated = expect_success(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(repeated, order, "a repeated call must return the first response");
    assert_eq!(
        decisions_in_audit_log(&mut operator, &order_id).await.len(),
        1,
        "a repeated call must not be audited"
    );
    // The vouchers are back in stock.
    expect_success(&partner.order(&sale, 2).await, 201);
    expect_error(&partner.get_codes(&order_id).await, 409, "ORDER_CLOSED");
    assert_verified().await;
}

#[tokio::test]
async fn operator_cancel_keeps_retrieved_vouchers() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = add_manual_product_under_approval(&mut operator, 1).await;
    let order_id = place_order_awaiting_approval(&mut partner, &sale, 3).await;
    expect_success(&decide(&mut operator, "approve", &order_id).await, 200);
    expect_success(&partner.get_codes(&order_id).await, 200);
    let order = expect_success(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(
        stages(&order).last(),
        Some(&("PARTIALLY_DELIVERED", "operator", Some("cancel, says Ann")))
    );
    assert_eq!((line_counts(&order), &order["closed"]), ([1, 0, 2], &json!(true)));
    assert_eq!(order["refunded_amount"], json!(50.0));
    assert_eq!(partner.usd_balances().await, (975.0, 0.0));
    let repeated = expect_success(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(repeated, order, "a repeated call must return the first response");
    let audited = decisions_in_audit_log(&mut operator, &order_id).await;
    let actions: Vec<_> = audited
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["order.approve", "order.cancel"]);

    let sale = operator.add_stocked_product(1).await;
    let available = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    expect_success(&partner.get_codes(&available).await, 200);
    expect_error(
        &decide(&mut operator, "cancel", &available).await,
        409,
        "ORDER_NOT_CANCELLABLE",
    );
    assert_eq!(partner.usd_balances().await, (950.0, 0.0));
    assert_verified().await;
}

#[tokio::test]
async fn concurrent_code_read_and_operator_cancel_exclude_each_other() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(8).await;
    let mut partner = operator.add_partner("200").await;
    let mut orders = Vec::new();
    for _ in 0..8 {
        orders.push(id_of(&expect_success(&partner.order(&sale, 1).await, 201)));
    }
    let mut read = 0;
    for order_id in &orders {
        let mut reader = partner.reconnect();
        let (codes, cancel) = tokio::join!(
            reader.get_codes(order_id),
            decide(&mut operator, "cancel", order_id)
        );
        if codes.status == 200 {
            expect_error(&cancel, 409, "ORDER_NOT_CANCELLABLE");
            read += 1;
        } else {
            expect_error(&codes, 409, "ORDER_CLOSED");
            assert_eq!(expect_success(&cancel, 200)["status"], "REFUNDED");
        }
    }
    assert_eq!(
        partner.usd_balances().await,
        (200.0 - 25.0 * f64::from(read), 0.0)
    );
    assert_verified().await;
}

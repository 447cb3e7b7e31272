//! What becomes of an order that an operator takes back?

use serde_json::json;

use crate::approvals::{
    assert_verified, bought_by_hand, counts, decide, dollars, id_of, stages, trail, waiting,
};
use crate::support::{Operator, accepted, refused, shared};

#[tokio::test]
async fn an_operator_cancels_what_was_not_retrieved() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(2).await;
    let mut partner = operator.partner("100").await;
    let order_id = id_of(&accepted(&partner.order(&sale, 2).await, 201));
    refused(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    let order = accepted(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(
        stages(&order)[1..],
        [
            ("CANCELLED", "operator", Some("cancel, says Ann")),
            ("REFUNDED", "operator", None)
        ]
    );
    assert_eq!((counts(&order), &order["vouchers"]), ([0, 0, 2], &json!([])));
    assert_eq!(dollars(&mut partner).await, (100.0, 0.0));
    let again = accepted(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(again, order, "a second call answers as the first did");
    assert_eq!(
        trail(&mut operator, &order_id).await.len(),
        1,
        "and is no decision"
    );
    // The vouchers are in stock again, and whoever buys them has them alone.
    accepted(&partner.order(&sale, 2).await, 201);
    refused(&partner.codes(&order_id).await, 409, "ORDER_NOT_READY");
    assert_verified().await;
}

#[tokio::test]
async fn what_was_retrieved_stays_delivered() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.partner("1000").await;
    let sale = bought_by_hand(&mut operator, 1).await;
    let order_id = waiting(&mut partner, &sale, 3).await;
    accepted(&decide(&mut operator, "approve", &order_id).await, 200);
    accepted(&partner.codes(&order_id).await, 200);
    let order = accepted(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(
        stages(&order).last(),
        Some(&("PARTIALLY_DELIVERED", "operator", Some("cancel, says Ann")))
    );
    assert_eq!((counts(&order), &order["closed"]), ([1, 0, 2], &json!(true)));
    assert_eq!(order["refunded_amount"], json!(50.0));
    assert_eq!(dollars(&mut partner).await, (975.0, 0.0));
    let again = accepted(&decide(&mut operator, "cancel", &order_id).await, 200);
    assert_eq!(again, order, "a second call answers as the first did");
    let told = trail(&mut operator, &order_id).await;
    let actions: Vec<_> = told
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["order.approve", "order.cancel"]);

    let sale = operator.sale(1).await;
    let whole = id_of(&accepted(&partner.order(&sale, 1).await, 201));
    accepted(&partner.codes(&whole).await, 200);
    refused(
        &decide(&mut operator, "cancel", &whole).await,
        409,
        "ORDER_NOT_CANCELLABLE",
    );
    assert_eq!(dollars(&mut partner).await, (950.0, 0.0));
    assert_verified().await;
}

#[tokio::test]
async fn an_order_is_read_or_taken_back_and_never_both() {
    let mut operator = Operator::of(shared());
    let sale = operator.sale(8).await;
    let mut partner = operator.partner("200").await;
    let mut orders = Vec::new();
    for _ in 0..8 {
        orders.push(id_of(&accepted(&partner.order(&sale, 1).await, 201)));
    }
    let mut read = 0;
    for order_id in &orders {
        let mut reader = partner.again();
        let (codes, cancel) = tokio::join!(reader.codes(order_id), decide(&mut operator, "cancel", order_id));
        if codes.status == 200 {
            refused(&cancel, 409, "ORDER_NOT_CANCELLABLE");
            read += 1;
        } else {
            refused(&codes, 409, "ORDER_NOT_READY");
            assert_eq!(accepted(&cancel, 200)["status"], "REFUNDED");
        }
    }
    assert_eq!(dollars(&mut partner).await, (200.0 - 25.0 * f64::from(read), 0.0));
    assert_verified().await;
}

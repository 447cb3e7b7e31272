//! New stock is reserved for waiting orders, oldest first.

use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_success, id_of, shared,
};

async fn place_order(partner: &mut Partner, sale: &Sale, quantity: u32, status: u16) -> String {
    let order = expect_success(&partner.order(sale, quantity).await, status);
    id_of(&order)
}

/// Returns the delivered and pending counts of the first line.
async fn line_counts(partner: &mut Partner, order_id: &str) -> [Value; 2] {
    let order = partner.read(&format!("/orders/{order_id}")).await;
    ["delivered", "pending"].map(|field| order["items"][0][field].clone())
}

async fn wait_until_delivered(partner: &mut Partner, order_id: &str, delivered: u32) {
    eventually("the order to receive the new stock", WAIT_TIMEOUT, async || {
        (line_counts(partner, order_id).await[0] == json!(delivered)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn import_is_reserved_for_oldest_order_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let older = place_order(&mut partner, &sale, 3, 202).await;
    let younger = place_order(&mut partner, &sale, 2, 202).await;
    operator.restock(&sale, 2, "2099-12-31").await;
    // The imported stock is reserved: a new order queues behind the others.
    let newest = place_order(&mut partner, &sale, 1, 202).await;
    wait_until_delivered(&mut partner, &older, 2).await;
    assert_eq!(line_counts(&mut partner, &older).await, [json!(2), json!(1)]);
    assert_eq!(line_counts(&mut partner, &younger).await, [json!(0), json!(2)]);
    operator.restock(&sale, 3, "2099-12-31").await;
    wait_until_delivered(&mut partner, &younger, 2).await;
    assert_eq!(line_counts(&mut partner, &newest).await, [json!(0), json!(1)]);
    let order = partner.read(&format!("/orders/{older}")).await;
    assert_eq!(
        (&order["status"], &order["fulfilled_from"]),
        (&json!("DELIVERED"), &json!("cache"))
    );
    // Stock beyond the waiting orders goes to the shelf.
    operator.restock(&sale, 3, "2099-12-31").await;
    wait_until_delivered(&mut partner, &newest, 1).await;
    eventually("the remaining stock to be sold", WAIT_TIMEOUT, async || {
        (partner.order(&sale, 2).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn cancelled_stock_is_given_to_waiting_order() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 2).await;
    let mut partner = operator.add_partner("1000").await;
    let holder = place_order(&mut partner, &sale, 2, 201).await;
    let waiting = place_order(&mut partner, &sale, 1, 202).await;
    let cancel = format!("/orders/{holder}/cancel");
    expect_success(&partner.send_signed(hyper::Method::POST, &cancel, "").await, 200);
    wait_until_delivered(&mut partner, &waiting, 1).await;
    eventually("the other voucher to be sold", WAIT_TIMEOUT, async || {
        (partner.order(&sale, 1).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn kill_after_import_keeps_queue_order() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let older = place_order(&mut partner, &sale, 2, 202).await;
    let younger = place_order(&mut partner, &sale, 2, 202).await;
    operator.restock(&sale, 3, "2099-12-31").await;
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    wait_until_delivered(&mut partner, &older, 2).await;
    wait_until_delivered(&mut partner, &younger, 1).await;
    service.assert_verified();
}

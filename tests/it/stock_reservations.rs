//! Who gets stock that comes in while orders wait for it? The oldest of them, and nobody before.

use serde_json::{Value, json};

use crate::support::{Instance, Operator, Partner, WAIT_TIMEOUT, Sale, expect_success, eventually, shared};

async fn place_order(partner: &mut Partner, sale: &Sale, quantity: u32, status: u16) -> String {
    let order = expect_success(&partner.order(sale, quantity).await, status);
    order["order_id"].as_str().unwrap().to_owned()
}

/// How many an order has, and how many it waits for.
async fn line_counts(partner: &mut Partner, order_id: &str) -> [Value; 2] {
    let order = partner.read(&format!("/orders/{order_id}")).await;
    ["delivered", "pending"].map(|field| order["items"][0][field].clone())
}

async fn wait_until_delivered(partner: &mut Partner, order_id: &str, delivered: u32) {
    eventually("the order has what came in", WAIT_TIMEOUT, async || {
        (line_counts(partner, order_id).await[0] == json!(delivered)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_import_goes_to_the_oldest_order_first_and_a_new_one_does_not_overtake() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let older = place_order(&mut partner, &sale, 3, 202).await;
    let younger = place_order(&mut partner, &sale, 2, 202).await;
    operator.restock(&sale, 2, "2099-12-31").await;
    // The stock is there, and it is spoken for: an order that comes now waits behind the others.
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
    // What nobody waits for any more is on the shelf.
    operator.restock(&sale, 3, "2099-12-31").await;
    wait_until_delivered(&mut partner, &newest, 1).await;
    eventually("the rest is on the shelf", WAIT_TIMEOUT, async || {
        (partner.order(&sale, 2).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_comes_back_from_a_cancelled_order_goes_to_who_waits() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 2).await;
    let mut partner = operator.add_partner("1000").await;
    let holder = place_order(&mut partner, &sale, 2, 201).await;
    let waiting = place_order(&mut partner, &sale, 1, 202).await;
    let cancel = format!("/orders/{holder}/cancel");
    expect_success(&partner.send_signed(hyper::Method::POST, &cancel, "").await, 200);
    wait_until_delivered(&mut partner, &waiting, 1).await;
    eventually("the other one is on the shelf", WAIT_TIMEOUT, async || {
        (partner.order(&sale, 1).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_sudden_end_between_import_and_delivery_loses_no_place_in_line() {
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

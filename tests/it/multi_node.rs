//! Two nodes on one database: configuration changes reach both, certification covers both, and each sells the
//! stock of the other.

use serde_json::json;
use sqlx::ConnectOptions as _;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_error, expect_success, unique,
};

pub(crate) const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
);

/// Starts two nodes; the second uses the private Postgres of the first.
pub(crate) fn start_two_nodes() -> [Instance; 2] {
    start_two_nodes_with(&[])
}

/// Starts two nodes with these settings.
pub(crate) fn start_two_nodes_with(settings: &[(&str, &str)]) -> [Instance; 2] {
    let first = Instance::start_with(&[&[MASTER_KEY], settings].concat());
    let database = vouchsafe_private_postgres::find_running(first.data_dir()).unwrap();
    let url: &'static str = Box::leak(database.to_url_lossy().to_string().into_boxed_str());
    let second = Instance::start_with(&[&[MASTER_KEY, ("DATABASE_URL", url)], settings].concat());
    [first, second]
}

pub(crate) async fn wait_for_status(partner: &mut Partner, status: u16, path: &str) {
    let description = format!("{path} to return {status}");
    let poll = async || (partner.get(path).await.status == status).then_some(());
    eventually(&description, WAIT_TIMEOUT, poll).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_at_one_node_applies_at_other() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let partner = operator.add_partner("100").await;
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_status(&mut at_second, 200, "/wallets").await;

    let sale = operator.add_stocked_product(2).await;
    let path = format!("/products/{}", sale.product_id);
    wait_for_status(&mut at_second, 200, &path).await;
    expect_success(&at_second.order(&sale, 1).await, 201);

    operator
        .patch_partner(&partner, &json!({ "suspended": true }))
        .await;
    wait_for_status(&mut at_second, 403, "/wallets").await;
    operator
        .patch_partner(&partner, &json!({ "suspended": false }))
        .await;
    wait_for_status(&mut at_second, 200, "/wallets").await;
    operator.revoke_credential(&partner).await;
    wait_for_status(&mut at_second, 401, "/wallets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certification_spans_both_nodes() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("100").await;
    let limits = json!({ "limits": { "orders": { "quota": 1, "window_s": 86_400 } } });
    operator.patch_partner(&partner, &limits).await;
    let mut at_second = partner.connect_to(&second.base_url());
    let path = format!("/products/{}", sale.product_id);
    wait_for_status(&mut at_second, 200, &path).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_error(&partner.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
    // The first node asked the client to pause; the other one refuses as well.
    let failed = async || {
        at_second.order_with_key(&unique("key"), &sale, 1).await;
        let checklist = at_second.read("/certification").await;
        let mut points = checklist["checks"].as_array().unwrap().iter();
        points
            .any(|point| point["check"] == "RATE_LIMIT" && point["state"] == "FAILED")
            .then_some(())
    };
    eventually("the rate limit check to fail", WAIT_TIMEOUT, failed).await;
}

/// Places an order; sends it again while the service says that it cannot decide now, as on a slow machine.
async fn order_at_last(partner: &mut Partner, sale: &Sale, quantity: u32) -> ApiResponse {
    let key = unique("key");
    let decide = async || {
        let response = partner.order_with_key(&key, sale, quantity).await;
        (response.status != 503).then_some(response)
    };
    eventually("an order to be decided", WAIT_TIMEOUT, decide).await
}

#[tokio::test(flavor = "multi_thread")]
async fn node_sells_stock_that_another_node_owns() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(40).await;
    let mut partner = operator.add_partner("10000").await;
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_status(&mut at_second, 200, &format!("/products/{}", sale.product_id)).await;
    expect_success(&order_at_last(&mut partner, &sale, 1).await, 201);
    // More than one chunk, so that the first node must give up what it has left of its own.
    expect_success(&order_at_last(&mut at_second, &sale, 38).await, 201);
    expect_success(&order_at_last(&mut partner, &sale, 1).await, 201);
    let sold_out = order_at_last(&mut at_second, &sale, 1).await;
    expect_error(&sold_out, 409, "INSUFFICIENT_INVENTORY");
    first.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_of_a_stopped_or_killed_node_is_sold_by_the_other() {
    let [first, mut second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let mut partner = operator.add_partner("10000").await;
    for killed in [false, true] {
        let sale = operator.add_stocked_product(3).await;
        let mut at_second = partner.connect_to(&second.base_url());
        wait_for_status(&mut at_second, 200, &format!("/products/{}", sale.product_id)).await;
        expect_success(&at_second.order(&sale, 1).await, 201);
        if killed {
            second.kill();
        } else {
            assert_eq!(second.stop(), Some(0));
        }
        expect_success(&order_at_last(&mut partner, &sale, 2).await, 201);
        second.spawn();
        second.wait_until_ready();
    }
    first.assert_verified();
}

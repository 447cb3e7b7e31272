//! Two services on one database: what an operator changes at one is in force at the other, and what a partner does at both is
//! one certification.

use serde_json::json;
use sqlx::ConnectOptions as _;

use crate::support::{Instance, Operator, Partner, WAIT_TIMEOUT, expect_success, eventually, expect_error, unique};

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
);

/// Two services; the second works on the private Postgres of the first.
pub(crate) fn start_two_nodes() -> [Instance; 2] {
    let first = Instance::start_with(&[MASTER_KEY]);
    let database = vouchsafe::postgres::find_running(first.data_dir()).unwrap();
    let url: &'static str = Box::leak(database.to_url_lossy().to_string().into_boxed_str());
    let second = Instance::start_with(&[MASTER_KEY, ("DATABASE_URL", url)]);
    [first, second]
}

async fn wait_for_status(partner: &mut Partner, status: u16, path: &str) {
    let what = format!("{path} is answered {status}");
    let ask = async || (partner.get(path).await.status == status).then_some(());
    eventually(&what, WAIT_TIMEOUT, ask).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_at_one_is_in_force_at_the_other() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let partner = operator.add_partner("100").await;
    let mut elsewhere = partner.connect_to(&second.base_url());
    wait_for_status(&mut elsewhere, 200, "/wallets").await;

    let sale = operator.add_stocked_product(2).await;
    let path = format!("/products/{}", sale.product_id);
    wait_for_status(&mut elsewhere, 200, &path).await;
    expect_success(&elsewhere.order(&sale, 1).await, 201);

    operator.patch_partner(&partner, &json!({ "suspended": true })).await;
    wait_for_status(&mut elsewhere, 403, "/wallets").await;
    operator.patch_partner(&partner, &json!({ "suspended": false })).await;
    wait_for_status(&mut elsewhere, 200, "/wallets").await;
    operator.revoke_credential(&partner).await;
    wait_for_status(&mut elsewhere, 401, "/wallets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_does_at_both_is_one_certification() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("100").await;
    let limits = json!({ "limits": { "orders": { "quota": 1, "window_s": 60 } } });
    operator.patch_partner(&partner, &limits).await;
    let mut elsewhere = partner.connect_to(&second.base_url());
    let path = format!("/products/{}", sale.product_id);
    wait_for_status(&mut elsewhere, 200, &path).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_error(&partner.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
    // There is room at the other node, which counts for itself; but the client was told to wait.
    let failed = async || {
        elsewhere.order_with_key(&unique("key"), &sale, 1).await;
        let checklist = elsewhere.read("/certification").await;
        let mut points = checklist["points"].as_array().unwrap().iter();
        points
            .any(|point| point["point"] == "RATE_LIMIT" && point["state"] == "FAILED")
            .then_some(())
    };
    eventually("it did not wait", WAIT_TIMEOUT, failed).await;
}

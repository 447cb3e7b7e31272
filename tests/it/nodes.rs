//! Two services on one database: what an operator changes at one is in force at the other, and what a partner does at both is
//! one certification.

use serde_json::json;
use sqlx::ConnectOptions as _;

use crate::support::{Instance, Operator, Partner, SOON, accepted, eventually, refused, unique};

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
);

/// Two services; the second works on the private Postgres of the first.
pub(crate) fn two() -> [Instance; 2] {
    let first = Instance::start_with(&[MASTER_KEY]);
    let database = vouchsafe::postgres::running(first.data_dir()).unwrap();
    let url: &'static str = Box::leak(database.to_url_lossy().to_string().into_boxed_str());
    let second = Instance::start_with(&[MASTER_KEY, ("DATABASE_URL", url)]);
    [first, second]
}

async fn until_answered(partner: &mut Partner, status: u16, path: &str) {
    let what = format!("{path} is answered {status}");
    let ask = async || (partner.get(path).await.status == status).then_some(());
    eventually(&what, SOON, ask).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_at_one_is_in_force_at_the_other() {
    let [first, second] = two();
    let mut operator = Operator::of(&first);
    let partner = operator.partner("100").await;
    let mut elsewhere = partner.at(&second.base_url());
    until_answered(&mut elsewhere, 200, "/wallets").await;

    let sale = operator.sale(2).await;
    let path = format!("/products/{}", sale.product_id);
    until_answered(&mut elsewhere, 200, &path).await;
    accepted(&elsewhere.order(&sale, 1).await, 201);

    operator.patch(&partner, &json!({ "suspended": true })).await;
    until_answered(&mut elsewhere, 403, "/wallets").await;
    operator.patch(&partner, &json!({ "suspended": false })).await;
    until_answered(&mut elsewhere, 200, "/wallets").await;
    operator.revoke(&partner).await;
    until_answered(&mut elsewhere, 401, "/wallets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_does_at_both_is_one_certification() {
    let [first, second] = two();
    let mut operator = Operator::of(&first);
    let sale = operator.sale(9).await;
    let mut partner = operator.partner("100").await;
    let limits = json!({ "limits": { "orders": { "quota": 1, "window_s": 60 } } });
    operator.patch(&partner, &limits).await;
    let mut elsewhere = partner.at(&second.base_url());
    let path = format!("/products/{}", sale.product_id);
    until_answered(&mut elsewhere, 200, &path).await;
    accepted(&partner.order(&sale, 1).await, 201);
    refused(&partner.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
    // There is room at the other node, which counts for itself; but the client was told to wait.
    let failed = async || {
        elsewhere.order_under(&unique("key"), &sale, 1).await;
        let checklist = elsewhere.read("/certification").await;
        let mut points = checklist["points"].as_array().unwrap().iter();
        points
            .any(|point| point["point"] == "RATE_LIMIT" && point["state"] == "FAILED")
            .then_some(())
    };
    eventually("it did not wait", SOON, failed).await;
}

//! Lists of operators from the standby of `VOUCHSAFE_REPLICA_URL`.

use std::process::Command;

use hyper::Method;
use serde_json::Value;
use vouchsafe_test_harness::{
    Instance, Operator, WAIT_TIMEOUT, database_url, eventually, expect_success, id_of, program, text_of,
};

use crate::failover::{Replicated, run};

/// The ids of the newest orders, and the lag of the standby that has listed them.
async fn list_orders(operator: &mut Operator) -> (Vec<Value>, Option<f64>) {
    let response = operator
        .call(Method::GET, "/admin/v1/orders", "application/json", "")
        .await;
    let lag = response
        .header("vouchsafe-replica-lag")
        .map(|lag| lag.parse().unwrap());
    let page = expect_success(&response, 200);
    let orders = page["data"].as_array().unwrap().iter();
    (orders.map(|order| order["order_id"].clone()).collect(), lag)
}

/// What a command of the program prints that fails.
fn run_failing(url: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    let output = command.args(arguments).env("DATABASE_URL", url).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every list is served meanwhile.
async fn wait_until_read(operator: &mut Operator, expected: bool) {
    let listed = async || {
        let response = operator
            .call(Method::GET, "/admin/v1/orders", "application/json", "")
            .await;
        expect_success(&response, 200);
        let is_read = response.header("vouchsafe-replica-lag").is_some();
        (is_read == expected).then_some(())
    };
    eventually("the standby to be read, or no longer", WAIT_TIMEOUT, listed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_from_the_standby_with_its_lag_and_from_the_primary_while_it_is_behind_or_gone() {
    let mut servers = Replicated::create().await;
    servers.primary.replicate_asynchronously().await;
    let standby_url = database_url([&servers.standby]);
    let service = Instance::start_with(&[
        ("DATABASE_URL", &database_url([&servers.primary])),
        ("VOUCHSAFE_REPLICA_URL", &standby_url),
    ]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("1000").await;
    wait_until_read(&mut operator, true).await;
    assert!(operator.get("/admin/v1/overview").await["replica_lag_s"].is_number());
    let transactions = format!("partners/{}/transactions", partner.partner_id);
    for list in [
        "payouts",
        "purchases",
        "deliveries",
        "stock",
        "stock/expiries",
        "audit",
        "audit/checkpoints",
        &transactions,
    ] {
        let response = operator
            .call_json(Method::GET, &format!("/admin/v1/{list}"), "")
            .await;
        expect_success(&response, 200);
        assert!(response.header("vouchsafe-replica-lag").is_some(), "{list}");
    }
    let refused = run_failing(&database_url([&servers.primary]), &["verify", "--standby"]);
    assert!(refused.contains("is no standby"), "{refused}");

    servers.standby.execute("SELECT pg_wal_replay_pause()").await;
    let order_id: Value = id_of(&expect_success(&partner.order(&sale, 1).await, 201)).into();
    let (listed, lag) = list_orders(&mut operator).await;
    assert!(lag.is_some() && !listed.contains(&order_id), "{lag:?} {listed:?}");
    let path = format!("/admin/v1/orders/{}", order_id.as_str().unwrap());
    assert_eq!(operator.get(&path).await["order_id"], order_id);
    // Once it is too far behind.
    wait_until_read(&mut operator, false).await;
    let (listed, _) = list_orders(&mut operator).await;
    assert!(listed.contains(&order_id), "{listed:?}");

    servers.standby.execute("SELECT pg_wal_replay_resume()").await;
    wait_until_read(&mut operator, true).await;
    let (listed, _) = list_orders(&mut operator).await;
    assert!(listed.contains(&order_id), "{listed:?}");
    let verified = run(&standby_url, &["verify", "--standby"]);
    assert!(
        verified.contains("the standby has replayed the commits until 20")
            && verified.contains("invariants hold"),
        "{verified}"
    );

    servers.standby.kill();
    wait_until_read(&mut operator, false).await;
    eventually("the metric of the next comparison", WAIT_TIMEOUT, async || {
        let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
        text_of(&metrics)
            .contains("\nvouchsafe_replica_lag_seconds -1")
            .then_some(())
    })
    .await;
    expect_success(&partner.order(&sale, 1).await, 201);
}

/// Its connections stay open, and nothing on them ends.
#[tokio::test(flavor = "multi_thread")]
async fn list_that_meets_a_standby_that_hangs_comes_from_the_primary() {
    let servers = Replicated::create().await;
    servers.primary.replicate_asynchronously().await;
    let service = Instance::start_with(&[
        ("DATABASE_URL", &database_url([&servers.primary])),
        ("VOUCHSAFE_REPLICA_URL", &database_url([&servers.standby])),
    ]);
    let mut operator = Operator::of(&service);
    wait_until_read(&mut operator, true).await;
    servers.standby.freeze();
    let (_, lag) = list_orders(&mut operator).await;
    assert_eq!(lag, None);
}

//! Failover between Postgres servers named in `DATABASE_URL`: orders continue on the promoted standby without
//! a restart.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hyper::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, PostgresServer, Sale, WAIT_TIMEOUT, database_url, eventually, expect_error,
    expect_success, id_of, program, scratch_directory, text_of, unique,
};

use crate::multi_node::wait_for_status;

/// A primary and its synchronous standby.
pub(crate) struct Replicated {
    pub(crate) primary: PostgresServer,
    pub(crate) standby: PostgresServer,
    scratch: TempDir,
}

impl Replicated {
    pub(crate) async fn create() -> Self {
        let scratch = scratch_directory();
        let create = || {
            let primary = PostgresServer::create(scratch.path());
            let standby = primary.create_standby(scratch.path(), "standby");
            (primary, standby)
        };
        let (primary, standby) = tokio::task::block_in_place(create);
        primary.create_database().await;
        primary.replicate_synchronously().await;
        Self {
            primary,
            standby,
            scratch,
        }
    }

    /// Brings the former primary back as a standby of the new one.
    async fn swap(&mut self) {
        std::mem::swap(&mut self.primary, &mut self.standby);
        let Self { primary, standby, .. } = self;
        tokio::task::block_in_place(|| standby.return_as_standby(primary, "standby"));
    }

    /// The URL of both servers, the one first that is no primary at the start.
    pub(crate) fn url(&self) -> String {
        database_url([&self.standby, &self.primary])
    }
}

/// Places orders until it is stopped, and returns the acknowledged ones.
#[allow(clippy::disallowed_methods)] // joined by the test
fn keep_ordering(mut partner: Partner, sale: &Sale, stopped: &Arc<AtomicBool>) -> JoinHandle<Vec<String>> {
    let (sale, stopped) = (sale.clone(), Arc::clone(stopped));
    tokio::spawn(async move {
        let mut orders = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let response = partner.order(&sale, 1).await;
            if response.status == 201 {
                orders.push(id_of(&expect_success(&response, 201)));
            }
        }
        orders
    })
}

/// Repeats an order until the primary accepts it or stock is quarantined, and prints how long that took since
/// `begun_at`.
pub(crate) async fn first_decision(partner: &mut Partner, sale: &Sale, begun_at: Instant) -> ApiResponse {
    let key = unique("key");
    let response = eventually("an order on the primary", WAIT_TIMEOUT, async || {
        let response = partner.order_with_key(&key, sale, 1).await;
        let is_quarantined = response.error_code().as_deref() == Some("STOCK_QUARANTINED");
        (response.status == 201 || is_quarantined).then_some(response)
    });
    let response = response.await;
    let seconds = begun_at.elapsed().as_secs_f64();
    eprintln!(
        "first response ({}) {seconds:.2} s after the promotion",
        response.status
    );
    response
}

const REPLICATED: (&str, &str) = ("VOUCHSAFE_DURABILITY", "replicated");

async fn wait_for_replication(operator: &mut Operator, expected: &str) {
    let description = format!("the replication to be {expected}");
    let poll = async || (operator.get("/admin/v1/overview").await["replication"] == expected).then_some(());
    eventually(&description, WAIT_TIMEOUT, poll).await;
}

/// Runs a command of the program on the database, and returns what it prints.
pub(crate) fn run(url: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    let output = command.args(arguments).env("DATABASE_URL", url).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{text:?}");
    text.concat()
}

pub(crate) fn release(service: &Instance) {
    let mut command = Command::new(program());
    command.args([
        "stock",
        "release",
        "--after-failover",
        "--reason",
        "a test",
        "--admin-url",
    ]);
    command
        .arg(service.admin_url())
        .env("VOUCHSAFE_OPERATOR_TOKEN", service.operator_token());
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_continue_on_promoted_standby_and_then_on_the_former_primary() {
    let mut servers = Replicated::create().await;
    let url = servers.url();
    let service = Instance::start_with(&[("DATABASE_URL", &url), REPLICATED]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(5_000).await;
    let mut partner = operator.add_partner("100000").await;
    let buyers = [
        operator.add_partner("100000").await,
        operator.add_partner("100000").await,
    ];
    let mut acknowledged = vec![id_of(&expect_success(&partner.order(&sale, 1).await, 201))];
    for _ in 0..2 {
        let stopped = Arc::<AtomicBool>::default();
        let buying = buyers
            .each_ref()
            .map(|buyer| keep_ordering(buyer.reconnect(), &sale, &stopped));
        acknowledged.push(id_of(&expect_success(&partner.order(&sale, 1).await, 201)));
        wait_for_replication(&mut operator, "synchronous").await;
        servers.primary.kill();
        servers.standby.promote().await;
        let promoted = Instant::now();
        let refused = first_decision(&mut partner, &sale, promoted).await;
        expect_error(&refused, 503, "STOCK_QUARANTINED");
        release(&service);
        let order = eventually("a sale after the release", WAIT_TIMEOUT, async || {
            let order = partner.order(&sale, 1).await;
            (order.status == 201).then_some(order)
        });
        acknowledged.push(id_of(&expect_success(&order.await, 201)));
        stopped.store(true, Ordering::Relaxed);
        for buyer in buying {
            acknowledged.extend(buyer.await.unwrap());
        }
        servers.swap().await;
        servers.primary.replicate_synchronously().await;
    }
    for order in &acknowledged {
        operator.get(&format!("/admin/v1/orders/{order}")).await;
    }
    run(&url, &["verify"]);
}

/// The connections to a suspended server stay open, and nothing on them ends.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_a_primary_that_stops_answering_are_given_up_once_another_is_promoted() {
    let servers = Replicated::create().await;
    let url = servers.url();
    let service = Instance::start_with(&[("DATABASE_URL", &url)]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    servers.primary.freeze();
    servers.standby.promote().await;
    let refused = first_decision(&mut partner, &sale, Instant::now()).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
    release(&service);
    expect_success(&partner.order(&sale, 1).await, 201);
}

/// The tool that promotes does not reach the primary, which goes on and waits for a standby that is none any
/// more.
#[tokio::test(flavor = "multi_thread")]
async fn standby_promoted_while_the_former_primary_answers_is_followed() {
    let servers = Replicated::create().await;
    let service = Instance::start_with(&[("DATABASE_URL", &servers.url())]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    servers.standby.promote().await;
    let refused = first_decision(&mut partner, &sale, Instant::now()).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
    release(&service);
    expect_success(&partner.order(&sale, 1).await, 201);
}

/// Commits wait for one standby, and another one is promoted.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_promoted_standby_lacks_is_served_from_no_cache_and_never_sold_again() {
    let mut servers = Replicated::create().await;
    let scratch = servers.scratch.path();
    let lagging = tokio::task::block_in_place(|| servers.primary.create_standby(scratch, "lagging"));
    lagging.replicate_asynchronously().await;
    let waiting = "ALTER SYSTEM SET synchronous_standby_names = 'standby'";
    servers.primary.execute(waiting).await;
    servers.primary.execute("SELECT pg_reload_conf()").await;
    let url = database_url([&servers.primary, &lagging]);
    let service = Instance::start_with(&[("DATABASE_URL", &url), REPLICATED]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    let mut buyers = Vec::new();
    for _ in 0..6 {
        buyers.push(operator.add_partner("100000").await);
    }
    expect_success(&partner.order(&sale, 1).await, 201);
    wait_for_replication(&mut operator, "synchronous").await;
    lagging.wait_for_replay_of(&servers.primary).await;
    lagging.stop_receiving().await;
    let key = unique("key");
    let order = expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    let lost_partner = operator.add_partner("100000").await;
    servers.primary.kill();
    lagging.promote().await;
    let promoted = Instant::now();
    // Most probably one of them is on a lane that misses no commit.
    for buyer in &mut buyers {
        let refused = first_decision(buyer, &sale, promoted).await;
        expect_error(&refused, 503, "STOCK_QUARANTINED");
    }
    expect_error(
        &partner.order_with_key(&key, &sale, 1).await,
        503,
        "STOCK_QUARANTINED",
    );
    let path = format!("/orders/{}", id_of(&order));
    expect_error(&partner.get(&path).await, 404, "ORDER_NOT_FOUND");
    wait_for_status(&mut lost_partner.reconnect(), 401, "/wallets").await;
}

/// The standby has all commits, but nothing shows it.
#[tokio::test(flavor = "multi_thread")]
async fn missing_replication_is_reported_and_a_failover_then_quarantines_stock() {
    let mut servers = Replicated::create().await;
    let service = Instance::start_with(&[("DATABASE_URL", &servers.url()), REPLICATED]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    wait_for_replication(&mut operator, "synchronous").await;
    assert_eq!(operator.get("/readyz").await, json!({ "status": "ready" }));
    servers.primary.execute("REVOKE pg_monitor FROM vouchsafe").await;
    wait_for_replication(&mut operator, "unreadable").await;
    servers.primary.execute("GRANT pg_monitor TO vouchsafe").await;
    wait_for_replication(&mut operator, "synchronous").await;
    servers.primary.replicate_asynchronously().await;
    wait_for_replication(&mut operator, "no_names").await;
    assert_eq!(
        operator.get("/readyz").await,
        json!({ "status": "ready", "replication_missing": true })
    );
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    assert!(text_of(&metrics).contains("\nvouchsafe_replication_missing 1\n"));
    expect_success(&partner.order(&sale, 1).await, 201);
    servers.standby.wait_for_replay_of(&servers.primary).await;
    servers.primary.kill();
    servers.standby.promote().await;
    let refused = first_decision(&mut partner, &sale, Instant::now()).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
}

/// It accepts connections and never answers.
#[tokio::test(flavor = "multi_thread")]
async fn standby_that_hangs_keeps_neither_a_start_nor_a_failover_from_another_one() {
    let mut servers = Replicated::create().await;
    let scratch = servers.scratch.path();
    let hanging = tokio::task::block_in_place(|| servers.primary.create_standby(scratch, "hanging"));
    let waiting = "ALTER SYSTEM SET synchronous_standby_names = 'standby'";
    servers.primary.execute(waiting).await;
    servers.primary.execute("SELECT pg_reload_conf()").await;
    hanging.freeze();
    let url = database_url([&hanging, &servers.standby, &servers.primary]);
    let service = Instance::start_with(&[("DATABASE_URL", &url)]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    servers.primary.kill();
    servers.standby.promote().await;
    let refused = first_decision(&mut partner, &sale, Instant::now()).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
    release(&service);
    expect_success(&partner.order(&sale, 1).await, 201);
    run(&url, &["verify"]);
}

/// A list of servers that names one of another deployment by mistake.
#[tokio::test(flavor = "multi_thread")]
async fn primary_of_another_cluster_is_never_followed() {
    let mut servers = Replicated::create().await;
    servers.primary.replicate_asynchronously().await;
    let scratch = servers.scratch.path();
    let mut foreign = tokio::task::block_in_place(|| PostgresServer::create(scratch));
    foreign.create_database().await;
    let url = database_url([&foreign, &servers.primary]);
    let refused = Command::new(program())
        .arg("verify")
        .env("DATABASE_URL", &url)
        .output()
        .unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("the primary of another cluster"), "{refused}");

    foreign.kill();
    let service = Instance::start_with(&[("DATABASE_URL", &url)]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    tokio::task::block_in_place(|| foreign.start());
    servers.primary.kill();
    eventually("the foreign server to be refused", WAIT_TIMEOUT, async || {
        service
            .log()
            .contains("the primary of another cluster")
            .then_some(())
    })
    .await;
    tokio::task::block_in_place(|| servers.primary.start());
    let order = eventually("an order on the primary", WAIT_TIMEOUT, async || {
        let order = partner.order(&sale, 1).await;
        (order.status == 201).then_some(order)
    });
    expect_success(&order.await, 201);
}

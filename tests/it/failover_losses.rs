//! Failover to a standby that lacks commits, and what a former primary must not get any more.

use std::time::Instant;

use serde_json::json;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use vouchsafe_test_harness::{
    Database, Instance, Operator, PostgresServer, Receiver, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, id_of, unique,
};

use crate::deliveries::register_webhook;
use crate::failover::{Replicated, first_decision, release};
use crate::payouts::{payout_body, request_payout};

/// What was delivered of lost events says nothing about the events that get their numbers.
#[tokio::test(flavor = "multi_thread")]
async fn events_with_the_numbers_of_lost_ones_are_delivered() {
    let mut servers = Replicated::create().await;
    servers.primary.replicate_asynchronously().await;
    let service = Instance::start_with(&[("DATABASE_URL", &servers.url())]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100000").await;
    let receiver = Receiver::start();
    register_webhook(&mut partner, &receiver, &json!({})).await;
    let events_of = |order: &str| {
        let received = receiver.received().into_iter();
        received.filter(|event| event.order_id() == order).count()
    };
    let kept = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    eventually("the events of the first order", WAIT_TIMEOUT, async || {
        (events_of(&kept) == 3).then_some(())
    })
    .await;
    servers.standby.wait_for_replay_of(&servers.primary).await;
    servers.standby.stop_receiving().await;
    let lost = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    eventually("the events of the lost order", WAIT_TIMEOUT, async || {
        (events_of(&lost) == 3).then_some(())
    })
    .await;
    servers.primary.kill();
    servers.standby.promote().await;
    let refused = first_decision(&mut partner, &sale, Instant::now()).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
    release(&service);
    let next = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    eventually("the events of the next order", WAIT_TIMEOUT, async || {
        (events_of(&next) >= 3).then_some(())
    })
    .await;
}

async fn count_payouts(server: &PostgresServer) -> i64 {
    let mut superuser = PgConnection::connect_with(&server.superuser_options())
        .await
        .unwrap();
    sqlx::query_scalar("SELECT count(*) FROM payouts")
        .fetch_one(&mut superuser)
        .await
        .unwrap()
}

/// A lane that is idle during the failover has an open connection to a server that would acknowledge its next
/// batch.
#[tokio::test(flavor = "multi_thread")]
async fn idle_lane_sends_nothing_to_a_former_primary() {
    let servers = Replicated::create().await;
    servers.primary.replicate_asynchronously().await;
    let service = Instance::start_with(&[("DATABASE_URL", &servers.url())]);
    let mut operator = Operator::of(&service);
    let mut partners = Vec::new();
    for _ in 0..6 {
        partners.push(operator.add_partner("100").await);
    }
    servers.standby.wait_for_replay_of(&servers.primary).await;
    servers.standby.promote().await;
    eventually("the service to follow", WAIT_TIMEOUT, async || {
        let found = service.log().matches("it is the primary").count();
        (found == 2).then_some(())
    })
    .await;
    // Most probably their partners use all lanes.
    for partner in &mut partners {
        let response = request_payout(partner, &unique("key"), &payout_body("5")).await;
        expect_success(&response, 202);
    }
    assert_eq!(count_payouts(&servers.primary).await, 0);
    assert_eq!(count_payouts(&servers.standby).await, 6);
}

/// The standby of a failover lags behind the start of the node.
#[tokio::test(flavor = "multi_thread")]
async fn node_that_the_database_has_lost_says_so_and_registers_at_its_next_start() {
    let database = Database::create().await;
    let url = database.options().to_url_lossy().to_string();
    let mut service = Instance::start_with(&[("DATABASE_URL", &url)]);
    let mut connection = database.connect().await;
    for loss in [
        "DELETE FROM nodes",
        "UPDATE nodes SET incarnation = incarnation - 1",
    ] {
        connection.execute(loss).await.unwrap();
        assert_eq!(service.wait_for_exit(), Some(1), "{}", service.log());
        let log = service.log();
        assert!(log.contains("has lost the registration of this node"), "{log}");
        assert!(!log.contains("has taken over"), "{log}");
        service.restart();
    }
    let take_over = "UPDATE nodes SET incarnation = incarnation + 1";
    connection.execute(take_over).await.unwrap();
    assert_eq!(service.wait_for_exit(), Some(1));
    assert!(
        service
            .log()
            .contains("a later start of this node has taken over")
    );
    connection.close().await.unwrap();
    database.remove().await;
}

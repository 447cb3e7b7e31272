//! Endpoint leases: lost leases, store outages, graceful shutdown.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_simulation::FlushLatency;
use vouchsafe_simulation::conformance::EndpointChange;

use super::harness::run;
use super::receiver::{ACCEPT, FAIL, ReceiverBehavior};

#[tokio::test(start_paused = true)]
async fn endpoint_is_delivered_by_one_process_at_a_time() {
    run(ACCEPT, async |harness| {
        let second_process = harness.start_second_process();
        for order in 0..10 {
            harness.append(order);
        }
        harness.poll().await;
        second_process.wake(harness.webhook_id).await;
        harness.run_until(3).await;
        assert_eq!(harness.receiver.numbers().len(), 10);
        assert!(second_process.leased().is_empty());
        harness.run_until(30).await;
        assert!(
            harness.deliveries.leased().is_empty(),
            "the lease of an idle endpoint is released"
        );
        let totals = |enabled: &[WebhookId]| {
            harness.deliveries.retain(&enabled.iter().copied().collect());
            harness.deliveries.totals()
        };
        let kept = totals(&[harness.webhook_id]);
        assert!(kept.handled > 0, "an idle actor keeps its counters");
        assert_eq!((kept.actors, kept.not_ready), (1, 0));
        let evicted = totals(&[]);
        assert_eq!((evicted.actors, evicted.handled), (0, kept.handled));
        harness.append(11);
        second_process.wake(harness.webhook_id).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(harness.receiver.numbers().len(), 11);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lease_lost_writes_nothing_and_next_holder_redelivers() {
    run(ReceiverBehavior::Hang, async |harness| {
        harness.commit(1).await;
        sleep(Duration::from_secs(1)).await;
        harness.db.steal_lease(harness.webhook_id);
        harness.run_until(20).await;
        assert!(harness.rows().is_empty());
        assert!(harness.deliveries.leased().is_empty());
        harness.receiver.set_behavior(ACCEPT);
        harness.run_until(40).await;
        assert_eq!(harness.receiver.numbers(), [1, 1]);
        assert_eq!(harness.status().cursor, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn delivery_during_store_outage_is_written_after_it() {
    run(
        ReceiverBehavior::Respond(200, Duration::from_secs(2)),
        async |harness| {
            harness.commit(1).await;
            sleep(Duration::from_secs(1)).await;
            harness.db.set_unavailable(true);
            sleep(Duration::from_secs(10)).await;
            assert_eq!(harness.status().cursor, 0);
            harness.db.set_unavailable(false);
            harness.run_until(30).await;
            assert_eq!(harness.receiver.numbers(), [1], "sent once");
            assert_eq!(harness.status().cursor, 1);
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn drain_finishes_and_writes_attempts_in_flight() {
    run(
        ReceiverBehavior::Respond(200, Duration::from_secs(3)),
        async |harness| {
            harness.append(1);
            harness.append(2);
            harness.poll().await;
            sleep(Duration::from_secs(1)).await;
            harness.deliveries.drain().await;
            assert_eq!(harness.receiver.numbers(), [1], "nothing new is sent");
            assert_eq!(harness.status().cursor, 1);
            assert!(harness.deliveries.leased().is_empty());
        },
    )
    .await;
}

/// No process knows the next attempt between a failure and the following read: it must not leave the long
/// backoff of the probe as the time at which the next process continues.
#[tokio::test(start_paused = true)]
async fn requested_retry_continues_in_the_next_process() {
    const ORDERS: u32 = 100;
    run(FAIL, async |harness| {
        for order in 1..=ORDERS {
            harness.append(order);
        }
        harness.run_until(3_600).await;
        let attempted = || {
            harness
                .receiver
                .numbers()
                .into_iter()
                .collect::<BTreeSet<_>>()
                .len()
        };
        assert!(attempted() < 20, "the others wait behind the oldest");
        harness
            .db
            .change_endpoint(harness.webhook_id, EndpointChange::RequestRetry);
        harness.run_for(3).await;
        harness.deliveries.drain().await;
        assert!(attempted() < ORDERS as usize);
        let next_process = harness.start_second_process();
        for _ in 0..30 {
            next_process.wake(harness.webhook_id).await;
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(attempted(), ORDERS as usize);
        let attempts = harness.receiver.numbers().len();
        sleep(Duration::from_secs(300)).await;
        assert!(
            harness.receiver.numbers().len() <= attempts + 1,
            "one attempt each, then the others wait again"
        );
    })
    .await;
}

/// The lease may belong to another process by the time its response arrives.
#[tokio::test(start_paused = true)]
async fn lease_counts_from_its_request() {
    run(ACCEPT, async |harness| {
        harness.db.set_flush_latency(FlushLatency {
            after: Duration::from_secs(40),
            ..FlushLatency::default()
        });
        harness.commit(1).await;
        harness.run_until(75).await;
        harness.db.steal_lease(harness.webhook_id);
        harness.run_until(100).await;
        assert_eq!(
            harness.receiver.numbers(),
            [0; 0],
            "the lease granted at 80 ended at 70"
        );
    })
    .await;
}

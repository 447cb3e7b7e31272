//! Order of deliveries: sequential within an order, concurrent across orders, bounded backlog.

use std::time::Duration;

use vouchsafe_simulation::RowState;

use super::harness::run;
use super::receiver::{ACCEPT, FAIL, ReceiverBehavior};

#[tokio::test(start_paused = true)]
async fn failed_delivery_blocks_only_its_order() {
    run(ACCEPT, async |harness| {
        harness.receiver.set_behavior_for(1, FAIL);
        for order in [1, 1, 2, 2, 3] {
            harness.append(order);
        }
        harness.poll().await;
        harness.run_until(4).await;
        assert_eq!(harness.receiver.numbers(), [1, 3, 4, 5]);
        harness.commit(1).await;
        harness.run_until(6).await;
        assert_eq!(harness.receiver.numbers()[4..], [1], "the retry fails again");
        harness.receiver.set_behavior_for(1, ACCEPT);
        harness.run_until(30).await;
        assert_eq!(harness.receiver.numbers()[5..], [1, 2, 6]);
        assert!(
            harness
                .rows()
                .values()
                .all(|row| row.state == RowState::Delivered)
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn backlog_of_1000_orders_is_sent_16_at_once() {
    run(
        ReceiverBehavior::Respond(200, Duration::from_millis(10)),
        async |harness| {
            for order in 0..1_000 {
                harness.append(order);
            }
            harness.poll().await;
            harness.run_until(20).await;
            let mut numbers = harness.receiver.numbers();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(1..=1_000), "each once");
            assert_eq!(harness.receiver.max_in_flight(), 16);
            assert_eq!((harness.status().cursor, harness.rows().len()), (1_000, 0));
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn backlog_of_failing_endpoint_is_not_loaded_and_follows_first_success() {
    run(ReceiverBehavior::RefuseConnection, async |harness| {
        for order in 0..500 {
            harness.append(order);
        }
        harness.poll().await;
        harness.run_until(3_600).await;
        let rows = harness.rows().len();
        assert_eq!(rows, 5, "attempted before the endpoint was failing");
        let attempts_before = harness.receiver.numbers_and_seconds().len();
        assert!(attempts_before < 14, "{attempts_before} attempts in an hour");
        assert!(
            harness.deliveries.leased().is_empty(),
            "no process holds the lease"
        );
        harness.receiver.set_behavior(ACCEPT);
        harness.run_until(5_700).await;
        let (first, second) = {
            let attempt = &harness.receiver.numbers_and_seconds()[attempts_before..];
            let mut numbers: Vec<_> = attempt.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers[0], 1, "the oldest");
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(1..=500), "every event once");
            (attempt[0].1, attempt[499].1)
        };
        assert!(second - first <= 2, "from {first} s to {second} s");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn backlog_of_dead_receiver_fails_after_a_day() {
    run(ReceiverBehavior::RefuseConnection, async |harness| {
        for order in 0..300 {
            harness.append(order);
        }
        harness.poll().await;
        harness.run_until(86_500).await;
        let rows = harness.rows();
        assert_eq!((harness.status().cursor, rows.len()), (300, 300));
        assert!(rows.values().all(|row| row.state == RowState::Failed));
        assert!(
            rows.values().all(|row| row.attempts > 0 && !row.log.is_empty()),
            "each after an attempt of its own"
        );
    })
    .await;
}

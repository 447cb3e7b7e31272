//! Delivery attempts: retry schedule, timeouts, `Retry-After`, 410.

use std::time::Duration;

use vouchsafe_domain::delivery::{DeliveryFault, MAX_STORED_RESPONSE_BYTES};
use vouchsafe_simulation::RowState;

use super::harness::run;
use super::receiver::{ACCEPT, FAIL, ReceiverBehavior};

const DAY: u64 = 86_400;

fn seconds(attempt: &[(i64, u64)]) -> Vec<u64> {
    attempt.iter().map(|(_, second)| *second).collect()
}

#[tokio::test(start_paused = true)]
async fn delivery_failing_for_a_day_is_attempted_twelve_times_then_failed() {
    run(FAIL, async |harness| {
        harness.commit(1).await;
        harness.run_until(DAY + 10).await;
        let expected = [0, 5, 20, 65, 200, 605, 1_820, 5_465, 16_400, 45_200, 74_000, DAY];
        assert_eq!(seconds(&harness.receiver.numbers_and_seconds()), expected);
        let row = harness.rows()[&1].clone();
        assert_eq!(
            (row.state, row.attempts, row.log.len()),
            (RowState::Failed, 12, 12)
        );
        assert_eq!(row.log[0].status, Some(500));
        assert!(row.log[0].answer.len() <= MAX_STORED_RESPONSE_BYTES && row.log[0].answer.len() > 1_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn attempt_hanging_times_out_after_5_s_and_gap_starts_there() {
    run(ReceiverBehavior::Hang, async |harness| {
        harness.commit(1).await;
        harness.run_until(60).await;
        assert_eq!(seconds(&harness.receiver.numbers_and_seconds()), [0, 10, 30]);
        let row = harness.rows()[&1].clone();
        assert_eq!(
            (row.log[0].fault, row.log[0].latency_ms),
            (Some(DeliveryFault::Timeout), 5_000)
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn response_after_timeout_is_a_failed_attempt() {
    run(
        ReceiverBehavior::Respond(200, Duration::from_millis(4_900)),
        async |harness| {
            harness.commit(1).await;
            harness.run_until(20).await;
            assert_eq!(harness.receiver.numbers(), [1]);
            assert!(harness.rows().is_empty());
            harness
                .receiver
                .set_behavior(ReceiverBehavior::Respond(200, Duration::from_millis(5_100)));
            harness.commit(2).await;
            harness.run_until(26).await;
            assert_eq!(harness.rows()[&2].attempts, 1);
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_header_is_honoured_up_to_two_gaps() {
    for (retry_after, second) in [(1, 5), (8, 8), (3_600, 10)] {
        run(
            ReceiverBehavior::RetryAfter(Duration::from_secs(retry_after)),
            async |harness| {
                harness.commit(1).await;
                harness.run_until(12).await;
                assert_eq!(
                    seconds(&harness.receiver.numbers_and_seconds())[..2],
                    [0, second],
                    "retry after {retry_after} s"
                );
            },
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn endpoint_returning_410_is_disabled() {
    run(ReceiverBehavior::Respond(410, Duration::ZERO), async |harness| {
        harness.commit(1).await;
        harness.commit(2).await;
        harness.run_until(100).await;
        assert_eq!(harness.receiver.numbers(), [1]);
        let status = harness.status();
        assert!(
            !status.enabled && status.cursor == 1,
            "the second delivery still waits"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn delivery_succeeding_on_retry_keeps_its_attempt_log() {
    run(ReceiverBehavior::RefuseConnection, async |harness| {
        harness.commit(1).await;
        harness.run_until(10).await;
        harness.receiver.set_behavior(ACCEPT);
        harness.run_until(25).await;
        let row = &harness.rows()[&1];
        assert_eq!((row.state, row.log.len()), (RowState::Delivered, 3));
        assert_eq!((row.log[2].status, harness.status().failures), (Some(204), 0));
    })
    .await;
}

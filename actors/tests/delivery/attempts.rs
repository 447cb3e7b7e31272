//! When one delivery is tried: the schedule to the second, what ends it, and what the receiver may ask for.

use std::time::Duration;

use vouchsafe_actors::domain::delivery::{Fault, MAX_ANSWER_BYTES};

use crate::receiver::{FAILS, Mood, TAKES};
use crate::stage::play;
use vouchsafe_actors::testing::memory_outbox::RowState;

const DAY: u64 = 86_400;

fn seconds(seen: &[(i64, u64)]) -> Vec<u64> {
    seen.iter().map(|(_, second)| *second).collect()
}

#[tokio::test(start_paused = true)]
async fn a_day_of_failures_is_twelve_attempts_to_the_second_and_then_it_has_failed() {
    play(FAILS, async |stage| {
        stage.commit(1).await;
        stage.until(DAY + 10).await;
        let expected = [0, 5, 20, 65, 200, 605, 1_820, 5_465, 16_400, 45_200, 74_000, DAY];
        assert_eq!(seconds(&stage.receiver.seen()), expected);
        let row = stage.outbox.tables.lock().unwrap().rows[&1].clone();
        assert_eq!(
            (row.state, row.attempts, row.log.len()),
            (RowState::Failed, 12, 12)
        );
        assert_eq!(row.log[0].status, Some(500));
        assert!(row.log[0].answer.len() <= MAX_ANSWER_BYTES && row.log[0].answer.len() > 1_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_cut_off_after_five_seconds_and_the_gap_counts_from_there() {
    play(Mood::Hangs, async |stage| {
        stage.commit(1).await;
        stage.until(60).await;
        assert_eq!(seconds(&stage.receiver.seen()), [0, 10, 30]);
        let row = stage.outbox.tables.lock().unwrap().rows[&1].clone();
        assert_eq!(
            (row.log[0].fault, row.log[0].latency_ms),
            (Some(Fault::Timeout), 5_000)
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_counts_and_a_late_one_does_not() {
    play(Mood::Answers(200, Duration::from_millis(4_900)), async |stage| {
        stage.commit(1).await;
        stage.until(20).await;
        assert_eq!(stage.receiver.numbers(), [1]);
        assert!(stage.outbox.tables.lock().unwrap().rows.is_empty());
        stage
            .receiver
            .is(Mood::Answers(200, Duration::from_millis(5_100)));
        stage.commit(2).await;
        stage.until(26).await;
        assert_eq!(stage.outbox.tables.lock().unwrap().rows[&2].attempts, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_receiver_asks_for_is_heard_up_to_two_gaps() {
    for (asked, second) in [(1, 5), (8, 8), (3_600, 10)] {
        play(Mood::Later(Duration::from_secs(asked)), async |stage| {
            stage.commit(1).await;
            stage.until(12).await;
            assert_eq!(
                seconds(&stage.receiver.seen())[..2],
                [0, second],
                "asked for {asked} s"
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_gets_nothing_more() {
    play(Mood::Answers(410, Duration::ZERO), async |stage| {
        stage.commit(1).await;
        stage.commit(2).await;
        stage.until(100).await;
        assert_eq!(stage.receiver.numbers(), [1]);
        let tables = stage.outbox.tables.lock().unwrap();
        assert!(tables.disabled && tables.cursor == 1, "the second still waits");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_taken_later_and_its_attempts_are_kept() {
    play(Mood::Refuses, async |stage| {
        stage.commit(1).await;
        stage.until(10).await;
        stage.receiver.is(TAKES);
        stage.until(25).await;
        let tables = stage.outbox.tables.lock().unwrap();
        let row = &tables.rows[&1];
        assert_eq!((row.state, row.log.len()), (RowState::Delivered, 3));
        assert_eq!((row.log[2].status, tables.failures), (Some(204), 0));
    })
    .await;
}

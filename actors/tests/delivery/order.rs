//! What goes before what: each order in sequence, orders side by side, and a backlog that is no burden.

use std::time::Duration;

use crate::receiver::{FAILS, Mood, TAKES};
use crate::stage::play;
use vouchsafe_actors::testing::memory_outbox::RowState;

#[tokio::test(start_paused = true)]
async fn a_failure_holds_its_order_back_and_no_other() {
    play(TAKES, async |stage| {
        stage.receiver.answers(1, FAILS);
        for order in [1, 1, 2, 2, 3] {
            stage.outbox.commit(order);
        }
        stage.look().await;
        stage.until(4).await;
        assert_eq!(stage.receiver.numbers(), [1, 3, 4, 5]);
        stage.commit(1).await;
        stage.until(6).await;
        assert_eq!(stage.receiver.numbers()[4..], [1], "tried again, and fails again");
        stage.receiver.answers(1, TAKES);
        stage.until(30).await;
        assert_eq!(stage.receiver.numbers()[5..], [1, 2, 6]);
        let tables = stage.outbox.tables.lock().unwrap();
        assert!(tables.rows.values().all(|row| row.state == RowState::Delivered));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_orders_go_sixteen_at_once() {
    play(Mood::Answers(200, Duration::from_millis(10)), async |stage| {
        for order in 0..1_000 {
            stage.outbox.commit(order);
        }
        stage.look().await;
        stage.until(20).await;
        let mut numbers = stage.receiver.numbers();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=1_000), "each once");
        assert_eq!(stage.receiver.most_at_once(), 16);
        let tables = stage.outbox.tables.lock().unwrap();
        assert_eq!((tables.cursor, tables.rows.len()), (1_000, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_it_fails_the_backlog_waits_where_it_is_and_follows_the_first_that_is_taken() {
    play(Mood::Refuses, async |stage| {
        for order in 0..500 {
            stage.outbox.commit(order);
        }
        stage.look().await;
        stage.until(3_600).await;
        let rows = stage.outbox.tables.lock().unwrap().rows.len();
        assert_eq!(rows, 5, "those that were tried before it failed");
        let tried = stage.receiver.seen().len();
        assert!(tried < 14, "{tried} attempts in an hour");
        assert!(
            stage.deliveries.leased().is_empty(),
            "nobody waits for it in memory"
        );
        stage.receiver.is(TAKES);
        stage.until(5_700).await;
        let (first, second) = {
            let seen = &stage.receiver.seen()[tried..];
            let mut numbers: Vec<_> = seen.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers[0], 1, "the oldest");
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(1..=500), "all of them, each once");
            (seen[0].1, seen[499].1)
        };
        assert!(second - first <= 2, "from {first} s to {second} s");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_dead_receiver_fails_when_its_day_is_over() {
    play(Mood::Refuses, async |stage| {
        for order in 0..300 {
            stage.outbox.commit(order);
        }
        stage.look().await;
        stage.until(86_500).await;
        let tables = stage.outbox.tables.lock().unwrap();
        assert_eq!((tables.cursor, tables.rows.len()), (300, 300));
        assert!(tables.rows.values().all(|row| row.state == RowState::Failed));
    })
    .await;
}

//! Whose an endpoint is: a lease that is lost, a store that does not answer, a process that goes down.

use std::time::Duration;

use tokio::time::sleep;

use crate::receiver::{Mood, TAKES};
use crate::stage::play;

#[tokio::test(start_paused = true)]
async fn one_process_at_a_time_delivers() {
    play(TAKES, async |stage| {
        let another = stage.another();
        for order in 0..10 {
            stage.outbox.commit(order);
        }
        stage.look().await;
        another.wake(stage.outbox.webhook_id).await;
        stage.until(3).await;
        assert_eq!(stage.receiver.numbers().len(), 10);
        assert!(another.leased().is_empty());
        stage.until(30).await;
        assert!(
            stage.deliveries.leased().is_empty(),
            "an idle endpoint is given back"
        );
        stage.deliveries.forget_resting();
        assert_eq!(stage.deliveries.total().actors, 0);
        stage.outbox.commit(11);
        another.wake(stage.outbox.webhook_id).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(stage.receiver.numbers().len(), 11);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_the_lease_writes_nothing_and_the_next_one_sends_again() {
    play(Mood::Hangs, async |stage| {
        stage.commit(1).await;
        sleep(Duration::from_secs(1)).await;
        stage.outbox.steal();
        stage.until(20).await;
        assert!(stage.outbox.tables.lock().unwrap().rows.is_empty());
        assert!(stage.deliveries.leased().is_empty());
        stage.receiver.is(TAKES);
        stage.until(40).await;
        assert_eq!(stage.receiver.numbers(), [1, 1]);
        assert_eq!(stage.outbox.tables.lock().unwrap().cursor, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_while_the_store_is_down_is_written_when_it_is_back() {
    play(Mood::Answers(200, Duration::from_secs(2)), async |stage| {
        stage.commit(1).await;
        sleep(Duration::from_secs(1)).await;
        stage.outbox.tables.lock().unwrap().down = true;
        sleep(Duration::from_secs(10)).await;
        assert_eq!(stage.outbox.tables.lock().unwrap().cursor, 0);
        stage.outbox.tables.lock().unwrap().down = false;
        stage.until(30).await;
        assert_eq!(stage.receiver.numbers(), [1], "sent once");
        assert_eq!(stage.outbox.tables.lock().unwrap().cursor, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn going_down_waits_for_what_is_under_way_and_writes_it_down() {
    play(Mood::Answers(200, Duration::from_secs(3)), async |stage| {
        stage.outbox.commit(1);
        stage.outbox.commit(2);
        stage.look().await;
        sleep(Duration::from_secs(1)).await;
        stage.deliveries.drain().await;
        assert_eq!(stage.receiver.numbers(), [1], "nothing new is sent");
        assert_eq!(stage.outbox.tables.lock().unwrap().cursor, 1);
        assert!(stage.deliveries.leased().is_empty());
    })
    .await;
}

/// It may be another's by the time that it is heard.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_when_it_was_asked_for() {
    play(TAKES, async |stage| {
        stage.outbox.tables.lock().unwrap().pace.after = Duration::from_secs(40);
        stage.commit(1).await;
        stage.until(75).await;
        stage.outbox.steal();
        stage.until(100).await;
        assert_eq!(
            stage.receiver.numbers(),
            [0; 0],
            "the lease that is heard of at 80 ended at 70"
        );
    })
    .await;
}

//! What is sent again.

use super::subject::{OutboxSubject, RowState};
use super::teller::{HOUR, Process, Said, due, taken};
use crate::delivery::queue::FAILING_AFTER;

/// What was taken long ago is due, with no attempts, and has 24 hours from now on.
pub async fn a_replayed_event_is_due_at_once_with_a_day_of_its_own<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    process.take().await.unwrap().release(Said::seen_to(number)).await;
    subject.pass(100 * HOUR).await;
    assert!(process.take().await.is_none(), "there is nothing to do");
    subject.replay(number..=number).await;
    let mut teller = process.take().await.expect("it is due");
    let page = teller.read(due(number)).await.unwrap();
    let [pending] = &page.pending[..] else {
        panic!("one is due: {page:?}")
    };
    assert_eq!(
        (pending.letter.number, pending.attempts, pending.stored),
        (number, 0, true)
    );
    assert!(pending.ends_in > time::Duration::hours(23), "{page:?}");
}

/// What waits of its order waits for it, and is due when it has ended.
pub async fn a_replay_goes_before_what_waits_of_its_order<S: OutboxSubject>(subject: &S) {
    for order in [1, 1, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    let failed = Said {
        cursor: 3,
        ..Said::failed(1, 2, 1, HOUR)
    };
    teller.say(failed).await.unwrap();
    subject.replay(1..=1).await;
    subject.pass(2 * HOUR).await;
    assert_eq!(
        teller.numbers(due(3)).await,
        [1],
        "the other one's time has come, and not its turn"
    );
    assert_eq!(subject.row(2).await.unwrap().state, RowState::Behind);
    teller.say(Said::taken(1, 1, 3)).await.unwrap();
    assert_eq!(teller.numbers(due(3)).await, [2]);
}

/// The same when an attempt ends that was under way when the earlier one was replayed.
pub async fn a_replay_goes_before_what_is_under_way_and_fails<S: OutboxSubject>(subject: &S) {
    for _ in 0..2 {
        subject.commit(1).await;
    }
    let mut teller = taken(subject, "one").await;
    teller.say(Said::seen_to(1)).await.unwrap();
    assert_eq!(teller.numbers(due(1)).await, [2]);
    subject.replay(1..=1).await;
    teller.say(Said::failed(1, 2, 1, HOUR)).await.unwrap();
    subject.pass(2 * HOUR).await;
    assert_eq!(teller.numbers(due(2)).await, [1]);
}

/// Of an order the first is due, whatever else is replayed with it; orders side by side.
pub async fn replays_of_an_order_are_due_one_after_the_other<S: OutboxSubject>(subject: &S) {
    for order in [1, 1, 2, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    teller.say(Said::seen_to(4)).await.unwrap();
    subject.replay(1..=4).await;
    assert_eq!(teller.numbers(due(4)).await, [1, 3]);
    teller.say(Said::taken(1, 1, 4)).await.unwrap();
    assert_eq!(teller.numbers(due(4)).await, [2, 3]);
}

/// An endpoint that took nothing for a day, so that nothing waits any more, is looked at again because of the replay.
pub async fn a_replay_wakes_an_endpoint_that_gave_everything_up<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let mut teller = process.take().await.unwrap();
    subject.pass(24 * HOUR).await;
    teller
        .say(Said::given_up(1, number, number).failing(8 * HOUR))
        .await
        .unwrap();
    let nothing_left = Said {
        failures: FAILING_AFTER - 1,
        ..Said::seen_to(number)
    };
    teller.release(nothing_left).await;
    assert!(process.take().await.is_none());
    subject.replay(number..=number).await;
    let mut teller = process.take().await.expect("it is due");
    assert_eq!(teller.numbers(due(number)).await, [number]);
}

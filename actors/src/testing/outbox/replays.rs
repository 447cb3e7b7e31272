//! What is sent again.

use super::subject::{OutboxSubject, RowState};
use super::teller::{HOUR, Process, Said, Teller, due, taken};
use crate::delivery::outbox::Then;
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
    teller.say(Said::taken(1, 1, 3).of_replay(1)).await.unwrap();
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
    teller.say(Said::taken(1, 1, 4).of_replay(1)).await.unwrap();
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

/// Replayed once more while it is under way: what becomes of that attempt ends the replay that it was of, and not the later
/// one, which is due at once.
pub async fn an_attempt_that_is_taken_ends_no_later_replay<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    teller.say(Said::seen_to(number)).await.unwrap();
    for replays in 1..=2 {
        subject.replay(number..=number).await;
        assert_eq!(replays_read(&mut teller, number).await, [replays]);
    }
    let said = |replays| Said::taken(1, number, number).of_replay(replays);
    teller.say(said(1)).await.unwrap();
    let row = subject.row(number).await.unwrap();
    assert_eq!((row.state, row.log.len()), (RowState::Waiting, 1));
    assert_eq!(replays_read(&mut teller, number).await, [2]);
    teller.say(said(2)).await.unwrap();
    assert_eq!(subject.row(number).await.unwrap().state, RowState::Delivered);
}

/// And one that fails, or is over, does not put it off: it is due at once, with no attempts.
pub async fn an_attempt_that_fails_puts_off_no_later_replay<S: OutboxSubject>(subject: &S) {
    for order in [1, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    let failed = Said::failed(1, 1, 1, HOUR);
    teller.say(Said { cursor: 2, ..failed }).await.unwrap();
    subject.pass(25 * HOUR).await;
    subject.replay(1..=1).await;
    teller.say(Said::given_up(1, 1, 2)).await.unwrap();
    teller.say(Said::failed(1, 1, 2, 8 * HOUR)).await.unwrap();
    let row = subject.row(1).await.unwrap();
    assert_eq!(
        (row.state, row.attempts, row.log.len()),
        (RowState::Waiting, 0, 2)
    );
    assert_eq!(replays_read(&mut teller, 2).await, [1]);
}

/// The same of an event that was replayed while it was sent for the first time, and had no row when it was read.
pub async fn what_is_sent_for_the_first_time_ends_no_replay<S: OutboxSubject>(subject: &S) {
    for order in [1, 2, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    assert_eq!(teller.numbers(due(0)).await, [1, 2, 3]);
    subject.replay(1..=3).await;
    teller.say(Said::taken(1, 1, 1)).await.unwrap();
    let failed = Said::failed(2, 2, 1, HOUR).behind(2, &[3]);
    teller.say(Said { cursor: 3, ..failed }).await.unwrap();
    assert_eq!(
        replays_read(&mut teller, 3).await,
        [1, 1],
        "the first of each order"
    );
    let states = [
        subject.row(2).await.unwrap().state,
        subject.row(3).await.unwrap().state,
    ];
    assert_eq!(states, [RowState::Waiting, RowState::Behind]);
}

/// A turn that is written again, because nobody knows whether it was written, ends nothing that was replayed meanwhile.
pub async fn a_turn_that_is_written_again_ends_no_later_replay<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    teller.say(Said::failed(1, number, 1, HOUR)).await.unwrap();
    let turn = teller.turn(Said::taken(1, number, number), Then::Keep(None));
    teller.write(turn.clone()).await.unwrap();
    assert_eq!(subject.row(number).await.unwrap().state, RowState::Delivered);
    subject.replay(number..=number).await;
    teller.write(turn).await.unwrap();
    let row = subject.row(number).await.unwrap();
    assert_eq!((row.state, row.log.len()), (RowState::Waiting, 2));
    assert_eq!(replays_read(&mut teller, number).await, [1]);
}

/// Who takes the endpoint over reads which replay it is, and ends that one.
pub async fn a_replay_is_the_same_for_the_next_process<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    teller.say(Said::seen_to(number)).await.unwrap();
    for _ in 0..2 {
        subject.replay(number..=number).await;
    }
    assert_eq!(replays_read(&mut teller, number).await, [2]);
    let mut next = taken(subject, "one").await;
    let said = || Said::taken(1, number, number).of_replay(2);
    assert!(teller.say(said()).await.is_none(), "it has lost the lease");
    assert_eq!(replays_read(&mut next, number).await, [2]);
    next.say(said()).await.unwrap();
    assert_eq!(subject.row(number).await.unwrap().state, RowState::Delivered);
}

/// How often each of those that are due was replayed.
async fn replays_read(teller: &mut Teller, after: i64) -> Vec<u32> {
    let page = teller.read(due(after)).await.expect("it has the lease");
    page.pending.iter().map(|pending| pending.replays).collect()
}

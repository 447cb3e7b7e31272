//! What was not taken: when it is tried again, what is remembered of it, and when it is over.

use std::time::Duration;

use super::subject::{OutboxSubject, RowState};
use super::teller::{HOUR, Process, Said, attempt, due, taken};
use crate::delivery::queue::Want;

/// It is not read before its time, and at its time by whoever comes; until then nobody needs to have the endpoint.
pub async fn what_failed_waits_for_its_time<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let mut teller = process.take().await.unwrap();
    teller.say(Said::failed(1, number, 1, 2 * HOUR)).await.unwrap();
    let page = teller.read(due(number)).await.unwrap();
    assert!(page.pending.is_empty(), "{page:?}");
    let next = page.next_due_in.expect("it is tried again");
    assert!(next > HOUR && next <= 2 * HOUR, "{next:?}");
    teller
        .release(Said {
            failures: 1,
            ..Said::seen_to(number)
        })
        .await;
    subject.pass(HOUR).await;
    assert!(process.take().await.is_none(), "it is too early");
    subject.pass(HOUR).await;
    let mut teller = process.take().await.expect("it is due");
    assert_eq!((teller.opened.failures, teller.opened.cursor), (1, number));
    let page = teller.read(due(number)).await.unwrap();
    let [pending] = &page.pending[..] else {
        panic!("one is due: {page:?}")
    };
    assert_eq!(
        (pending.letter.number, pending.attempts, pending.stored),
        (number, 1, true)
    );
}

/// Each attempt stands in the row, in its order, and is counted.
pub async fn every_attempt_is_remembered<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    for attempts in 1..=3 {
        teller.say(Said::failed(1, number, attempts, HOUR)).await.unwrap();
    }
    let taken = Said {
        attempts: vec![(number, attempt(204, 4))],
        ..Said::taken(1, number, number)
    };
    teller.say(taken).await.unwrap();
    let row = subject.row(number).await.unwrap();
    assert_eq!(row.state, RowState::Delivered);
    assert_eq!(
        row.log,
        [attempt(500, 1), attempt(500, 2), attempt(500, 3), attempt(204, 4)]
    );
    let standing = subject.standing().await.unwrap();
    assert_eq!(
        (standing.delivered, standing.refused, standing.failures),
        (1, 3, 0)
    );
}

/// While an endpoint fails nobody takes it before its next attempt, whatever is new; and then the oldest is read first,
/// whether it is due or not.
pub async fn while_it_fails_the_oldest_is_read_and_new_events_wake_nobody<S: OutboxSubject>(subject: &S) {
    for order in [1, 1, 2] {
        subject.commit(order).await;
    }
    let process = Process::start(subject, "one").await;
    let failing = Said::failed(1, 1, 1, 8 * HOUR).behind(1, &[2]).failing(HOUR);
    process.take().await.unwrap().release(failing).await;
    subject.commit(3).await;
    assert!(process.take().await.is_none());
    subject.pass(HOUR).await;
    let mut teller = process.take().await.expect("it is tried again");
    assert!(teller.opened.wait < HOUR);
    assert_eq!(teller.numbers(due(2)).await, [3, 4], "none of the rows is due");
    assert_eq!(teller.numbers(Want::Oldest { after: 2 }).await, [1, 2, 3, 4]);
}

/// Rows that wait for their next attempt are due at once; what waits behind another goes on waiting.
pub async fn the_first_that_is_taken_frees_the_others<S: OutboxSubject>(subject: &S) {
    for order in [1, 2, 2, 3] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    teller.say(Said::failed(1, 1, 1, HOUR)).await.unwrap();
    teller
        .say(Said::failed(2, 2, 1, 8 * HOUR).behind(2, &[3]))
        .await
        .unwrap();
    teller.say(Said::failed(3, 4, 1, 8 * HOUR)).await.unwrap();
    assert!(teller.numbers(due(4)).await.is_empty());
    let recovered = Said {
        recovered: true,
        ..Said::taken(1, 1, 4)
    };
    teller.say(recovered).await.unwrap();
    assert_eq!(teller.numbers(due(4)).await, [2, 4]);
}

/// The 24 hours run from the event's commit, whether it was tried or not.
pub async fn a_delivery_ends_a_day_after_its_event<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    subject.pass(22 * HOUR).await;
    let is_soon =
        |ends_in: time::Duration| ends_in > time::Duration::HOUR && ends_in <= time::Duration::hours(2);
    let page = teller.read(due(0)).await.unwrap();
    assert!(is_soon(page.pending[0].ends_in), "{page:?}");
    teller
        .say(Said::failed(1, number, 1, Duration::ZERO))
        .await
        .unwrap();
    let page = teller.read(due(number)).await.unwrap();
    assert!(is_soon(page.pending[0].ends_in), "{page:?}");
}

/// 410: nothing is sent any more, and what waits is kept. Who has lost the lease switches nothing off.
pub async fn a_receiver_that_is_gone_is_switched_off<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let mut former = process.take().await.unwrap();
    let mut teller = taken(subject, "one").await;
    let gone = || Said {
        gone: true,
        ..Said::failed(1, number, 1, HOUR)
    };
    assert!(former.say(gone()).await.is_none());
    assert!(subject.standing().await.unwrap().enabled);
    teller.say(gone()).await.unwrap();
    assert!(!subject.standing().await.unwrap().enabled);
    teller.release(gone()).await;
    subject.pass(2 * HOUR).await;
    assert!(process.take().await.is_none(), "it is off");
    assert_eq!(subject.row(number).await.unwrap().state, RowState::Waiting);
}

//! How far an endpoint is, and what comes next.

use super::subject::OutboxSubject;
use super::teller::{HOUR, Said, attempt, due, numbers, taken};
use crate::delivery::outbox::Then;
use crate::delivery::queue::Want;
use crate::domain::event_kind::{EventKind, EventKinds};

/// Events come in the order of their commits, as many as there is room for, and it is said whether there are more.
pub async fn events_are_read_in_the_order_of_their_numbers<S: OutboxSubject>(subject: &S) {
    for order in [1, 2, 1, 3, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    let all = teller.read(due(0)).await.unwrap();
    assert_eq!(
        (numbers(&all), all.read_to, all.more),
        (vec![1, 2, 3, 4, 5], 5, false)
    );
    assert!(
        all.pending
            .iter()
            .all(|pending| !pending.stored && pending.attempts == 0)
    );
    let some = teller.read(Want::Due { after: 2, most: 2 }).await.unwrap();
    assert_eq!((numbers(&some), some.read_to, some.more), (vec![3, 4], 4, true));
}

/// What comes late does not move it back.
pub async fn the_cursor_never_goes_back<S: OutboxSubject>(subject: &S) {
    for _ in 0..3 {
        subject.commit(1).await;
    }
    let mut teller = taken(subject, "one").await;
    for (written, kept) in [(2, 2), (1, 2), (3, 3)] {
        teller.say(Said::seen_to(written)).await.unwrap();
        assert_eq!(subject.standing().await.unwrap().cursor, kept);
    }
}

/// What was taken at once leaves no row, and is not sent by the next process.
pub async fn the_next_process_begins_at_the_cursor<S: OutboxSubject>(subject: &S) {
    for _ in 0..3 {
        subject.commit(1).await;
    }
    taken(subject, "one").await.release(Said::seen_to(2)).await;
    let mut next = taken(subject, "other").await;
    assert_eq!(next.opened.cursor, 2);
    assert_eq!(next.numbers(due(2)).await, [3]);
    assert_eq!(subject.row(1).await, None);
}

/// An event that the endpoint does not ask for is not sent, and holds nothing up.
pub async fn what_is_not_asked_for_is_passed_over<S: OutboxSubject>(subject: &S) {
    let kinds = EventKinds::of(&[EventKind::OrderCreated]).unwrap();
    subject.ask_for(kinds).await;
    for order in [1, 1, 2, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    let page = teller.read(due(0)).await.unwrap();
    assert_eq!((numbers(&page), page.read_to), (vec![1, 3], 4));
}

/// A turn of which nobody knows whether it was written is written again: its rows, attempts and counts are there once.
pub async fn a_turn_that_is_written_again_says_the_same<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    let turn = teller.turn(Said::failed(1, number, 1, HOUR), Then::Keep(None));
    for _ in 0..2 {
        teller.write(turn.clone()).await.unwrap();
        let row = subject.row(number).await.unwrap();
        assert_eq!((row.attempts, row.log), (1, vec![attempt(500, 1)]));
        let standing = subject.standing().await.unwrap();
        assert_eq!((standing.delivered, standing.refused), (0, 1));
    }
    teller.release(Said::taken(1, number, number)).await;
    let standing = subject.standing().await.unwrap();
    assert_eq!((standing.delivered, standing.refused), (1, 1));
}

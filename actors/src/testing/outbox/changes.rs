//! What becomes of the endpoint while somebody delivers: switched off and on, rotated, removed.

use super::subject::OutboxSubject;
use super::teller::{HOUR, Process, Said, due, taken};

/// Whoever has it loses it, and nobody takes it until it is on again; then it goes on where it was.
pub async fn an_endpoint_that_is_off_is_nobodys<S: OutboxSubject>(subject: &S) {
    for _ in 0..2 {
        subject.commit(1).await;
    }
    let process = Process::start(subject, "one").await;
    let mut teller = process.take().await.unwrap();
    teller.say(Said::seen_to(1)).await.unwrap();
    subject.switch(false).await;
    assert!(teller.say(Said::seen_to(2)).await.is_none());
    assert!(process.take().await.is_none());
    subject.switch(true).await;
    let mut teller = process.take().await.expect("it is on again");
    assert_eq!(teller.opened.cursor, 1);
    assert_eq!(teller.numbers(due(1)).await, [2]);
}

/// What is older than 24 hours is not sent when an endpoint is on again: it is in the feed.
pub async fn after_a_long_time_off_the_last_day_is_sent<S: OutboxSubject>(subject: &S) {
    subject.switch(false).await;
    subject.commit(1).await;
    subject.pass(25 * HOUR).await;
    subject.commit(1).await;
    subject.switch(true).await;
    let mut teller = taken(subject, "one").await;
    assert_eq!(teller.opened.cursor, 1);
    assert_eq!(teller.numbers(due(1)).await, [2]);
}

/// Who delivers learns of the new secret before the next delivery, and signs with the former one, too.
pub async fn a_rotation_takes_the_lease_and_both_secrets_sign<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let mut before = process.take().await.unwrap();
    assert!(before.opened.target.previous.is_none());
    subject.rotate().await;
    assert!(before.read(due(0)).await.is_none());
    let after = process.take().await.expect("it has a new secret");
    let (former, _) = after
        .opened
        .target
        .previous
        .clone()
        .expect("the former one signs, too");
    assert!(former == before.opened.target.secret && former != after.opened.target.secret);
}

/// An operator switches it on: what failed does not wait for its next attempt.
pub async fn enabling_lets_what_failed_be_tried_at_once<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let gone = Said {
        gone: true,
        ..Said::failed(1, number, 1, 8 * HOUR).failing(8 * HOUR)
    };
    process.take().await.unwrap().release(gone).await;
    subject.enable().await;
    assert!(subject.standing().await.unwrap().enabled);
    let mut teller = process.take().await.expect("it is tried at once");
    assert_eq!(teller.numbers(due(number)).await, [number]);
}

/// Whoever has it loses it, and nothing of it is left.
pub async fn an_endpoint_that_was_removed_is_nobodys<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = Process::start(subject, "one").await;
    let mut teller = process.take().await.unwrap();
    teller.say(Said::failed(1, number, 1, HOUR)).await.unwrap();
    subject.remove().await;
    assert!(teller.say(Said::failed(1, number, 2, HOUR)).await.is_none());
    assert!(process.take().await.is_none());
    assert_eq!(subject.standing().await, None);
    assert_eq!(subject.row(number).await, None);
}

//! Whose an endpoint is.

use std::time::Duration;

use super::subject::OutboxSubject;
use super::teller::{HOUR, Process, Said, due, taken};
use crate::delivery::outbox::LEASE;

const SECOND: Duration = Duration::from_secs(1);

/// Who has taken it has it: neither another node takes it, nor the same start twice.
pub async fn one_process_has_an_endpoint<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let [one, other] = [
        Process::start(subject, "one").await,
        Process::start(subject, "other").await,
    ];
    let teller = one.take().await;
    assert!(teller.is_some());
    assert!(other.take().await.is_none(), "it is the first one's");
    assert!(one.take().await.is_none(), "and its once");
}

/// Where no event is new and nothing is due, nobody takes it.
pub async fn an_endpoint_with_nothing_to_do_is_not_taken<S: OutboxSubject>(subject: &S) {
    let process = Process::start(subject, "one").await;
    assert!(process.take().await.is_none(), "there is no event");
    subject.commit(1).await;
    let teller = process.take().await.expect("there is one");
    teller.release(Said::seen_to(1)).await;
    assert!(process.take().await.is_none(), "it was seen to");
}

/// A turn that writes renews the lease.
pub async fn a_lease_that_is_kept_stays<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let other = Process::start(subject, "other").await;
    let mut teller = taken(subject, "one").await;
    for _ in 0..3 {
        subject.pass(LEASE / 2).await;
        assert!(teller.say(Said::default()).await.is_some());
        assert!(other.take().await.is_none());
    }
}

/// Who says nothing for longer than a lease loses it to whoever comes, and then writes nothing.
pub async fn a_lease_that_ran_out_is_anothers<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let other = Process::start(subject, "other").await;
    let mut teller = taken(subject, "one").await;
    subject.pass(LEASE + SECOND).await;
    let mut second = other.take().await.expect("the lease has run out");
    assert!(teller.say(Said::failed(1, number, 1, HOUR)).await.is_none());
    assert_eq!(subject.row(number).await, None);
    assert_eq!(subject.standing().await.unwrap().cursor, 0);
    assert_eq!(second.numbers(due(0)).await, [number], "and the second goes on");
}

/// Who gives it back has it no more.
pub async fn a_lease_that_was_given_back_is_anybodys<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let other = Process::start(subject, "other").await;
    taken(subject, "one").await.release(Said::default()).await;
    assert!(other.take().await.is_some());
}

/// A node that starts again does not wait for the lease of its last life, which is shut out.
pub async fn a_later_start_takes_over_at_once<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let first = Process::start(subject, "one").await;
    let mut teller = first.take().await.expect("there is an event");
    let mut second = taken(subject, "one").await;
    assert!(teller.say(Said::seen_to(1)).await.is_none(), "it is shut out");
    assert!(first.take().await.is_none(), "for good");
    assert!(second.say(Said::seen_to(1)).await.is_some());
}

/// After a crash that has forgotten a taking the next one has the same number; who took it before is shut out all the same.
pub async fn a_taking_that_was_forgotten_is_nobodys<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    subject.forget_taking().await;
    let mut second = taken(subject, "other").await;
    assert_eq!(teller.opened.lease, second.opened.lease);
    assert!(teller.say(Said::failed(1, number, 1, HOUR)).await.is_none());
    assert!(teller.read(due(0)).await.is_none());
    assert!(second.say(Said::seen_to(number)).await.is_some());
    assert_eq!(subject.row(number).await, None);
}

/// Who has lost the lease is not shown what to send.
pub async fn who_lost_the_lease_reads_nothing<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let mut teller = taken(subject, "one").await;
    assert_eq!(teller.numbers(due(0)).await, [1]);
    let _second = taken(subject, "one").await;
    assert!(teller.read(due(0)).await.is_none());
}

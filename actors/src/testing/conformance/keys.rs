//! What an idempotency key does to a commit: claimed once, known for its time, waited for while another decides.

use std::time::Duration;

use super::desk::{Desk, FUNDS, another_answer, must_wait, own_answer};
use super::subject::{OtherTransaction, Subject};
use crate::domain::ledger::Receipt;
use crate::journal::Verdict;
use crate::testing::build;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A key that another transaction has claimed and not committed is waited for; it commits, and the key is known.
pub async fn a_key_under_way_elsewhere_is_waited_for<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("k", 700)];
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    other.commit().await;
    assert_eq!(under_way.await.unwrap(), [Verdict::KeyKnown(another_answer())]);
    let unpaid = Receipt {
        sequence: 1,
        balance: build::minor(FUNDS),
    };
    assert_eq!(subject.wallet(desk.wallet()).await, Some(unpaid));
    assert_eq!(subject.order(build::order_id("k")).await, None);
}

/// A key that another transaction gives up is free for the one that waited.
pub async fn a_key_given_up_elsewhere_is_claimed<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("k", 700)];
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    other.rollback().await;
    let verdicts = under_way.await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
    desk.assert_present(&records[0]).await;
}

/// Guard `key`: a known key keeps its answer, byte for byte, and the new record writes nothing; the rest of its batch does.
pub async fn a_known_key_is_answered_with_its_bytes<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let first = desk.debit("a", 700);
    desk.line.must_commit(&first).await;
    let again = build::under_key("a", desk.debit("again", 700));
    let other = desk.debit("other", 200);
    let verdicts = desk.line.commit(&[again.clone(), other.clone()]).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_answer(&first)));
    assert!(matches!(verdicts[1], Verdict::Committed(Some(_))), "{verdicts:?}");
    desk.assert_present(&first).await;
    desk.assert_present(&other).await;
    assert_eq!(subject.order(build::order_id("again")).await, None);
    assert_eq!(
        subject.wallet(desk.wallet()).await.unwrap().balance,
        build::minor(FUNDS - 900)
    );
}

/// A record that is sent twice is written once.
pub async fn a_record_sent_again_is_known<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let record = desk.debit("a", 700);
    desk.line.must_commit(&record).await;
    assert_eq!(
        desk.line.commit_one(&record).await,
        Verdict::KeyKnown(own_answer(&record))
    );
    assert_eq!(
        subject.wallet(desk.wallet()).await.unwrap().balance,
        build::minor(FUNDS - 700)
    );
}

/// A partner's key is known until its 24 hours are over, half a minute before too.
pub async fn a_key_is_known_for_its_day<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let first = desk.debit("a", 700);
    desk.line.must_commit(&first).await;
    subject
        .age_key(first.claim.key, DAY - Duration::from_secs(30))
        .await;
    let again = build::under_key("a", desk.debit("again", 700));
    assert_eq!(
        desk.line.commit_one(&again).await,
        Verdict::KeyKnown(own_answer(&first))
    );
    assert_eq!(
        desk.store.find_answer(first.claim.key).await.unwrap(),
        Some(own_answer(&first))
    );
}

/// Guard `key-expiry`: a key that is a day old has no answer, and is claimed again with a new one.
pub async fn a_key_is_free_after_its_day<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let first = desk.debit("a", 700);
    desk.line.must_commit(&first).await;
    subject.age_key(first.claim.key, DAY).await;
    assert_eq!(desk.store.find_answer(first.claim.key).await.unwrap(), None);
    let mut again = build::under_key("a", desk.debit("again", 700));
    again.claim.answer = build::answer("another order");
    assert!(matches!(
        desk.line.commit_one(&again).await,
        Verdict::Committed(Some(_))
    ));
    desk.assert_present(&again).await;
    assert_eq!(
        desk.store.find_answer(first.claim.key).await.unwrap(),
        Some(own_answer(&again))
    );
    assert!(
        subject.order(build::order_id("a")).await.is_some(),
        "the first order stands"
    );
}

/// Guard `key-forever`: the reference of a top-up is known for ever.
pub async fn a_key_kept_for_ever_has_no_end<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let top_up = build::top_up(desk.wallet(), "wire-1", 500);
    desk.line.must_commit(&top_up).await;
    assert!(subject.kept(top_up.claim.key).await.unwrap().for_ever);
    subject.age_key(top_up.claim.key, DAY * 3_650).await;
    assert_eq!(
        desk.line.commit_one(&top_up).await,
        Verdict::KeyKnown(own_answer(&top_up))
    );
    assert_eq!(
        desk.store.find_answer(top_up.claim.key).await.unwrap(),
        Some(own_answer(&top_up))
    );
    assert_eq!(
        subject.wallet(desk.wallet()).await.unwrap().balance,
        build::minor(FUNDS + 500)
    );
}

/// An unknown key has no answer.
pub async fn an_unknown_key_has_no_answer<S: Subject>(subject: &S) {
    let desk = Desk::open(subject).await;
    assert_eq!(desk.store.find_answer(build::key("nobody")).await.unwrap(), None);
}

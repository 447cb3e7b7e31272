//! Conformance cases: idempotency keys in a commit.

use std::time::Duration;

use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_domain::ledger::WalletState;

use super::fixture::{Fixture, INITIAL_BALANCE, assert_blocked, other_response, own_response};
use super::subject::{OtherTransaction, Subject};
use crate::build;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The commit blocks on a key that another transaction has inserted; that one commits, and the key is known.
pub async fn key_of_open_transaction_blocks_commit<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("k", 700)];
    let transaction = subject
        .begin_insert_key(records[0].claim.key, &other_response())
        .await;
    let mut blocked = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut blocked).await;
    transaction.commit().await;
    assert_eq!(blocked.await.unwrap(), [Verdict::KeyKnown(other_response())]);
    let unpaid = WalletState {
        sequence: 1,
        balance: build::minor(INITIAL_BALANCE),
    };
    assert_eq!(subject.wallet(fixture.wallet()).await, Some(unpaid));
    assert_eq!(subject.order(build::order_id("k")).await, None);
}

pub async fn key_rolled_back_elsewhere_is_claimed<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("k", 700)];
    let transaction = subject
        .begin_insert_key(records[0].claim.key, &other_response())
        .await;
    let mut blocked = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut blocked).await;
    transaction.rollback().await;
    let verdicts = blocked.await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
    fixture.assert_present(&records[0]).await;
}

/// Guard `key`: a known key keeps its response byte for byte; the new record writes nothing, the rest of its batch does.
pub async fn known_key_returns_its_stored_bytes<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let first = fixture.pending_order("a", 700);
    fixture.lane.must_commit(&first).await;
    let again = build::with_key("a", fixture.pending_order("again", 700));
    let other = fixture.pending_order("other", 200);
    let verdicts = fixture.lane.commit(&[again.clone(), other.clone()]).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_response(&first)));
    assert!(matches!(verdicts[1], Verdict::Committed(Some(_))), "{verdicts:?}");
    fixture.assert_present(&first).await;
    fixture.assert_present(&other).await;
    assert_eq!(subject.order(build::order_id("again")).await, None);
    assert_eq!(
        subject.wallet(fixture.wallet()).await.unwrap().balance,
        build::minor(INITIAL_BALANCE - 900)
    );
}

pub async fn record_sent_twice_is_known<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let record = fixture.pending_order("a", 700);
    fixture.lane.must_commit(&record).await;
    assert_eq!(
        fixture.lane.commit_one(&record).await,
        Verdict::KeyKnown(own_response(&record))
    );
    assert_eq!(
        subject.wallet(fixture.wallet()).await.unwrap().balance,
        build::minor(INITIAL_BALANCE - 700)
    );
}

/// A key is still known half a minute before its 24 hours end.
pub async fn key_is_known_before_expiry<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let first = fixture.pending_order("a", 700);
    fixture.lane.must_commit(&first).await;
    subject
        .age_key(first.claim.key, DAY - Duration::from_secs(30))
        .await;
    let again = build::with_key("a", fixture.pending_order("again", 700));
    assert_eq!(
        fixture.lane.commit_one(&again).await,
        Verdict::KeyKnown(own_response(&first))
    );
    assert_eq!(
        fixture.store.find_response(first.claim.key).await.unwrap(),
        Some(own_response(&first))
    );
}

/// Guard `key-expiry`: a key that is 24 hours old has no response and can be claimed again.
pub async fn key_is_free_after_expiry<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let first = fixture.pending_order("a", 700);
    fixture.lane.must_commit(&first).await;
    subject.age_key(first.claim.key, DAY).await;
    assert_eq!(fixture.store.find_response(first.claim.key).await.unwrap(), None);
    let mut again = build::with_key("a", fixture.pending_order("again", 700));
    again.claim.response = build::response("another order");
    assert!(matches!(
        fixture.lane.commit_one(&again).await,
        Verdict::Committed(Some(_))
    ));
    fixture.assert_present(&again).await;
    assert_eq!(
        fixture.store.find_response(first.claim.key).await.unwrap(),
        Some(own_response(&again))
    );
    assert!(
        subject.order(build::order_id("a")).await.is_some(),
        "the first order remains"
    );
}

/// Guard `key-forever`: the reference of a top-up never expires.
pub async fn key_without_expiry_never_expires<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let top_up = build::top_up(fixture.wallet(), "wire-1", 500);
    fixture.lane.must_commit(&top_up).await;
    assert!(subject.stored_key(top_up.claim.key).await.unwrap().never_expires);
    subject.age_key(top_up.claim.key, DAY * 3_650).await;
    assert_eq!(
        fixture.lane.commit_one(&top_up).await,
        Verdict::KeyKnown(own_response(&top_up))
    );
    assert_eq!(
        fixture.store.find_response(top_up.claim.key).await.unwrap(),
        Some(own_response(&top_up))
    );
    assert_eq!(
        subject.wallet(fixture.wallet()).await.unwrap().balance,
        build::minor(INITIAL_BALANCE + 500)
    );
}

pub async fn unknown_key_has_no_response<S: Subject>(subject: &S) {
    let fixture = Fixture::create(subject).await;
    assert_eq!(
        fixture.store.find_response(build::key("nobody")).await.unwrap(),
        None
    );
}

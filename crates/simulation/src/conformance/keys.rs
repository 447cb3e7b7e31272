//! Conformance cases: idempotency keys in a commit.

use std::time::Duration;

use vouchsafe_actors::ports::record::Verdict;

use super::fixture::{
    Fixture, INITIAL_BALANCE, assert_committed, other_response, own_response, wallet_state,
};
use super::subject::{OtherTransaction, Subject};
use crate::build;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The commit blocks on a key that another transaction has inserted; that one commits, and the key is known.
pub async fn key_of_open_transaction_blocks_commit<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("k", 700)];
    let transaction = fixture.begin_insert_key_of(&records[0]).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    assert_eq!(verdicts, [Verdict::KeyKnown(other_response())]);
    let unpaid = wallet_state(1, INITIAL_BALANCE);
    assert_eq!(fixture.wallet_state().await, Some(unpaid));
    assert_eq!(fixture.subject.order(build::order_id("k")).await, None);
}

pub async fn key_rolled_back_elsewhere_is_claimed<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("k", 700)];
    let transaction = fixture.begin_insert_key_of(&records[0]).await;
    let verdicts = fixture.commit_blocked(&records, transaction.rollback()).await;
    assert_committed(&verdicts);
    fixture.assert_present(&records[0]).await;
}

/// Guard `key`: a known key keeps its response byte for byte; the new record writes nothing, the rest of its
/// batch does.
pub async fn known_key_returns_its_stored_bytes<S: Subject>(mut fixture: Fixture<'_, S>) {
    let first = fixture.pending_order("a", 700);
    fixture.must_commit(&first).await;
    let again = build::with_key("a", fixture.pending_order("again", 700));
    let other = fixture.pending_order("other", 200);
    let verdicts = fixture.commit(&[again.clone(), other.clone()]).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_response(&first)));
    assert!(matches!(verdicts[1], Verdict::Committed(Some(_))), "{verdicts:?}");
    fixture.assert_present(&first).await;
    fixture.assert_present(&other).await;
    assert_eq!(fixture.subject.order(build::order_id("again")).await, None);
    assert_eq!(fixture.balance().await, INITIAL_BALANCE - 900);
}

pub async fn record_sent_twice_is_known<S: Subject>(mut fixture: Fixture<'_, S>) {
    let record = fixture.pending_order("a", 700);
    fixture.must_commit(&record).await;
    fixture.assert_known(&record, &record).await;
    assert_eq!(fixture.balance().await, INITIAL_BALANCE - 700);
}

/// A key is still known half a minute before its 24 hours end.
pub async fn key_is_known_before_expiry<S: Subject>(mut fixture: Fixture<'_, S>) {
    let first = fixture.pending_order("a", 700);
    fixture.must_commit(&first).await;
    fixture
        .subject
        .age_key(first.claim.key, DAY - Duration::from_secs(30))
        .await;
    let again = build::with_key("a", fixture.pending_order("again", 700));
    fixture.assert_known(&again, &first).await;
    fixture.assert_stored(first.claim.key, &first).await;
}

/// Guard `key-expiry`: a key that is 24 hours old has no response and can be claimed again.
pub async fn key_is_free_after_expiry<S: Subject>(mut fixture: Fixture<'_, S>) {
    let first = fixture.pending_order("a", 700);
    fixture.must_commit(&first).await;
    fixture.subject.age_key(first.claim.key, DAY).await;
    assert_eq!(fixture.find_response(first.claim.key).await, None);
    let mut again = build::with_key("a", fixture.pending_order("again", 700));
    again.claim.response = build::response("another order");
    fixture.must_commit(&again).await;
    fixture.assert_present(&again).await;
    fixture.assert_stored(first.claim.key, &again).await;
    assert!(
        fixture.subject.order(build::order_id("a")).await.is_some(),
        "the first order remains"
    );
}

/// Guard `key-forever`: the reference of a top-up never expires.
pub async fn key_without_expiry_never_expires<S: Subject>(mut fixture: Fixture<'_, S>) {
    let top_up = build::top_up(fixture.wallet(), "wire-1", 500);
    fixture.must_commit(&top_up).await;
    assert!(
        fixture
            .subject
            .stored_key(top_up.claim.key)
            .await
            .unwrap()
            .never_expires
    );
    fixture.subject.age_key(top_up.claim.key, DAY * 3_650).await;
    fixture.assert_known(&top_up, &top_up).await;
    fixture.assert_stored(top_up.claim.key, &top_up).await;
    assert_eq!(fixture.balance().await, INITIAL_BALANCE + 500);
}

pub async fn unknown_key_has_no_response<S: Subject>(fixture: Fixture<'_, S>) {
    assert_eq!(fixture.find_response(build::key("nobody")).await, None);
}

//! Conformance cases: lane recovery after an unknown outcome, and fencing of late statements.

use vouchsafe_actors::ports::record::{StaleReason, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, RecoverError};
use vouchsafe_domain::store_error::CommitError;

use super::fixture::{
    Fixture, INITIAL_BALANCE, NODE, STALE_BALANCE, assert_blocked, assert_committed, other_response,
    own_response, wallet_state,
};
use super::lane_client::LaneClient;
use super::subject::{CommitFault, OtherTransaction, Subject};
use crate::build;

/// Guard `lane-batch`: a batch whose response was lost is found committed; reads return its receipts.
pub async fn lost_response_is_recovered_as_committed<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let records = [
        fixture.delivered_order("a", &gifts),
        build::refusal(fixture.partner, "b"),
    ];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::ResponseLost, &records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    let newest = fixture.wallet_state().await;
    assert_eq!(newest.unwrap().sequence, 2);
    let verdicts = fixture.lane.read_verdicts(&records).await;
    assert_eq!(verdicts, [Verdict::Committed(newest), Verdict::Committed(None)]);
    fixture.assert_present(&records[0]).await;
    fixture.must_commit(&fixture.pending_order("next", 100)).await;
}

pub async fn unsent_batch_is_recovered_as_not_written<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("a", 700)];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::NeverSent, &records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
    fixture.assert_absent(&records[0]).await;
    let stale = Verdict::Stale(StaleReason::Unclear);
    assert_eq!(fixture.lane.read_verdicts(&records).await, [stale]);
    fixture.must_commit(&records[0]).await;
    fixture.assert_present(&records[0]).await;
}

pub async fn verdicts_are_recovered_by_reads<S: Subject>(mut fixture: Fixture<'_, S>) {
    let first = fixture.pending_order("a", 700);
    fixture.must_commit(&first).await;
    let mut again = build::with_key("a", fixture.pending_order("again", 700));
    again.claim.response = build::response("another order");
    let short = fixture.pending_order("short", INITIAL_BALANCE);
    let records = [again, fixture.pending_order("b", 200), short];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::ResponseLost, &records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    let verdicts = fixture.lane.read_verdicts(&records).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_response(&first)));
    assert_eq!(verdicts[1], Verdict::Committed(fixture.wallet_state().await));
    assert!(
        matches!(verdicts[2], Verdict::Stale(stale) if stale.is_balance_suspect()),
        "{verdicts:?}"
    );
}

/// Guard `lane`: after a lane was reopened, batches of its old handle are fenced.
pub async fn reopened_lane_fences_its_old_handle<S: Subject>(mut fixture: Fixture<'_, S>) {
    let mut newer = LaneClient::open(&fixture.store, 0).await;
    let record = fixture.pending_order("a", 700);
    assert_eq!(
        fixture.lane.send(std::slice::from_ref(&record)).await,
        Err(CommitError::Fenced)
    );
    fixture.assert_absent(&record).await;
    newer.must_commit(&record).await;
}

/// Guard `lane`: a statement that arrives after the recovery of its lane writes nothing, and the lane
/// continues.
pub async fn late_statement_after_recovery_writes_nothing<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("a", 700)];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::Delayed, &records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
    fixture.subject.deliver_delayed_commits().await;
    fixture.assert_absent(&records[0]).await;
    fixture.must_commit(&fixture.pending_order("b", 100)).await;
    fixture.assert_absent(&records[0]).await;
}

pub async fn late_statement_before_recovery_is_committed<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("a", 700)];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::Delayed, &records).await;
    fixture.subject.deliver_delayed_commits().await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    fixture.assert_present(&records[0]).await;
}

/// Recovers a batch that lost its connection and that a transaction blocks until `ends`; recovery waits for
/// it.
async fn recover_running<S: Subject>(
    fixture: &mut Fixture<'_, S>,
    ends: impl AsyncFnOnce(S::Transaction),
) -> Vec<Verdict> {
    let records = [fixture.pending_order("a", 700)];
    fixture.warm_up().await;
    let transaction = fixture.begin_insert_key_of(&records[0]).await;
    fixture.commit_lost(CommitFault::Detached, &records).await;
    fixture.subject.wait_for_blocked(1).await;
    let mut recovery = fixture.lane.recover();
    assert_blocked(fixture.subject, 2, &mut recovery).await;
    ends(transaction).await;
    assert_eq!(recovery.await, Ok(BatchOutcome::Committed));
    fixture.lane.read_verdicts(&records).await
}

/// Recovery blocks until a batch that lost its connection ends, and then reports it as committed.
pub async fn recovery_waits_for_running_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let rollback = async |transaction: S::Transaction| transaction.rollback().await;
    let paid = wallet_state(2, INITIAL_BALANCE - 700);
    assert_eq!(
        recover_running(&mut fixture, rollback).await,
        [Verdict::Committed(Some(paid))]
    );
}

/// The batch commits without the record, whose key became known meanwhile.
pub async fn recovery_finds_key_known_meanwhile<S: Subject>(mut fixture: Fixture<'_, S>) {
    let commit = async |transaction: S::Transaction| transaction.commit().await;
    assert_eq!(
        recover_running(&mut fixture, commit).await,
        [Verdict::KeyKnown(other_response())]
    );
}

/// Batch numbers restart with the node: recovery does not mistake a batch of the previous incarnation for its
/// own.
pub async fn reopened_lane_restarts_batch_numbers<S: Subject>(mut fixture: Fixture<'_, S>) {
    for name in ["a", "b"] {
        fixture.must_commit(&fixture.pending_order(name, 100)).await;
    }
    let written = fixture.lane.batch;
    fixture.restart().await;
    fixture.warm_up().await;
    let records = [fixture.pending_order("c", 100)];
    fixture.commit_lost(CommitFault::NeverSent, &records).await;
    assert_eq!(
        fixture.lane.batch, written,
        "the case requires equal batch numbers"
    );
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
}

/// Guard `incarnation`: an earlier start of a node cannot recover or open a lane.
pub async fn superseded_node_cannot_recover<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = [fixture.pending_order("a", 100)];
    fixture.warm_up().await;
    fixture.commit_lost(CommitFault::NeverSent, &records).await;
    fixture.subject.start_node(NODE).await;
    assert_eq!(fixture.lane.recover().await, Err(RecoverError::Superseded));
    let opened = fixture.store.open_lane(1).await;
    assert!(
        matches!(opened, Err(RecoverError::Superseded)),
        "an earlier incarnation cannot open a lane either"
    );
}

pub async fn lanes_do_not_block_each_other<S: Subject>(mut fixture: Fixture<'_, S>) {
    let other_partner = fixture.add_partner(2, 1_000).await;
    let mut second = fixture.second_lane().await;
    let records = [fixture.pending_order("a", 700)];
    let transaction = fixture.begin_insert_key_of(&records[0]).await;
    let [whole, more] =
        [("b", 1_000), ("c", 1)].map(|(name, amount)| build::pending_order(other_partner, name, amount));
    let verdicts = fixture
        .commit_blocked(&records, async {
            second.must_commit(&whole).await;
            assert_eq!(second.commit_one(&more).await, STALE_BALANCE);
            transaction.rollback().await;
        })
        .await;
    assert_committed(&verdicts);
}

//! Conformance cases: lane recovery after an unknown outcome, and fencing of late statements.

use vouchsafe_actors::ports::record::{StaleReason, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, CommitError, RecoverError};
use vouchsafe_domain::ledger::WalletState;

use super::fixture::{
    Fixture, INITIAL_BALANCE, LaneClient, NODE, STALE_BALANCE, assert_blocked, other_response, own_response,
};
use super::subject::{CommitFault, OtherTransaction, Subject};
use crate::build;

/// Guard `lane-batch`: a batch whose response was lost is found committed; reads return its receipts.
pub async fn lost_response_is_recovered_as_committed<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let gifts = fixture.add_stock(1).await;
    let records = [
        fixture.delivered_order("a", &gifts),
        build::refusal(fixture.partner, "b"),
    ];
    fixture.inject_fault(CommitFault::ResponseLost).await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    let newest = subject.wallet(fixture.wallet()).await;
    assert_eq!(newest.unwrap().sequence, 2);
    let verdicts = fixture.lane.read_verdicts(&records).await;
    assert_eq!(verdicts, [Verdict::Committed(newest), Verdict::Committed(None)]);
    fixture.assert_present(&records[0]).await;
    fixture
        .lane
        .must_commit(&fixture.pending_order("next", 100))
        .await;
}

pub async fn unsent_batch_is_recovered_as_not_written<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("a", 700)];
    fixture.inject_fault(CommitFault::NeverSent).await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
    fixture.assert_absent(&records[0]).await;
    let stale = Verdict::Stale(StaleReason::Unclear);
    assert_eq!(fixture.lane.read_verdicts(&records).await, [stale]);
    fixture.lane.must_commit(&records[0]).await;
    fixture.assert_present(&records[0]).await;
}

pub async fn verdicts_are_recovered_by_reads<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let first = fixture.pending_order("a", 700);
    fixture.lane.must_commit(&first).await;
    let mut again = build::with_key("a", fixture.pending_order("again", 700));
    again.claim.response = build::response("another order");
    let short = fixture.pending_order("short", INITIAL_BALANCE);
    let records = [again, fixture.pending_order("b", 200), short];
    fixture.inject_fault(CommitFault::ResponseLost).await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    let verdicts = fixture.lane.read_verdicts(&records).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_response(&first)));
    assert_eq!(
        verdicts[1],
        Verdict::Committed(subject.wallet(fixture.wallet()).await)
    );
    assert!(
        matches!(verdicts[2], Verdict::Stale(stale) if stale.is_balance_suspect()),
        "{verdicts:?}"
    );
}

/// Guard `lane`: after a lane was reopened, batches of its old handle are fenced.
pub async fn reopened_lane_fences_its_old_handle<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let mut newer = LaneClient::open(&fixture.store, 0).await;
    let record = fixture.pending_order("a", 700);
    assert_eq!(
        fixture.lane.send(std::slice::from_ref(&record)).await,
        Err(CommitError::Fenced)
    );
    fixture.assert_absent(&record).await;
    newer.must_commit(&record).await;
}

/// Guard `lane`: a statement that arrives after the recovery of its lane writes nothing, and the lane continues.
pub async fn late_statement_after_recovery_writes_nothing<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("a", 700)];
    fixture.inject_fault(CommitFault::Delayed).await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
    subject.deliver_delayed_commits().await;
    fixture.assert_absent(&records[0]).await;
    fixture.lane.must_commit(&fixture.pending_order("b", 100)).await;
    fixture.assert_absent(&records[0]).await;
}

pub async fn late_statement_before_recovery_is_committed<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("a", 700)];
    fixture.inject_fault(CommitFault::Delayed).await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    subject.deliver_delayed_commits().await;
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::Committed));
    fixture.assert_present(&records[0]).await;
}

/// Recovery blocks until a batch that lost its connection ends, and then reports it as committed.
pub async fn recovery_waits_for_running_batch<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("a", 700)];
    fixture.inject_fault(CommitFault::Detached).await;
    let transaction = subject
        .begin_insert_key(records[0].claim.key, &other_response())
        .await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    subject.wait_for_blocked(1).await;
    let mut recovery = fixture.lane.recover();
    assert_blocked(subject, 2, &mut recovery).await;
    transaction.rollback().await;
    assert_eq!(recovery.await, Ok(BatchOutcome::Committed));
    let paid = WalletState {
        sequence: 2,
        balance: build::minor(INITIAL_BALANCE - 700),
    };
    assert_eq!(
        fixture.lane.read_verdicts(&records).await,
        [Verdict::Committed(Some(paid))]
    );
}

/// The batch commits without the record, whose key became known meanwhile.
pub async fn recovery_finds_key_known_meanwhile<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let records = [fixture.pending_order("a", 700)];
    fixture.inject_fault(CommitFault::Detached).await;
    let transaction = subject
        .begin_insert_key(records[0].claim.key, &other_response())
        .await;
    fixture.lane.commit_with_unknown_outcome(&records).await;
    subject.wait_for_blocked(1).await;
    let mut recovery = fixture.lane.recover();
    assert_blocked(subject, 2, &mut recovery).await;
    transaction.commit().await;
    assert_eq!(recovery.await, Ok(BatchOutcome::Committed));
    assert_eq!(
        fixture.lane.read_verdicts(&records).await,
        [Verdict::KeyKnown(other_response())]
    );
}

/// Batch numbers restart with the node: recovery does not mistake a batch of the previous incarnation for its own.
pub async fn reopened_lane_restarts_batch_numbers<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    for name in ["a", "b"] {
        fixture.lane.must_commit(&fixture.pending_order(name, 100)).await;
    }
    let written = fixture.lane.batch;
    fixture.store = subject.start_node(NODE).await;
    fixture.lane = LaneClient::open(&fixture.store, 0).await;
    fixture.inject_fault(CommitFault::NeverSent).await;
    let records = [fixture.pending_order("c", 100)];
    fixture.lane.commit_with_unknown_outcome(&records).await;
    assert_eq!(
        fixture.lane.batch, written,
        "the case requires equal batch numbers"
    );
    assert_eq!(fixture.lane.recover().await, Ok(BatchOutcome::NotWritten));
}

/// Guard `incarnation`: an earlier start of a node cannot recover or open a lane.
pub async fn superseded_node_cannot_recover<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    fixture.inject_fault(CommitFault::NeverSent).await;
    fixture
        .lane
        .commit_with_unknown_outcome(&[fixture.pending_order("a", 100)])
        .await;
    subject.start_node(NODE).await;
    assert_eq!(fixture.lane.recover().await, Err(RecoverError::Superseded));
    let opened = fixture.store.open_lane(1).await;
    assert!(
        matches!(opened, Err(RecoverError::Superseded)),
        "an earlier incarnation cannot open a lane either"
    );
}

pub async fn lanes_do_not_block_each_other<S: Subject>(subject: &S) {
    let mut fixture = Fixture::create(subject).await;
    let other_partner = build::partner(2);
    subject.add_partner(other_partner).await;
    subject
        .top_up(build::usd_wallet(other_partner), build::minor(1_000))
        .await;
    let mut second = LaneClient::open(&fixture.store, 1).await;
    let records = [fixture.pending_order("a", 700)];
    let transaction = subject
        .begin_insert_key(records[0].claim.key, &other_response())
        .await;
    let mut blocked = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut blocked).await;
    second
        .must_commit(&build::pending_order(other_partner, "b", 1_000))
        .await;
    assert_eq!(
        second
            .commit_one(&build::pending_order(other_partner, "c", 1))
            .await,
        STALE_BALANCE
    );
    transaction.rollback().await;
    assert!(matches!(
        blocked.await.unwrap()[..],
        [Verdict::Committed(Some(_))]
    ));
}

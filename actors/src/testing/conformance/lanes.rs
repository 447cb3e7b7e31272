//! How a lane finds out what became of a batch, and how whatever is left of it is shut out.

use super::desk::{Desk, FUNDS, Line, NODE, SHORT, another_answer, must_wait, own_answer};
use super::subject::{CommitFault, OtherTransaction, Subject};
use crate::domain::ledger::Receipt;
use crate::journal::{Stale, Verdict};
use crate::store::{BatchFate, CommitError, RecoverError};
use crate::testing::build;

/// Guard `lane-batch`: a batch whose answer was lost is found committed; reads give the receipts of then.
pub async fn a_lost_answer_is_found_committed<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let records = [desk.order("a", &gifts), build::refusal(desk.partner, "b")];
    desk.arm(CommitFault::AnswerLost).await;
    desk.line.lose(&records).await;
    assert_eq!(desk.line.recover().await, Ok(BatchFate::Committed));
    let newest = subject.wallet(desk.wallet()).await;
    assert_eq!(newest.unwrap().sequence, 2);
    let verdicts = desk.line.verdicts(&records).await;
    assert_eq!(verdicts, [Verdict::Committed(newest), Verdict::Committed(None)]);
    desk.assert_present(&records[0]).await;
    desk.line.must_commit(&desk.debit("next", 100)).await;
}

/// A batch that never arrived is found not written, its verdicts say so, and the lane goes on.
pub async fn a_batch_that_never_arrived_is_not_written<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("a", 700)];
    desk.arm(CommitFault::NeverSent).await;
    desk.line.lose(&records).await;
    assert_eq!(desk.line.recover().await, Ok(BatchFate::NotWritten));
    desk.assert_absent(&records[0]).await;
    let stale = Verdict::Stale(Stale::Unclear);
    assert_eq!(desk.line.verdicts(&records).await, [stale]);
    desk.line.must_commit(&records[0]).await;
    desk.assert_present(&records[0]).await;
}

/// Reads tell a record that committed from one whose key was known.
pub async fn verdicts_are_read_as_they_were<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let first = desk.debit("a", 700);
    desk.line.must_commit(&first).await;
    let mut again = build::under_key("a", desk.debit("again", 700));
    again.claim.answer = build::answer("another order");
    let short = desk.debit("short", FUNDS);
    let records = [again, desk.debit("b", 200), short];
    desk.arm(CommitFault::AnswerLost).await;
    desk.line.lose(&records).await;
    assert_eq!(desk.line.recover().await, Ok(BatchFate::Committed));
    let verdicts = desk.line.verdicts(&records).await;
    assert_eq!(verdicts[0], Verdict::KeyKnown(own_answer(&first)));
    assert_eq!(
        verdicts[1],
        Verdict::Committed(subject.wallet(desk.wallet()).await)
    );
    assert!(
        matches!(verdicts[2], Verdict::Stale(stale) if stale.doubts_balance()),
        "{verdicts:?}"
    );
}

/// Guard `lane`: once a lane was opened anew, what its old handle sends is fenced off.
pub async fn a_lane_that_was_taken_over_writes_nothing<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let mut newer = Line::open(&desk.store, 0).await;
    let record = desk.debit("a", 700);
    assert_eq!(
        desk.line.send(std::slice::from_ref(&record)).await,
        Err(CommitError::Fenced)
    );
    desk.assert_absent(&record).await;
    newer.must_commit(&record).await;
}

/// Guard `lane`: a statement that arrives after the recovery of its lane writes nothing, and the lane goes on.
pub async fn a_late_statement_writes_nothing<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("a", 700)];
    desk.arm(CommitFault::Late).await;
    desk.line.lose(&records).await;
    assert_eq!(desk.line.recover().await, Ok(BatchFate::NotWritten));
    subject.deliver_late().await;
    desk.assert_absent(&records[0]).await;
    desk.line.must_commit(&desk.debit("b", 100)).await;
    desk.assert_absent(&records[0]).await;
}

/// A statement that arrives late, but before the recovery, is found committed.
pub async fn a_late_statement_before_recovery_counts<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("a", 700)];
    desk.arm(CommitFault::Late).await;
    desk.line.lose(&records).await;
    subject.deliver_late().await;
    assert_eq!(desk.line.recover().await, Ok(BatchFate::Committed));
    desk.assert_present(&records[0]).await;
}

/// Recovery waits for a batch that runs on without its connection, and then says what became of it: written.
pub async fn recovery_waits_for_a_running_batch<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("a", 700)];
    desk.arm(CommitFault::Adrift).await;
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    desk.line.lose(&records).await;
    subject.until_waiting(1).await;
    let mut recovery = desk.line.recover();
    must_wait(subject, 2, &mut recovery).await;
    other.rollback().await;
    assert_eq!(recovery.await, Ok(BatchFate::Committed));
    let paid = Receipt {
        sequence: 2,
        balance: build::minor(FUNDS - 700),
    };
    assert_eq!(
        desk.line.verdicts(&records).await,
        [Verdict::Committed(Some(paid))]
    );
}

/// The same, where the batch commits without the record: its key became known meanwhile.
pub async fn recovery_finds_a_key_that_became_known<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = [desk.debit("a", 700)];
    desk.arm(CommitFault::Adrift).await;
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    desk.line.lose(&records).await;
    subject.until_waiting(1).await;
    let mut recovery = desk.line.recover();
    must_wait(subject, 2, &mut recovery).await;
    other.commit().await;
    assert_eq!(recovery.await, Ok(BatchFate::Committed));
    assert_eq!(
        desk.line.verdicts(&records).await,
        [Verdict::KeyKnown(another_answer())]
    );
}

/// After a restart a lane counts anew: the last batch of the start before is not taken for one of its own.
pub async fn a_reopened_lane_counts_anew<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    for name in ["a", "b"] {
        desk.line.must_commit(&desk.debit(name, 100)).await;
    }
    let written = desk.line.batch;
    desk.store = subject.start_node(NODE).await;
    desk.line = Line::open(&desk.store, 0).await;
    desk.arm(CommitFault::NeverSent).await;
    let records = [desk.debit("c", 100)];
    desk.line.lose(&records).await;
    assert_eq!(desk.line.batch, written, "the case rests on the same number");
    assert_eq!(desk.line.recover().await, Ok(BatchFate::NotWritten));
}

/// Guard `incarnation`: a node that was started again cannot take up a lane of its earlier start.
pub async fn a_superseded_node_cannot_recover<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    desk.arm(CommitFault::NeverSent).await;
    desk.line.lose(&[desk.debit("a", 100)]).await;
    subject.start_node(NODE).await;
    assert_eq!(desk.line.recover().await, Err(RecoverError::Superseded));
    let opened = desk.store.open_lane(1).await;
    assert!(
        matches!(opened, Err(RecoverError::Superseded)),
        "an earlier start opens no lane either"
    );
}

/// A lane does not wait for what holds up another one.
pub async fn two_lanes_commit_side_by_side<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let neighbour = build::partner(2);
    subject.add_partner(neighbour).await;
    subject
        .top_up(build::usd_of(neighbour), build::minor(1_000))
        .await;
    let mut second = Line::open(&desk.store, 1).await;
    let records = [desk.debit("a", 700)];
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    second.must_commit(&build::pending(neighbour, "b", 1_000)).await;
    assert_eq!(second.commit_one(&build::pending(neighbour, "c", 1)).await, SHORT);
    other.rollback().await;
    assert!(matches!(
        under_way.await.unwrap()[..],
        [Verdict::Committed(Some(_))]
    ));
}

//! The faults of the store in memory strike when a script says so, and are counted.

// Helpers of tests: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::journal::{Record, Verdict};
use vouchsafe_actors::store::{BatchFate, CommitError, LaneStore, RecoverError, Store};
use vouchsafe_actors::testing::{Fault, FaultKind, MemoryDatabase, MemoryStore, build};

const SECOND: Duration = Duration::from_secs(1);

async fn lane(db: &MemoryDatabase) -> (MemoryStore, Box<dyn LaneStore>) {
    db.top_up(build::usd_of(build::partner(1)), build::minor(1_000))
        .await;
    let store = db.start_node("one");
    let lane = store.open_lane(0).await.unwrap();
    (store, lane)
}

fn debit(name: &str) -> [Record; 1] {
    [build::pending(build::partner(1), name, 100)]
}

#[tokio::test(start_paused = true)]
async fn a_slow_commit_takes_its_time_and_holds_its_locks() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    db.fail_commit("one", Fault::Slow(SECOND));
    let begin = Instant::now();
    let (record, wallet) = (debit("a"), build::usd_of(build::partner(1)));
    let (verdicts, ()) = tokio::join!(lane.commit(1, &record), db.top_up(wallet, build::minor(5)));
    assert!(matches!(verdicts.unwrap()[..], [Verdict::Committed(Some(receipt))] if receipt.sequence == 2));
    assert_eq!(begin.elapsed(), SECOND);
    assert_eq!(
        db.wallet(wallet).unwrap().sequence,
        3,
        "the top-up waited for the wallet"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_not_given_back_makes_the_commit_collide() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    let record = debit("a");
    let known = vouchsafe_actors::domain::answer::KnownAnswer {
        fingerprint: build::fingerprint("b"),
        answer: build::answer("b"),
    };
    let other = db.open_key(record[0].claim.key, known).await;
    assert!(matches!(
        lane.commit(1, &record).await,
        Err(CommitError::Contended(_))
    ));
    other.rollback();
    assert!(lane.commit(2, &record).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_statement_adrift_is_applied_later_unless_the_lane_was_recovered() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    for (batch, wait, fate) in [
        (1, Duration::ZERO, BatchFate::NotWritten),
        (2, 2 * SECOND, BatchFate::Committed),
    ] {
        let record = debit(&format!("{batch}"));
        db.fail_commit("one", Fault::Adrift(SECOND));
        assert!(matches!(
            lane.commit(batch, &record).await,
            Err(CommitError::Unknown(_))
        ));
        tokio::time::sleep(wait).await;
        assert_eq!(lane.recover(batch).await, Ok(fate));
        tokio::time::sleep(2 * SECOND).await;
        let there = db.order(build::order_id(&format!("{batch}"))).is_some();
        assert_eq!(there, fate == BatchFate::Committed);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_fail_as_often_as_the_script_says() {
    let db = MemoryDatabase::new();
    let (store, mut lane) = lane(&db).await;
    db.fail_commit("one", Fault::AnswerLost);
    db.fail_calls("one", FaultKind::RecoverFails, 2);
    db.fail_calls("one", FaultKind::ReadFails, 1);
    let record = debit("a");
    assert!(matches!(
        lane.commit(1, &record).await,
        Err(CommitError::Unknown(_))
    ));
    for _ in 0..2 {
        assert!(matches!(lane.recover(1).await, Err(RecoverError::Unavailable(_))));
    }
    assert_eq!(lane.recover(1).await, Ok(BatchFate::Committed));
    assert!(lane.verdicts(&record).await.is_err());
    assert!(lane.verdicts(&record).await.is_ok());
    assert!(store.find_answer(record[0].claim.key).await.unwrap().is_some());
    let counts = db.fault_counts();
    let struck: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| (*kind, *count))
        .collect();
    assert_eq!(
        struck,
        [
            (FaultKind::AnswerLost, 1),
            (FaultKind::ReadFails, 1),
            (FaultKind::RecoverFails, 2)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_ends_a_key() {
    let db = MemoryDatabase::new();
    let (store, mut lane) = lane(&db).await;
    let record = debit("a");
    lane.commit(1, &record).await.unwrap();
    let key = record[0].claim.key;
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60 - 1)).await;
    assert!(store.find_answer(key).await.unwrap().is_some());
    tokio::time::sleep(SECOND).await;
    assert!(store.find_answer(key).await.unwrap().is_none());
}

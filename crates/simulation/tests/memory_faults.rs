//! Scripted faults of the in-memory store and their counts.

// Test helpers: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, CommitError, LaneStore, RecoverError, Store};
use vouchsafe_simulation::{Fault, FaultKind, MemoryDatabase, MemoryStore, build};

const SECOND: Duration = Duration::from_secs(1);

async fn lane(db: &MemoryDatabase) -> (MemoryStore, Box<dyn LaneStore>) {
    db.top_up(build::usd_wallet(build::partner(1)), build::minor(1_000))
        .await;
    let store = db.start_node("one");
    let lane = store.open_lane(0).await.unwrap();
    (store, lane)
}

fn debit(name: &str) -> [Record; 1] {
    [build::pending_order(build::partner(1), name, 100)]
}

#[tokio::test(start_paused = true)]
async fn slow_commit_holds_its_locks() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    db.fail_commit("one", Fault::Slow(SECOND));
    let begin = Instant::now();
    let (record, wallet) = (debit("a"), build::usd_wallet(build::partner(1)));
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
async fn unreleased_lock_makes_commit_contended() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    let record = debit("a");
    let known = vouchsafe_domain::idempotency::StoredResponse {
        fingerprint: build::fingerprint("b"),
        response: build::response("b"),
    };
    let other = db.begin_insert_key(record[0].claim.key, known).await;
    assert!(matches!(
        lane.commit(1, &record).await,
        Err(CommitError::Contended(_))
    ));
    other.rollback();
    assert!(lane.commit(2, &record).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn detached_statement_is_applied_unless_lane_was_recovered() {
    let db = MemoryDatabase::new();
    let (_store, mut lane) = lane(&db).await;
    for (batch, wait, fate) in [
        (1, Duration::ZERO, BatchOutcome::NotWritten),
        (2, 2 * SECOND, BatchOutcome::Committed),
    ] {
        let record = debit(&format!("{batch}"));
        db.fail_commit("one", Fault::Detached(SECOND));
        assert!(matches!(
            lane.commit(batch, &record).await,
            Err(CommitError::Unknown(_))
        ));
        tokio::time::sleep(wait).await;
        assert_eq!(lane.recover(batch).await, Ok(fate));
        tokio::time::sleep(2 * SECOND).await;
        let exists = db.order(build::order_id(&format!("{batch}"))).is_some();
        assert_eq!(exists, fate == BatchOutcome::Committed);
    }
}

#[tokio::test(start_paused = true)]
async fn scripted_faults_occur_as_often_as_scripted() {
    let db = MemoryDatabase::new();
    let (store, mut lane) = lane(&db).await;
    db.fail_commit("one", Fault::ResponseLost);
    db.fail_calls("one", FaultKind::RecoveryError, 2);
    db.fail_calls("one", FaultKind::ReadError, 1);
    let record = debit("a");
    assert!(matches!(
        lane.commit(1, &record).await,
        Err(CommitError::Unknown(_))
    ));
    for _ in 0..2 {
        assert!(matches!(lane.recover(1).await, Err(RecoverError::Unavailable(_))));
    }
    assert_eq!(lane.recover(1).await, Ok(BatchOutcome::Committed));
    assert!(lane.load_verdicts(&record).await.is_err());
    assert!(lane.load_verdicts(&record).await.is_ok());
    assert!(store.find_response(record[0].claim.key).await.unwrap().is_some());
    let counts = db.fault_counts();
    let occurred: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| (*kind, *count))
        .collect();
    assert_eq!(
        occurred,
        [
            (FaultKind::ResponseLost, 1),
            (FaultKind::ReadError, 1),
            (FaultKind::RecoveryError, 2)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn key_expires_with_time() {
    let db = MemoryDatabase::new();
    let (store, mut lane) = lane(&db).await;
    let record = debit("a");
    lane.commit(1, &record).await.unwrap();
    let key = record[0].claim.key;
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60 - 1)).await;
    assert!(store.find_response(key).await.unwrap().is_some());
    tokio::time::sleep(SECOND).await;
    assert!(store.find_response(key).await.unwrap().is_none());
}

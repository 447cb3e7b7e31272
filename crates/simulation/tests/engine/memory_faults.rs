//! Timing of scripted faults of the in-memory store.

use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{BatchOutcome, LaneStore, Store};
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_simulation::{Fault, MemoryDatabase, build};

const SECOND: Duration = Duration::from_secs(1);

async fn open_lane(db: &MemoryDatabase) -> Box<dyn LaneStore> {
    db.top_up(build::usd_wallet(build::partner(1)), build::minor(1_000))
        .await;
    db.start_node("one").open_lane(0).await.unwrap()
}

fn debit(name: &str) -> [Record; 1] {
    [build::pending_order(build::partner(1), name, 100)]
}

#[tokio::test(start_paused = true)]
async fn slow_commit_holds_its_locks() {
    let db = MemoryDatabase::new();
    let mut lane = open_lane(&db).await;
    db.fail_commit("one", Fault::Slow(SECOND));
    let begin = Instant::now();
    let (record, wallet) = (debit("a"), build::usd_wallet(build::partner(1)));
    let (verdicts, ()) = tokio::join!(lane.commit(1, &record), db.top_up(wallet, build::minor(5)));
    assert!(matches!(verdicts.unwrap()[..], [Verdict::Committed(Some(receipt))] if receipt.sequence == 2));
    assert_eq!(begin.elapsed(), SECOND);
    assert_eq!(
        db.wallet(wallet).unwrap().newest.sequence,
        3,
        "the top-up waited for the wallet"
    );
}

#[tokio::test(start_paused = true)]
async fn detached_statement_is_applied_unless_lane_was_recovered() {
    let db = MemoryDatabase::new();
    let mut lane = open_lane(&db).await;
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

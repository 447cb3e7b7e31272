//! Commits while a snapshot is open, which keeps every version of the rows that each batch updates.

use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject as _;
use vouchsafe_store::{PgNode, PgStore};

use crate::explain::{EXPLAIN, lock_log, plans};
use crate::subject::PgSubject;

/// Versions that other batches have left of each row: a page has about a hundred.
const VERSIONS: &str = "
    DO $$
    BEGIN
        FOR i IN 1 .. 1500 LOOP
            UPDATE lanes SET batch = batch;
            UPDATE wallets SET updated_at = updated_at;
            UPDATE feeds SET last_number = last_number;
            COMMIT;
        END LOOP;
    END
    $$";

/// Allows for pages that the first commit did not touch; each of the three rows has more than twelve pages of
/// versions.
const FEW_BLOCKS: f64 = 12.0;

/// Blocks that the server has read since this position of its log, per statement of the commit function.
fn blocks_read_since(subject: &PgSubject, begin: usize) -> f64 {
    let plans = plans(&subject.log()[begin..]);
    assert!(plans.len() > 3, "the server logged no plans of the function");
    let blocks = plans.iter().map(|plan| {
        let plan = &plan["Plan"];
        let count = |name: &str| plan[name].as_f64().unwrap_or_default();
        // The call of the function contains the blocks of its statements.
        if plan["Node Type"] == "Function Scan" {
            0.0
        } else {
            count("Shared Hit Blocks") + count("Shared Read Blocks")
        }
    });
    blocks.sum()
}

/// Makes `commit_batch_v2` find the rows forwards, from their oldest versions.
const READ_FORWARDS: &str = "
    DO $$
    BEGIN
        EXECUTE replace(pg_get_functiondef('commit_batch_v2'::regproc), ' DESC', '');
    END
    $$";

#[tokio::test(flavor = "multi_thread")]
async fn commit_reads_as_few_blocks_while_a_snapshot_is_open() {
    let [before, after] = Box::pin(blocks_per_commit("")).await;
    assert!(
        after < before + FEW_BLOCKS,
        "blocks per commit: {before}, {after}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_reads_every_version_is_detected() {
    let [before, after] = Box::pin(blocks_per_commit(READ_FORWARDS)).await;
    assert!(
        after > before + 2.0 * FEW_BLOCKS,
        "blocks per commit: {before}, {after}"
    );
}

/// Blocks that a commit reads at the beginning of a snapshot, and when other batches have left their versions
/// since.
async fn blocks_per_commit(preparation: &'static str) -> [f64; 2] {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let mut superuser = PgConnection::connect_with(&subject.superuser_options())
        .await
        .unwrap();
    superuser.execute(preparation).await.unwrap();
    superuser.close().await.unwrap();
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    let gift = build::sku("gift", 1_000);
    let gifts = subject
        .add_chunk(&gift, &[build::day(0), build::day(0), build::day(0)])
        .await;
    let options = subject.superuser_options().options(EXPLAIN);
    let options = options.options([("auto_explain.log_buffers", "on")]);
    let store = PgStore::open(options, Handle::current());
    let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    let request = vouchsafe_domain::stock::StockRequest {
        sku: gift.clone(),
        loaded_chunks: Vec::new(),
        target_quantity: 3,
        not_before: build::day(0),
        demanded: 0,
    };
    node.claim_stock(request).await.unwrap();
    let funded = build::top_up(build::usd_wallet(partner), "funded", 10_000);
    let first = build::delivered_order(partner, "first", &[(&gift, &gifts[..1])]);
    lane.commit(1, &[funded, first]).await.unwrap();

    let mut snapshot = subject
        .pool()
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .await
        .unwrap();
    snapshot.execute("SELECT FROM wallets").await.unwrap();
    let mut blocks = Vec::new();
    for (batch, name) in [(2, "second"), (3, "third")] {
        let held = &gifts[blocks.len() + 1..][..1];
        let order = build::delivered_order(partner, name, &[(&gift, held)]);
        let begin = subject.log().len();
        let verdicts = lane.commit(batch, &[order]).await.unwrap();
        assert!(
            matches!(verdicts[..], [Verdict::Committed(Some(_))]),
            "{verdicts:?}"
        );
        blocks.push(blocks_read_since(&subject, begin));
        subject.pool().execute(VERSIONS).await.unwrap();
        // As autovacuum does: afterwards the statements are planned for tables of one row on many pages.
        let vacuum = "VACUUM (ANALYZE) lanes, wallets, feeds";
        subject.pool().execute(vacuum).await.unwrap();
    }
    snapshot.rollback().await.unwrap();
    subject.remove().await;
    blocks.try_into().unwrap()
}

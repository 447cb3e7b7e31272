//! Query plans of stock counts, levels and comparisons with sold vouchers over tables that grew since the
//! last `ANALYZE`.
//!
//! Autovacuum analyses a table up to a minute after it was filled; until then the planner assumes defaults.

use sqlx::Executor as _;
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject as _;
use vouchsafe_store::{AuditActor, PgStore, SoldVoucher, SoldVoucherOutcome};

use crate::explain::{EXPLAIN, lock_log, plans, rows_read};
use crate::subject::PgSubject;

/// A hundred emptied chunks, the size of a batch of counts, and a hundred that nothing was sold of, with
/// 1,000 vouchers each.
const INSERT_STOCK: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, emptied)
    SELECT 'gift', 200, 1000001 + i * 1000, 1001000 + i * 1000, i < 100 FROM generate_series(0, 199) AS i;
    INSERT INTO stock (stock_id, chunk_id, code_id)
    SELECT 1000001 + i, (SELECT chunk_id FROM chunks WHERE first_stock_id = 1000001) + i / 1000, i
      FROM generate_series(0, 199999) AS i;
    INSERT INTO allocations (stock_id, withdrawal_reason) SELECT 1000001 + i, 'void' FROM generate_series(0, 99999) AS i";

/// Executions after which Postgres keeps a generic plan.
const EXECUTIONS: usize = 6;

/// Each chunk and allocation once, the first voucher of each chunk, and what the indexes return beside them.
/// A scan of the vouchers for each chunk reads a hundred times as many.
const MAX_ROWS: f64 = 300_000.0;

#[tokio::test(flavor = "multi_thread")]
async fn stock_of_unanalysed_tables_is_counted_and_compared_by_index() {
    let subject = PgSubject::new().await;
    let _log = lock_log().await;
    let store = PgStore::open(subject.superuser_options().options(EXPLAIN), Handle::current());
    // Creates the product.
    subject
        .add_chunk(&build::sku("gift", 100), &[build::day(0)])
        .await;
    let manual =
        "ALTER TABLE chunks SET (autovacuum_enabled = off); ALTER TABLE stock SET (autovacuum_enabled = off);
                  ALTER TABLE allocations SET (autovacuum_enabled = off)";
    subject.pool().execute(manual).await.unwrap();
    for _ in 0..EXECUTIONS {
        assert!(!store.stock.count_emptied_chunks().await.unwrap());
        assert_eq!(store.stock.list_levels(None, None, 10).await.unwrap().len(), 1);
    }
    subject.pool().execute(INSERT_STOCK).await.unwrap();

    let begin = subject.log().len();
    let levels = store.stock.list_levels(None, None, 10).await.unwrap();
    let counts = levels.iter().map(|level| (level.loaded, level.void, level.free));
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [(1, 0, 1), (200_000, 100_000, 100_000)]
    );
    assert_few_rows_read(&subject, begin, "levels");

    let begin = subject.log().len();
    assert!(store.stock.count_emptied_chunks().await.unwrap());
    assert_few_rows_read(&subject, begin, "counts");

    let begin = subject.log().len();
    let sold = (0..100).map(|_| SoldVoucher::Voucher(VoucherId::from_uuid(Uuid::now_v7())));
    let compared = store
        .quarantine
        .withdraw_sold(sold.collect(), "a test".to_owned(), AuditActor::service());
    assert_eq!(compared.await.unwrap(), [SoldVoucherOutcome::Unidentified; 100]);
    assert_few_rows_read(&subject, begin, "comparison");

    drop(store);
    subject.remove().await;
}

fn assert_few_rows_read(subject: &PgSubject, begin: usize, description: &str) {
    let log = subject.log();
    let explained = plans(&log[begin..]);
    assert!(!explained.is_empty(), "no plan was logged");
    let rows: f64 = explained.iter().map(|plan| rows_read(&plan["Plan"])).sum();
    assert!(
        rows <= MAX_ROWS,
        "{description}: {rows} rows read: {explained:#?}"
    );
}

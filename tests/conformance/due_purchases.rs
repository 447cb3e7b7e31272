//! Cost of due purchases: a read visits what it returns, however many purchases are due or have ended.
//!
//! Row counts come from `auto_explain`, as in `list_plans`.

use sqlx::{AssertSqlSafe, Executor as _};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_actors::procurement::queue::MAX_QUEUED;
use vouchsafe_simulation::build;
use vouchsafe_store::PgStore;

use crate::explain::{EXPLAIN, lock_log, plans};
use crate::subject::PgSubject;
use crate::waiting_orders::rows_read_since;

/// Rows that a read may visit: what it returns, twice, as the result of the function counts, too.
const MAX_ROWS: f64 = 1_024.0;

/// Inserts purchases of a vendor, the first of them due longest: one per order.
async fn insert_purchases(subject: &PgSubject, count: u32, is_ended: bool) {
    let insert = format!(
        "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency, quantity,
                                expiry_policy, requested_at, ended, next_at)
         SELECT gen_random_uuid(), '{}', gen_random_uuid(), 0, 'acme', 'gift', 1, 'USD', 1, '{{}}', now(), {is_ended},
                now() - interval '1 hour' + n * interval '1 ms'
           FROM generate_series(1, {count}) AS n",
        build::partner(1).as_uuid(),
    );
    subject.pool().execute(AssertSqlSafe(insert)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn due_purchases_are_read_in_the_order_of_an_index_and_no_more_than_are_returned() {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let options = subject.superuser_options().options(EXPLAIN);
    let purchases = PgStore::open(options, Handle::current()).purchases;
    // The plans are those of a table that was small when it was analysed.
    insert_purchases(&subject, 5, false).await;
    subject.pool().execute("ANALYZE purchases").await.unwrap();
    for (more, expected) in [(0, 5), (20_000, MAX_QUEUED)] {
        insert_purchases(&subject, more, false).await;
        insert_purchases(&subject, more, true).await;
        let begin = subject.log().len();
        let due = purchases.list_due("acme".to_owned(), MAX_QUEUED).await.unwrap();
        assert_eq!(due.len(), expected);
        let oldest: Vec<Uuid> = sqlx::query_scalar(
            "SELECT purchase_id FROM purchases WHERE NOT ended ORDER BY next_at, purchase_id LIMIT $1",
        )
        .bind(100_i64)
        .fetch_all(subject.pool())
        .await
        .unwrap();
        for purchase_id in oldest {
            assert!(due.iter().any(|due| due.purchase_id == purchase_id));
        }
        let plans = plans(&subject.log()[begin..]);
        let sorts = plans.iter().any(|plan| plan.to_string().contains("\"Sort\""));
        assert!(!sorts, "{plans:#?}");
        let rows = rows_read_since(&subject, begin);
        assert!(rows <= MAX_ROWS, "{rows} rows read");
    }
    subject.remove().await;
}

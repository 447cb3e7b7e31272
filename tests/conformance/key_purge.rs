//! Sweep for expired idempotency keys.

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe_store::{KeySweep, PgStore};

use crate::explain::{EXPLAIN, lock_log};
use crate::subject::PgSubject;
use crate::waiting_orders::rows_read_since;

/// A sweep visits the whole table once, in statements that read a part of it, and begins again.
#[tokio::test(flavor = "multi_thread")]
async fn purge_visits_each_key_once_per_sweep() {
    const KEYS: u32 = 70_000;
    const EXPIRED: u64 = 7_000;
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let pool = subject.pool();
    // Keys of every age share each page.
    let mixed = "INSERT INTO idempotency_keys
                 SELECT gen_random_uuid(), sha256(i::text::bytea), 201, '',
                        now() + CASE WHEN i % 10 = 0 THEN - interval '1 s' ELSE interval '1 day' END
                   FROM generate_series(1, 70000) AS i";
    pool.execute(mixed).await.unwrap();
    let pages = "SELECT pg_relation_size('idempotency_keys') / current_setting('block_size')::bigint";
    let pages: i64 = sqlx::query_scalar(pages).fetch_one(pool).await.unwrap();
    let store = PgStore::open(subject.superuser_options().options(EXPLAIN), Handle::current());
    let mut sweep = KeySweep::default();
    for expired in [EXPIRED, 0] {
        let begin = subject.log().len();
        let (mut calls, mut removed) = (0, 0);
        // A call visits 128 pages of a table of this size, and may end at any page: the last call visits some
        // again.
        while calls * 128 < pages {
            removed += store.responses.purge_expired(&mut sweep).await.unwrap();
            calls += 1;
        }
        assert_eq!(removed, expired);
        let rows = rows_read_since(&subject, begin);
        // Each expired key is read to lock it, to delete it and to count it.
        let visited = f64::from(KEYS) * 1.3 + 8.0 * f64::from(u32::try_from(expired).unwrap());
        assert!(
            rows <= visited,
            "{expired} expired, {rows} rows read in {calls} calls"
        );
    }
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM idempotency_keys WHERE expires_at > now()")
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(kept, i64::from(KEYS) - EXPIRED.cast_signed());
    subject.remove().await;
}

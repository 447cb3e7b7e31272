//! Counts of requests under rate limits in the database: admission, expiry, a clock that was set back, purge.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Executor as _, PgConnection};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::limits::{DefaultLimits, Limit, Limits, RequestClass};
use vouchsafe_security::rate_limiter::{RateLimitKeys, RateLimiter};
use vouchsafe_store::{PgNode, PgStore};
use vouchsafe_test_harness::{Database, WAIT_TIMEOUT, eventually};

/// A quota of 5 in 60 s. Returns the number admitted, the ages in microseconds and the numbers that count.
async fn count(
    connection: &mut PgConnection,
    ages_us: &[i64],
    counts: &[i32],
    wanted: i32,
) -> (i32, Vec<i64>, Vec<i32>) {
    sqlx::query_as(
        "SELECT admitted, ages_us, counts
           FROM count_requests_v1('00000000-0000-0000-0000-000000000001', 'orders', 5, 60, $1, $2, $3)",
    )
    .bind(ages_us)
    .bind(counts)
    .bind(wanted)
    .fetch_one(connection)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_admitted_up_to_the_quota_and_expire() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    let (admitted, _, counts) = count(&mut connection, &[], &[], 3).await;
    assert_eq!((admitted, counts.iter().sum::<i32>()), (3, 3));
    // Of two nodes: one request counts still, the other does not. Published ones always count.
    let (admitted, ages_us, counts) = count(&mut connection, &[70_000_000, 10_000_000], &[4, 1], 3).await;
    assert_eq!((admitted, counts.iter().sum::<i32>()), (1, 5));
    assert!(ages_us.is_sorted_by(|older, newer| older > newer), "{ages_us:?}");
    assert!((9_000_000..=10_000_000).contains(&ages_us[0]), "{ages_us:?}");
    let (admitted, _, counts) = count(&mut connection, &[0], &[2], 1).await;
    assert_eq!((admitted, counts.iter().sum::<i32>()), (0, 7));

    // The clock was set back by an hour: what it counted in the future counts for one window from now.
    let advance = "UPDATE rate_limit_usage SET at_us = ARRAY(SELECT at + 3600000000 FROM unnest(at_us) AS at ORDER BY at)";
    connection.execute(advance).await.unwrap();
    let (admitted, ages_us, counts) = count(&mut connection, &[], &[], 1).await;
    assert_eq!((admitted, &counts[..]), (0, &[7][..]));
    assert!((-1_000_000..=0).contains(&ages_us[0]), "{ages_us:?}");
    // A window later.
    let age = "UPDATE rate_limit_usage SET at_us = ARRAY(SELECT at - 61000000 FROM unnest(at_us) AS at)";
    connection.execute(age).await.unwrap();
    let (admitted, _, counts) = count(&mut connection, &[], &[], 9).await;
    assert_eq!((admitted, &counts[..]), (5, &[5][..]));
    drop(connection);
    database.remove().await;
}

fn limiter(quota: u32) -> Arc<RateLimiter> {
    let limit = Limit { quota, window_s: 60 };
    Arc::new(RateLimiter::new(DefaultLimits {
        orders: limit,
        general: limit,
        auth: limit,
        vouchers: limit,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_refresh_confirms_or_restores_what_it_published() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let node = PgNode::start(&store.database, "a".to_owned()).await.unwrap();
    let other = PgNode::start(&store.database, "b".to_owned()).await.unwrap();
    let (limiter, clock) = (limiter(1_000), Arc::new(SystemClock::new()));
    let shared = node
        .share_limits(Arc::clone(&limiter), Arc::clone(&clock) as _)
        .await
        .unwrap();
    let own = limiter.key_of_family(
        CredentialId::from_uuid(Uuid::from_u128(1)),
        RequestClass::Orders,
        &Limits::default(),
    );
    // The database decides on the first request; the others are not published yet.
    for _ in 0..3 {
        shared
            .acquire(RateLimitKeys { own, ceiling: None })
            .await
            .unwrap();
    }
    connection
        .execute("BEGIN; LOCK TABLE rate_limit_usage IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let blocked = async || {
        let waiting =
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rate_limit_usage'::regclass";
        let waiting: i64 = sqlx::query_scalar(waiting)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        (waiting > 0).then_some(())
    };
    tokio::select! {
        // On a slow machine the statement times out first.
        refreshed = shared.refresh(vec![own.window.owner_id]) => assert!(refreshed.is_err(), "the table is locked"),
        () = eventually("the counts to be blocked", WAIT_TIMEOUT, blocked) => {}
    }
    connection.execute("COMMIT").await.unwrap();
    let all_counted = async || {
        shared.synchronize().await.unwrap();
        let counted = "SELECT sum(number) FROM rate_limit_usage, unnest(counts) AS number";
        let counted: i64 = sqlx::query_scalar(counted)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        (counted >= 3).then_some(())
    };
    eventually("all requests to be counted", WAIT_TIMEOUT, all_counted).await;
    // A window with a publication in flight is never evicted.
    let evicted = async || {
        limiter.evict_idle(clock.monotonic() + Duration::from_secs(3_600));
        (limiter.window_counts().0 == 0).then_some(())
    };
    eventually("the window to be evicted", WAIT_TIMEOUT, evicted).await;
    drop((connection, shared, node, other, store));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_windows_are_purged() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    connection
        .execute(
            "INSERT INTO rate_limit_usage (owner_id, class, at_us, counts, window_s, expires_at)
             SELECT ('00000000-0000-0000-0000-00000000000' || number)::uuid, 'orders', '{1}', '{1}', 60, now() + expires_in
               FROM (VALUES (1, interval '-2 minutes'), (2, interval '30 seconds'), (3, interval '1 hour')) AS w (number, expires_in)",
        )
        .await
        .unwrap();
    let store = PgStore::open(database.service_options(), Handle::current());
    let node = PgNode::start(&store.database, "a".to_owned()).await.unwrap();
    let shared = node
        .share_limits(limiter(5), Arc::new(SystemClock::new()))
        .await
        .unwrap();
    shared.purge().await.unwrap();
    let kept: Vec<String> = sqlx::query_scalar("SELECT right(owner_id::text, 1) FROM rate_limit_usage")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(
        kept,
        ["2"],
        "neither ended nor in a future that the clock has left"
    );
    drop((connection, shared, node, store));
    database.remove().await;
}

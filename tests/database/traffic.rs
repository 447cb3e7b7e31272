//! Traffic of all nodes by minute.

use std::time::Duration;

use sqlx::Executor as _;
use tokio::runtime::Handle;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_store::{PeriodCounts, PgStore};
use vouchsafe_test_harness::Database;

const COUNTS: PeriodCounts = PeriodCounts {
    period: Duration::ZERO,
    requests: 30,
    unavailable: 3,
    orders: 10,
    order_p50_us: None,
    order_p99_us: None,
    commit_us: 100,
};

#[tokio::test(flavor = "multi_thread")]
async fn minutes_have_the_sums_of_all_nodes_and_are_removed_after_30_days() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current());
    let mut connection = database.connect().await;
    for age in ["29 days 23 hours", "31 days"] {
        let old = format!(
            "INSERT INTO traffic_minutes VALUES (date_trunc('minute', now() - interval '{age}'), 1, 0, 1, 7, 8, 9)"
        );
        connection.execute(sqlx::AssertSqlSafe(old)).await.unwrap();
    }
    let other_node = PeriodCounts {
        order_p50_us: Some(5),
        order_p99_us: Some(50),
        commit_us: 90,
        ..COUNTS
    };
    for counts in [COUNTS, other_node, COUNTS] {
        store.traffic.add(counts).await.unwrap();
    }
    // The two nodes may have stored in two minutes.
    let end = SystemClock::new().now() + Duration::from_secs(60);
    let day = end - Duration::from_secs(86_400);
    let rows = store.traffic.list(day, end, 1).await.unwrap();
    let sum = |of: fn(&vouchsafe_store::TrafficRow) -> i64| rows.iter().map(of).sum::<i64>();
    assert_eq!(
        [
            sum(|row| row.requests),
            sum(|row| row.unavailable),
            sum(|row| row.orders)
        ],
        [90, 9, 30]
    );
    assert_eq!(rows.iter().filter_map(|row| row.order_p50_us).max(), Some(5));
    assert_eq!(rows.iter().filter_map(|row| row.order_p99_us).max(), Some(50));
    assert_eq!(rows.iter().map(|row| row.commit_us).max(), Some(100));

    let all = store
        .traffic
        .list(end - Duration::from_secs(40 * 86_400), end, 100 * 1_440);
    let all = all.await.unwrap();
    assert_eq!(all.iter().map(|row| row.orders).sum::<i64>(), 31, "{all:?}");
    assert!(
        all.len() < 3,
        "one period, or two of which one begins now: {all:?}"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_belong_to_the_minute_in_the_middle_of_their_period() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current());
    let counts = PeriodCounts {
        period: Duration::from_secs(2 * 3_600),
        ..COUNTS
    };
    store.traffic.add(counts).await.unwrap();
    let now = SystemClock::new().now();
    let rows = store
        .traffic
        .list(now - Duration::from_secs(3 * 3_600), now, 1)
        .await
        .unwrap();
    let age = now - rows[0].at;
    assert_eq!(age.whole_hours(), 1, "{rows:?}");
    database.remove().await;
}

//! Stock levels from the counts of emptied chunks, compared with counting every voucher.

use sqlx::{Executor as _, PgConnection};
use time::macros::date;
use tokio::runtime::Handle;
use vouchsafe_domain::stock::level::{ExpiringStock, StockLevel};
use vouchsafe_store::PgStore;
use vouchsafe_test_harness::Database;
use vouchsafe_verify as verify;

use crate::catalogue::{self, BRAND, product, seal_voucher};

/// Levels counted voucher by voucher.
const COUNTED: &str = "
    SELECT c.product_id, c.denomination,
           count(*) FILTER (WHERE a.returned_at IS NULL) AS loaded,
           count(*) FILTER (WHERE a.stock_id IS NULL AND (s.expiry IS NULL OR s.expiry >= CURRENT_DATE)) AS free,
           0::bigint AS quarantined,
           count(*) FILTER (WHERE a.order_id IS NOT NULL AND a.returned_at IS NULL) AS sold,
           count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS void,
           count(*) FILTER (WHERE a.withdrawal_reason = 'expired' OR (a.stock_id IS NULL AND s.expiry < CURRENT_DATE)) AS expired,
           min(s.expiry) FILTER (WHERE a.stock_id IS NULL AND s.expiry >= CURRENT_DATE) AS next_expiry
      FROM stock AS s
      JOIN chunks AS c ON c.chunk_id = s.chunk_id
      LEFT JOIN allocations AS a ON a.stock_id = s.stock_id
     GROUP BY c.product_id, c.denomination";

/// Available vouchers by month of expiry, counted voucher by voucher.
const COUNTED_EXPIRIES: &str = "
    SELECT date_trunc('month', s.expiry)::date AS month, count(*) AS vouchers
      FROM stock AS s
     WHERE (s.expiry IS NULL OR s.expiry >= CURRENT_DATE)
       AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)
     GROUP BY 1
     ORDER BY 1 NULLS LAST";

/// What happens to the stock. The import makes chunks of 16 vouchers; the last ones never expire.
const STEPS: [(&str, &str); 8] = [
    (
        "two chunks and a half are sold",
        "SELECT sell(g) FROM generate_series(1, 40) AS g",
    ),
    (
        "vouchers are void",
        "INSERT INTO allocations (stock_id, withdrawal_reason) SELECT g, 'void' FROM generate_series(39, \
         70, 3) AS g ON CONFLICT DO NOTHING",
    ),
    (
        "two chunks have expired, one of them partly",
        "UPDATE stock SET expiry = CURRENT_DATE - 1 WHERE stock_id BETWEEN 65 AND 90;
         UPDATE chunks SET first_expiry = CURRENT_DATE - 1 WHERE first_stock_id IN (65, 81)",
    ),
    (
        "the expired vouchers of one are withdrawn",
        "INSERT INTO allocations (stock_id, withdrawal_reason) SELECT g, 'expired' FROM \
         generate_series(65, 80) AS g ON CONFLICT DO NOTHING",
    ),
    (
        "vouchers of an emptied and of another chunk come back",
        "SELECT restock(ARRAY[2, 3, 33])",
    ),
    (
        "they are sold again, and one comes back again",
        "SELECT sell(g) FROM generate_series(1001, 1003) AS g; SELECT restock(ARRAY[1002])",
    ),
    (
        "everything is sold",
        "SELECT sell(s.stock_id) FROM stock AS s WHERE NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)",
    ),
    (
        "vouchers of chunks that are counted come back",
        "SELECT restock(ARRAY[4, 1001])",
    ),
];

const FUNCTIONS: &str = "
    CREATE FUNCTION sell(bigint) RETURNS void LANGUAGE sql AS $$
        INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
        VALUES ($1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0)
    $$;
    CREATE FUNCTION restock(bigint[]) RETURNS void LANGUAGE sql AS $$
        UPDATE allocations SET returned_at = now() WHERE stock_id = ANY ($1);
        WITH back AS MATERIALIZED (
            SELECT nextval('stock_ids') AS stock_id, s.code_id, s.expiry, c.product_id, c.denomination
              FROM stock AS s
              JOIN chunks AS c ON c.chunk_id = s.chunk_id
             WHERE s.stock_id = ANY ($1)
        ), made AS (
            INSERT INTO chunks (product_id, denomination, first_expiry, last_expiry, first_stock_id, last_stock_id)
            SELECT product_id, denomination, min(expiry), max(expiry), min(stock_id), max(stock_id)
              FROM back
             GROUP BY product_id, denomination
            RETURNING chunk_id
        )
        INSERT INTO stock (stock_id, chunk_id, code_id, expiry)
        SELECT b.stock_id, m.chunk_id, b.code_id, b.expiry FROM back AS b, made AS m
    $$;
    ALTER SEQUENCE stock_ids RESTART 1001";

async fn assert_levels(store: &PgStore, connection: &mut PgConnection, step: &str) {
    let counted: Vec<StockLevel> = sqlx::query_as(COUNTED).fetch_all(&mut *connection).await.unwrap();
    let levels = store.stock.list_levels(None, None, 10).await.unwrap();
    assert_eq!(levels, counted, "{step}");
    let by_expiry: Vec<ExpiringStock> = sqlx::query_as(COUNTED_EXPIRIES)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    assert_eq!(
        store.stock.count_by_expiry(None).await.unwrap(),
        by_expiry,
        "{step}"
    );
    let findings = verify::check(connection).await.unwrap();
    for name in ["stock.counts", "stock.totals"] {
        let counts = findings.iter().find(|finding| finding.name == name);
        assert!(counts.unwrap().holds, "{step}: {counts:?}");
    }
}

/// A database with 200 free vouchers of one SKU.
async fn create_stock() -> (Database, PgStore, PgConnection) {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let keyring = catalogue::open_keyring(&store).await;
    catalogue::seed(&store, product(BRAND)).await;
    let vault = keyring.sealing_vault().await.unwrap();
    let ids = store.stock.generate_ids(200).await.unwrap();
    assert_eq!(ids.stock[0], 1);
    let voucher = |(number, &code_id): (usize, _)| {
        let day = date!(2090 - 01 - 01) + time::Duration::days(i64::try_from(number).unwrap());
        seal_voucher(
            &vault,
            code_id,
            &format!("CODE-{number}"),
            (number < 180).then_some(day),
        )
    };
    let vouchers = ids.codes.iter().enumerate().map(voucher).collect();
    catalogue::import(&store, ids.stock.clone(), vouchers).await;
    let mut connection = database.connect().await;
    connection.execute(sqlx::raw_sql(FUNCTIONS)).await.unwrap();
    (database, store, connection)
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_equal_counting_before_and_after_emptied_chunks_are_counted() {
    let (database, store, mut connection) = create_stock().await;
    assert_levels(&store, &mut connection, "nothing is sold").await;
    for (step, change) in STEPS {
        connection.execute(sqlx::raw_sql(change)).await.unwrap();
        assert_levels(&store, &mut connection, step).await;
        // As a claim marks them.
        let mark = "UPDATE chunks AS c SET emptied = true
                     WHERE NOT emptied AND NOT EXISTS (SELECT FROM free_stock_v1(c.first_stock_id, c.last_stock_id, '-infinity'))";
        connection.execute(mark).await.unwrap();
        assert_levels(&store, &mut connection, step).await;
        assert!(!store.stock.count_emptied_chunks().await.unwrap(), "{step}");
        assert_levels(&store, &mut connection, step).await;
    }
    let uncounted = "SELECT count(*) FROM chunks WHERE emptied AND voided IS NULL";
    let uncounted: i64 = sqlx::query_scalar(uncounted)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(uncounted, 0);
    database.remove().await;
}

/// Two nodes count 1,000 chunks of 10 SKUs at once. Batches of one of them fail now and then, as after a
/// crash before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_counted_by_several_nodes_are_added_to_the_totals_once() {
    const EMPTY_CHUNKS: &str = "
        INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, emptied)
        SELECT 'acme-us', 100 + i % 10, 2000 + i * 2, 2001 + i * 2, true FROM generate_series(1, 1000) AS i;
        INSERT INTO allocations (stock_id, withdrawal_reason) SELECT 2002 + i, 'void' FROM generate_series(0, 1999) AS i;
        CREATE SEQUENCE attempts;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('attempts') % 3 = 0 THEN RAISE 'interrupted'; END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER fail AFTER INSERT ON stock_totals FOR EACH STATEMENT EXECUTE FUNCTION fail();
        GRANT USAGE ON SEQUENCE attempts TO PUBLIC";
    let (database, store, mut connection) = create_stock().await;
    connection.execute(sqlx::raw_sql(EMPTY_CHUNKS)).await.unwrap();
    let uncounted = "SELECT count(*) FROM chunks WHERE emptied AND voided IS NULL";
    while sqlx::query_scalar::<_, i64>(uncounted)
        .fetch_one(&mut connection)
        .await
        .unwrap()
        > 0
    {
        let (one, two) = tokio::join!(
            store.stock.count_emptied_chunks(),
            store.stock.count_emptied_chunks()
        );
        assert!(
            one.is_ok() || two.is_ok(),
            "one of three batches fails: {one:?}, {two:?}"
        );
    }
    let levels = store.stock.list_levels(None, None, 20).await.unwrap();
    let counted = levels
        .iter()
        .filter(|level| level.loaded == 200 && level.void == 200);
    assert_eq!(counted.count(), 10, "{levels:?}");
    let findings = verify::check(&mut connection).await.unwrap();
    let totals = findings
        .iter()
        .find(|finding| finding.name == "stock.totals")
        .unwrap();
    assert!(totals.holds, "{totals:?}");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_of_a_week_are_counted_from_its_beginning_and_old_counts_are_purged() {
    let (database, store, mut connection) = create_stock().await;
    let mut execute = async |sql: &'static str| {
        connection
            .execute(sqlx::raw_sql(sql))
            .await
            .unwrap()
            .rows_affected()
    };
    let stock = &store.stock;
    let levels = async || stock.list_levels(None, None, 10).await.unwrap();
    let baseline = async || {
        let baselines = stock.list_sold_baselines(&levels().await).await.unwrap();
        baselines[0].map(|baseline| baseline.sold)
    };
    assert_eq!(baseline().await, Some(0), "from the first import on");
    execute("SELECT sell(g) FROM generate_series(1, 40) AS g").await;
    stock.record_sold(&levels().await).await.unwrap();
    assert_eq!(
        execute("DELETE FROM stock_sold WHERE sold > 0").await,
        0,
        "at most once an hour"
    );
    execute("UPDATE stock_sold SET at = at - interval '8 days'").await;
    for _ in 0..2 {
        stock.record_sold(&levels().await).await.unwrap();
        execute("UPDATE stock_sold SET at = at - interval '2 hours'").await;
    }
    assert_eq!(baseline().await, Some(0));
    execute("SELECT sell(g) FROM generate_series(41, 50) AS g").await;
    execute("UPDATE stock_sold SET at = at - interval '7 days'").await;
    assert_eq!(
        baseline().await,
        Some(40),
        "an unchanged count is not stored again"
    );
    stock.purge_sold().await.unwrap();
    assert_eq!(baseline().await, Some(40));
    assert_eq!(
        execute("DELETE FROM stock_sold").await,
        1,
        "the older one is purged"
    );
    assert_eq!(baseline().await, None);
    stock.record_sold(&levels().await).await.unwrap();
    assert_eq!(
        baseline().await,
        Some(50),
        "a SKU that was never measured counts from now on"
    );
    database.remove().await;
}

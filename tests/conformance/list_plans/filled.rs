//! Fixture of the list plan tests: a partner with 100,000 orders, and a store whose statements are explained.

use sqlx::{AssertSqlSafe, Executor as _};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use tokio::runtime::Handle;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::period::Period;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject as _;
use vouchsafe_store::PgStore;
use vouchsafe_store::StoreError;

use crate::explain::{EXPLAIN, plans, rows_read};
use crate::subject::PgSubject;

/// Time of the first order; one follows every 86.4 s.
pub(super) const FIRST_ORDER_AT: OffsetDateTime = datetime!(2026-01-01 0:00 UTC);

const ORDERS: i64 = 100_000;

/// Maximum rows read for a page of 26: the page's own rows and vouchers, some wallets and partners, and
/// skipped rows in between. A scan of all orders of the partner reads a hundred times as many.
const MAX_ROWS: f64 = 1_000.0;

/// Orders of one partner, each with a reference, a debit and a voucher. One in ten is pending, another one
/// was refunded after a day; the first fifth of the largest partner's is open, those of the first three days
/// are in euros.
const INSERT_ORDERS: &str = "
    CREATE TEMPORARY TABLE placed AS
    SELECT i,
           at,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'
                || '8' || substr(md5(i::text || $partner), 1, 15))::uuid AS order_id,
           CASE i % 10 WHEN 7 THEN 'PENDING' WHEN 8 THEN 'REFUNDED' ELSE 'DELIVERED' END AS status,
           CASE WHEN i < 3000 THEN 'EUR' ELSE 'USD' END AS currency
      FROM generate_series(1, $count) AS i
     CROSS JOIN LATERAL (
           SELECT '2026-01-01Z'::timestamptz + i * interval '86.4 s' AS at
          ) AS t;
    INSERT INTO partners (partner_id, name, allowlist) VALUES ($partner::uuid, 'A partner', '{}');
    INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, reference, lines, timeline,
                        created_at, updated_at, trace)
    SELECT $partner::uuid, order_id, status, currency, 100, i > 20000 OR $count < 20000, 1, 'po-' || i,
           '[{\"p\":\"gift\",\"d\":100,\"u\":100,\"q\":1,\"a\":1}]', '[]', at,
           CASE status WHEN 'REFUNDED' THEN at + interval '1 day' ELSE at END,
           decode(md5('trace-' || i) || repeat('0', 24), 'hex')
      FROM placed;
    INSERT INTO stock (stock_id, chunk_id, code_id) SELECT i + $base, 1, i + $base FROM placed;
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT i + $base, order_id, $partner::uuid, order_id, 0 FROM placed WHERE status = 'DELIVERED';
    INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
    SELECT $partner::uuid,
           COALESCE(l.debit_id, gen_random_uuid()),
           l.currency,
           row_number() OVER (PARTITION BY l.currency ORDER BY l.at),
           l.kind, 0, 0, l.order_id, l.at
      FROM (
            SELECT order_id AS debit_id, 'DEBIT' AS kind, order_id, currency, at FROM placed
             UNION ALL
            SELECT NULL, 'REFUND', order_id, currency, at + interval '1 s' FROM placed WHERE status = 'REFUNDED'
             UNION ALL
            SELECT NULL, 'TOP_UP', NULL, currency, at + interval '1 s' FROM placed WHERE i % 10000 = 5
           ) AS l;
    INSERT INTO wallets (partner_id, currency, sequence)
    SELECT partner_id, currency, max(sequence) FROM ledger WHERE partner_id = $partner::uuid GROUP BY 1, 2;
    DROP TABLE placed;";

const INSERT_AUDIT_LOG: &str = "
    INSERT INTO audit_log (at, operator, action, subject, partner_id)
    SELECT '2026-01-01Z'::timestamptz + i * interval '86.4 s',
           CASE WHEN i < 10 THEN 'alice' ELSE 'bob' END,
           CASE WHEN i < 10 THEN 'stock.void' ELSE 'product.put' END,
           'p' || i,
           CASE WHEN i < 10 THEN $third END
      FROM generate_series(1, 100000) AS i;
    INSERT INTO audit_log (at, operator, action, subject, partner_id)
    SELECT '2025-01-01Z', 'a partner', 'codes.retrieve', 'o' || i, $first FROM generate_series(1, 100000) AS i";

/// Twenty SKUs of twenty vouchers each, and one SKU with a hundred chunks of nearly all of the first
/// partner's vouchers.
const INSERT_CHUNKS: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
    SELECT 'gift', i, 1000000 + i * 20 - 19, 1000000 + i * 20 FROM generate_series(1, 20) AS i;
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
    SELECT 'gift', 21, 1000401 + i * 995, 1001395 + i * 995 FROM generate_series(0, 99) AS i";

const ANALYZE: &str = "ANALYZE partners, wallets, orders, chunks, stock, allocations, ledger, audit_log";

pub(super) struct ListFixture {
    pub(super) subject: PgSubject,
    pub(super) store: PgStore,
}

/// Partner with this number; partner 1 has most of the orders.
pub(super) fn partner(number: u64) -> PartnerId {
    build::partner(number)
}

/// Time this many days after the first order.
pub(super) fn day(number: i64) -> Option<OffsetDateTime> {
    Some(FIRST_ORDER_AT + Duration::days(number))
}

/// Period of the first day.
pub(super) fn first_day() -> Period {
    Period {
        from: day(0),
        to: day(1),
    }
}

impl ListFixture {
    pub(super) async fn create() -> Self {
        let subject = PgSubject::new().await;
        for (number, count) in [(1, ORDERS), (2, 1_000), (3, 1_000)] {
            let fill = INSERT_ORDERS
                .replace("$partner", &format!("'{}'", partner(number).as_uuid()))
                .replace("$count", &count.to_string())
                .replace("$base", &(number * 1_000_000).to_string());
            subject.pool().execute(AssertSqlSafe(fill)).await.unwrap();
        }
        let of_partner = |number| format!("'{}'::uuid", partner(number).as_uuid());
        let entries = INSERT_AUDIT_LOG
            .replace("$first", &of_partner(1))
            .replace("$third", &of_partner(3));
        subject.pool().execute(AssertSqlSafe(entries)).await.unwrap();
        // Also creates the product of the other chunks.
        subject
            .add_chunk(&build::sku("gift", 1_000), &[build::day(0)])
            .await;
        subject.pool().execute(INSERT_CHUNKS).await.unwrap();
        subject.pool().execute(ANALYZE).await.unwrap();
        let options = subject.superuser_options().options(EXPLAIN);
        let store = PgStore::open(options, Handle::current());
        Self { subject, store }
    }

    /// Runs a read; returns its result and the number of rows that the server read for it.
    pub(super) async fn count_rows_read<T>(
        &self,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> (Vec<T>, f64) {
        let begin = self.subject.log().len();
        let found = read.await.unwrap();
        let log = self.subject.log();
        let explained = plans(&log[begin..]);
        assert!(!explained.is_empty(), "no plan was logged");
        (found, explained.iter().map(|plan| rows_read(&plan["Plan"])).sum())
    }

    /// Checks that the read returns `count` items and stays within the row limit.
    pub(super) async fn assert_reads_few_rows<T>(
        &self,
        description: &str,
        count: usize,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) {
        let (found, rows) = self.count_rows_read(read).await;
        assert_eq!(found.len(), count, "{description}");
        assert!(rows <= MAX_ROWS, "{description}: read {rows} rows for {count}");
    }

    /// Checks that the read exceeds the row limit after the statement has dropped an index.
    pub(super) async fn assert_reads_many_rows_without<T>(
        &self,
        drop_statement: &'static str,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) {
        self.subject.pool().execute(drop_statement).await.unwrap();
        let (_, rows) = self.count_rows_read(read).await;
        assert!(
            rows > 10.0 * MAX_ROWS,
            "{rows} rows without the index: {drop_statement}"
        );
    }
}

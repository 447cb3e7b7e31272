//! No list reads much more than it gives, however much there is: each filter has an index behind it.
//!
//! The server says how it ran each statement, and how many rows it looked at (`auto_explain`). A partner has 100,000
//! orders over 100 days among partners with fewer, and what is looked for lies at the far end of them.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe::store::{AuditFilter, LedgerPlace, OrderFilter, Period, PgStore, TransactionFilter};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::order::OrderStatus;
use vouchsafe_actors::testing::build;

use crate::plans::{EXPLAIN, LOG, plans};
use crate::subject::PgSubject;

/// When the first order was placed; one follows every 86.4 s.
const BEGIN: OffsetDateTime = datetime!(2026-01-01 0:00 UTC);

const ORDERS: i64 = 100_000;

/// How many rows a page of 26 may look at: its own and their vouchers from the heap, a few wallets and partners, and what
/// lies between two that are wanted. All of a partner's orders are a hundred times as many.
const MOST_ROWS: f64 = 1_000.0;

/// Orders of one partner, each with its debit and its voucher. Of ten one is pending, and another one has been refunded;
/// every one has a reference; the first three days were paid in euros.
const FILL: &str = "
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
    INSERT INTO wallets (partner_id, currency, sequence) VALUES ($partner::uuid, 'EUR', 3000), ($partner::uuid, 'USD', 1);
    INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, reference, lines, timeline,
                        created_at, updated_at)
    SELECT $partner::uuid, order_id, status, currency, 100, true, 1, 'po-' || i,
           '[{\"p\":\"gift\",\"d\":100,\"u\":100,\"q\":1,\"a\":1}]', '[]', at, at
      FROM placed;
    INSERT INTO stock (stock_id, chunk_id, code_id) SELECT i + $base, 1, i + $base FROM placed;
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT i + $base, order_id, $partner::uuid, order_id, 0 FROM placed WHERE status = 'DELIVERED';
    INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
    SELECT $partner::uuid, order_id, currency, 2 * i, 'DEBIT', -100, 0, order_id, at FROM placed
     UNION ALL
    SELECT $partner::uuid, gen_random_uuid(), currency, 2 * i + 1, 'REFUND', 100, 100, order_id, at + interval '1 s'
      FROM placed
     WHERE status = 'REFUNDED'
     UNION ALL
    SELECT $partner::uuid, gen_random_uuid(), currency, 2 * i + 1, 'TOP_UP', 1000, 1000, NULL, at + interval '1 s'
      FROM placed
     WHERE i % 10000 = 5;
    DROP TABLE placed;";

const FILL_TRAIL: &str = "
    INSERT INTO audit_log (at, operator, action, subject)
    SELECT '2026-01-01Z'::timestamptz + i * interval '86.4 s',
           CASE WHEN i < 10 THEN 'alice' ELSE 'bob' END,
           CASE WHEN i < 10 THEN 'stock.void' ELSE 'product.put' END,
           'p' || i
      FROM generate_series(1, 100000) AS i";

const ANALYZE: &str = "ANALYZE partners, wallets, orders, stock, allocations, ledger, audit_log";

struct Lists {
    subject: PgSubject,
    store: PgStore,
}

fn partner(number: u64) -> PartnerId {
    build::partner(number)
}

/// So many days after the first order.
fn day(number: i64) -> Option<OffsetDateTime> {
    Some(BEGIN + Duration::days(number))
}

/// The first orders of all.
fn first_day() -> Period {
    Period {
        from: day(0),
        to: day(1),
    }
}

impl Lists {
    async fn open() -> Self {
        let subject = PgSubject::new().await;
        for (number, count) in [(1, ORDERS), (2, 1_000), (3, 1_000)] {
            let fill = FILL
                .replace("$partner", &format!("'{}'", partner(number).as_uuid()))
                .replace("$count", &count.to_string())
                .replace("$base", &(number * 1_000_000).to_string());
            subject.pool().execute(AssertSqlSafe(fill)).await.unwrap();
        }
        subject.pool().execute(FILL_TRAIL).await.unwrap();
        subject.pool().execute(ANALYZE).await.unwrap();
        let options = subject.superuser_options().options(EXPLAIN);
        let store = PgStore::open(options, Handle::current(), "reader".to_owned()).await;
        let store = store.unwrap();
        Self { subject, store }
    }

    /// Reads something; gives what was found and how many rows the server looked at for it.
    async fn look<T>(&self, read: impl Future<Output = Result<Vec<T>, sqlx::Error>>) -> (Vec<T>, f64) {
        let begin = self.subject.log().len();
        let found = read.await.unwrap();
        let log = self.subject.log();
        let explained = plans(&log[begin..]);
        assert!(!explained.is_empty(), "nothing was explained");
        (found, explained.iter().map(|plan| rows(&plan["Plan"])).sum())
    }

    /// Reads so many, and looks at little more.
    async fn assert_found<T>(
        &self,
        what: &str,
        count: usize,
        read: impl Future<Output = Result<Vec<T>, sqlx::Error>>,
    ) {
        let (found, looked) = self.look(read).await;
        assert_eq!(found.len(), count, "{what}");
        assert!(looked <= MOST_ROWS, "{what}: looked at {looked} rows for {count}");
    }

    /// Without these indexes far too many rows are looked at.
    async fn assert_missed<T>(&self, indexes: &str, read: impl Future<Output = Result<Vec<T>, sqlx::Error>>) {
        let drop = format!("DROP INDEX IF EXISTS {indexes}");
        self.subject.pool().execute(AssertSqlSafe(drop)).await.unwrap();
        let (_, looked) = self.look(read).await;
        assert!(
            looked > 10.0 * MOST_ROWS,
            "{indexes} is not missed: {looked} rows"
        );
    }
}

/// How many rows a node of a plan and those below it got out of tables, kept or not.
fn rows(node: &Value) -> f64 {
    let below = node["Plans"].as_array().into_iter().flatten();
    let below: f64 = below.map(rows).sum();
    let is_scan = node["Node Type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("Scan"));
    if !is_scan {
        return below;
    }
    let number = |name: &str| node[name].as_f64().unwrap_or_default();
    let each =
        number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    below + each * number("Actual Loops")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_list_looks_at_little_more_than_it_gives() {
    let _log = LOG.lock().await;
    let lists = Lists::open().await;
    transactions(&lists).await;
    orders(&lists).await;
    trail(&lists).await;
    each_index_is_missed(&lists).await;
    lists.subject.remove().await;
}

async fn transactions(lists: &Lists) {
    let first: Uuid =
        sqlx::query_scalar("SELECT order_id FROM orders WHERE reference = 'po-8' AND partner_id = $1")
            .bind(partner(1).as_uuid())
            .fetch_one(lists.subject.pool())
            .await
            .unwrap();
    let any = TransactionFilter::default();
    let euros = "EUR".parse().ok();
    let (order_id, kind) = (Some(OrderId::from_uuid(first)), Some(LedgerKind::Refund));
    let period = first_day();
    for (what, filter, count) in [
        ("all", any, 26),
        ("a day", TransactionFilter { period, ..any }, 26),
        (
            "a currency",
            TransactionFilter {
                currency: euros,
                ..any
            },
            26,
        ),
        (
            "a currency and a day",
            TransactionFilter {
                currency: euros,
                period,
                ..any
            },
            26,
        ),
        (
            "debits",
            TransactionFilter {
                kind: Some(LedgerKind::Debit),
                ..any
            },
            26,
        ),
        ("refunds", TransactionFilter { kind, ..any }, 26),
        ("refunds of a day", TransactionFilter { kind, period, ..any }, 26),
        (
            "refunds in euros",
            TransactionFilter {
                kind,
                currency: euros,
                ..any
            },
            26,
        ),
        (
            "top-ups",
            TransactionFilter {
                kind: Some(LedgerKind::TopUp),
                ..any
            },
            10,
        ),
        (
            "adjustments",
            TransactionFilter {
                kind: Some(LedgerKind::Adjustment),
                ..any
            },
            0,
        ),
        ("an order", TransactionFilter { order_id, ..any }, 2),
        (
            "an order's refunds",
            TransactionFilter {
                order_id,
                kind,
                ..any
            },
            1,
        ),
    ] {
        for after in [None, day(99).map(|at| LedgerPlace::new(at, build::usd(), 1))] {
            let what = format!("transactions: {what}, after {after:?}");
            let read = lists.store.list_transactions(partner(1), filter, after, 26);
            lists.assert_found(&what, count, read).await;
        }
    }
}

async fn orders(lists: &Lists) {
    let any = OrderFilter::default;
    let status = |status| Some(status);
    let first = Some("po-1".to_owned());
    for (what, filter, count, everybodys) in [
        ("all", any(), 26, 26),
        (
            "a day",
            OrderFilter {
                period: first_day(),
                ..any()
            },
            26,
            26,
        ),
        (
            "delivered",
            OrderFilter {
                status: status(OrderStatus::Delivered),
                ..any()
            },
            26,
            26,
        ),
        (
            "pending",
            OrderFilter {
                status: status(OrderStatus::Pending),
                ..any()
            },
            26,
            26,
        ),
        (
            "pending of a day",
            OrderFilter {
                status: status(OrderStatus::Pending),
                period: first_day(),
                ..any()
            },
            26,
            26,
        ),
        (
            "processing",
            OrderFilter {
                status: status(OrderStatus::Processing),
                ..any()
            },
            0,
            0,
        ),
        (
            "a reference",
            OrderFilter {
                reference: first.clone(),
                ..any()
            },
            1,
            3,
        ),
        (
            "a reference and a status",
            OrderFilter {
                reference: first,
                status: status(OrderStatus::Pending),
                ..any()
            },
            0,
            0,
        ),
        (
            "no such reference",
            OrderFilter {
                reference: Some("x".to_owned()),
                ..any()
            },
            0,
            0,
        ),
    ] {
        for before in [None, day(99).map(OrderId::first_at)] {
            let what = format!("orders: {what}, before {before:?}");
            let read = lists.store.list_orders(partner(1), filter.clone(), before, 26);
            lists.assert_found(&what, count, read).await;
            let read = lists.store.search_orders(filter.clone(), before, 26);
            let what = format!("everybody's {what}");
            lists.assert_found(&what, everybodys, read).await;
        }
    }
}

async fn trail(lists: &Lists) {
    let any = AuditFilter::default;
    for (what, filter, count) in [
        ("all", any(), 26),
        (
            "an operator",
            AuditFilter {
                operator: Some("alice".to_owned()),
                ..any()
            },
            9,
        ),
        (
            "an action",
            AuditFilter {
                action: Some("stock.void".to_owned()),
                ..any()
            },
            9,
        ),
        (
            "a subject",
            AuditFilter {
                subject: Some("p1".to_owned()),
                ..any()
            },
            1,
        ),
        (
            "an hour",
            AuditFilter {
                period: Period {
                    from: day(0),
                    to: day(0).map(|at| at + Duration::HOUR),
                },
                ..any()
            },
            26,
        ),
    ] {
        let what = format!("audit: {what}");
        let read = lists.store.list_audit(filter, None, 26);
        lists.assert_found(&what, count, read).await;
    }
}

async fn each_index_is_missed(lists: &Lists) {
    let entries = |filter| lists.store.list_transactions(partner(1), filter, None, 26);
    let any = TransactionFilter::default();
    let of_kind = |kind| TransactionFilter {
        kind: Some(kind),
        ..any
    };
    let of_order = TransactionFilter {
        order_id: Some(OrderId::first_at(BEGIN)),
        ..any
    };
    let in_status = OrderFilter {
        status: Some(OrderStatus::Processing),
        ..OrderFilter::default()
    };
    let by_reference = OrderFilter {
        reference: Some("x".to_owned()),
        ..OrderFilter::default()
    };
    let orders = |filter| lists.store.list_orders(partner(1), filter, None, 26);
    // Either of these two would do where other entries than debits are few, as they are here.
    let others = "ledger_by_kind, ledger_of_order";
    let adjustments = entries(of_kind(LedgerKind::Adjustment));
    lists.assert_missed(others, adjustments).await;
    lists.assert_missed(others, entries(of_order)).await;
    lists.assert_missed("ledger_by_time", entries(any)).await;
    lists.assert_missed("orders_by_status", orders(in_status)).await;
    lists
        .assert_missed("orders_by_reference", orders(by_reference))
        .await;
}

//! Database invariants as SQL queries that return the violating rows.
//!
//! They use none of the service's SQL, so that they share none of its defects.

use sqlx::PgConnection;

/// A rule and the query that returns its violations.
pub(crate) struct Invariant {
    pub(crate) name: &'static str,
    sql: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BrokenInvariant {
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<String>,
}

/// Runs all queries, in one snapshot if the connection is in a repeatable-read transaction.
pub(crate) async fn find_broken(connection: &mut PgConnection) -> Vec<BrokenInvariant> {
    let mut violations = Vec::new();
    for Invariant { name, sql } in &INVARIANTS {
        let rows = sqlx::query_scalar(*sql).fetch_all(&mut *connection).await;
        let mut rows: Vec<String> = rows.unwrap_or_else(|error| panic!("{name}: {error}"));
        if !rows.is_empty() {
            rows.truncate(5);
            violations.push(BrokenInvariant { name, rows });
        }
    }
    violations
}

pub(crate) const INVARIANTS: [Invariant; 17] = [
    Invariant {
        name: "a wallet balance equals the sum of its ledger",
        sql: "SELECT w::text
                FROM wallets AS w
                LEFT JOIN LATERAL (
                     SELECT COALESCE(sum(l.amount), 0) AS amount, count(*) AS entries
                       FROM ledger AS l
                      WHERE l.partner_id = w.partner_id AND l.currency = w.currency
                     ) AS s ON true
               WHERE w.balance <> s.amount OR w.sequence <> s.entries OR w.balance < 0",
    },
    Invariant {
        name: "ledger entries form a chain",
        sql: "SELECT x::text
                FROM (
                  SELECT l.transaction_id, l.sequence, l.amount, l.balance_after,
                         COALESCE(lag(l.sequence) OVER wallet, 0) AS earlier_sequence,
                         COALESCE(lag(l.balance_after) OVER wallet, 0) AS earlier_balance
                    FROM ledger AS l
                  WINDOW wallet AS (PARTITION BY l.partner_id, l.currency ORDER BY l.sequence)
                ) AS x
               WHERE x.sequence <> x.earlier_sequence + 1
                  OR x.balance_after <> x.earlier_balance + x.amount
                  OR x.balance_after < 0",
    },
    Invariant {
        name: "an order is debited once, with its total",
        sql: "SELECT o.order_id::text
                FROM orders AS o
                LEFT JOIN (
                     SELECT l.partner_id, l.order_id, l.currency, sum(l.amount) AS amount,
                            count(*) FILTER (WHERE l.kind = 'DEBIT') AS debits
                       FROM ledger AS l
                      GROUP BY l.partner_id, l.order_id, l.currency
                     ) AS s ON s.partner_id = o.partner_id AND s.order_id = o.order_id
               WHERE (s.amount, s.debits, s.currency) IS DISTINCT FROM (o.refunded - o.total, 1::bigint, o.currency)",
    },
    Invariant {
        name: "a debit belongs to an order",
        sql: "SELECT l.transaction_id::text
                FROM ledger AS l
                LEFT JOIN orders AS o ON o.partner_id = l.partner_id AND o.order_id = l.order_id
               WHERE l.kind = 'DEBIT' AND o.order_id IS NULL",
    },
    Invariant {
        name: "pending_orders equals the paid undelivered amount",
        sql: "SELECT w::text
                FROM wallets AS w
               WHERE w.pending_orders <> (
                     SELECT COALESCE(sum(o.total - o.refunded - delivered.worth), 0)
                       FROM orders AS o
                      CROSS JOIN LATERAL (
                            SELECT COALESCE(sum((o.lines::jsonb -> a.line::integer ->> 'u')::bigint), 0) AS worth
                              FROM allocations AS a
                             WHERE a.partner_id = o.partner_id AND a.order_id = o.order_id AND a.returned_at IS NULL
                            ) AS delivered
                      WHERE o.partner_id = w.partner_id AND o.currency = w.currency
                     )",
    },
    Invariant {
        name: "an order total equals the sum of its lines",
        sql: "SELECT o.order_id::text
                FROM orders AS o
               WHERE o.total <> (
                     SELECT sum((line->>'u')::bigint * (line->>'q')::bigint)
                       FROM jsonb_array_elements(o.lines::jsonb) AS line
                     )",
    },
    Invariant {
        name: "an order has as many vouchers as its lines state",
        sql: "SELECT o.order_id || ' line ' || l.number
                FROM orders AS o
               CROSS JOIN LATERAL jsonb_array_elements(o.lines::jsonb) WITH ORDINALITY AS l (line, number)
               WHERE (l.line->>'a')::integer <> (
                     SELECT count(*)
                       FROM allocations AS a
                      WHERE a.partner_id = o.partner_id AND a.order_id = o.order_id AND a.line = l.number - 1
                        AND a.returned_at IS NULL
                     )
                  OR (o.status = 'DELIVERED' AND l.line->'a' <> l.line->'q')
                  OR (o.status = 'PENDING' AND l.line->'a' <> '0')",
    },
    Invariant {
        name: "a voucher matches the product of its order line",
        sql: "SELECT a::text
                FROM allocations AS a
                LEFT JOIN orders AS o ON o.partner_id = a.partner_id AND o.order_id = a.order_id
                LEFT JOIN stock AS s ON s.stock_id = a.stock_id
                LEFT JOIN codes AS c ON c.code_id = s.code_id
               WHERE a.withdrawal_reason IS NULL
                 AND (c.product_id, c.denomination)
                     IS DISTINCT FROM (o.lines::jsonb->a.line->>'p', (o.lines::jsonb->a.line->>'d')::bigint)",
    },
    Invariant {
        name: "a code and a voucher id are sold once",
        sql: "SELECT 'code ' || s.code_id
                FROM allocations AS a
                JOIN stock AS s ON s.stock_id = a.stock_id
               WHERE a.order_id IS NOT NULL AND a.returned_at IS NULL
               GROUP BY s.code_id
              HAVING count(*) > 1
               UNION ALL
              SELECT 'voucher ' || a.voucher_id
                FROM allocations AS a
               WHERE a.voucher_id IS NOT NULL
               GROUP BY a.voucher_id
              HAVING count(*) > 1",
    },
    Invariant {
        name: "an order is stored under one key",
        sql: "WITH kept AS (
                SELECT substr(convert_from(k.body, 'UTF8'), 14, 36) AS order_id
                  FROM idempotency_keys AS k
                 WHERE k.status IN (201, 202) AND substr(k.body, 3, 8) = 'order_id'::bytea
              )
              SELECT COALESCE(k.order_id, o.order_id::text) || ': ' || count(k.order_id)
                FROM kept AS k
                FULL JOIN orders AS o ON k.order_id = 'ord_' || replace(o.order_id::text, '-', '')
               GROUP BY o.order_id, k.order_id
              HAVING o.order_id IS NULL OR count(k.order_id) <> 1",
    },
    Invariant {
        name: "events of a partner are numbered without gaps",
        sql: "SELECT x::text
                FROM (
                  SELECT e.partner_id, e.number, e.count,
                         COALESCE(lag(e.number + e.count) OVER feed, 1) AS expected
                    FROM events AS e
                  WINDOW feed AS (PARTITION BY e.partner_id ORDER BY e.number)
                ) AS x
               WHERE x.number <> x.expected
               UNION ALL
              SELECT f::text
                FROM feeds AS f
               WHERE f.last_number <> (SELECT COALESCE(sum(e.count), 0) FROM events AS e WHERE e.partner_id = f.partner_id)",
    },
    Invariant {
        name: "an order has all its events and no event lacks its order",
        sql: "SELECT COALESCE(o.order_id, e.order_id)::text
                FROM orders AS o
                FULL JOIN (
                     SELECT e.partner_id, e.order_id, sum(e.count) AS told, min(e.first_sequence) AS first
                       FROM events AS e
                      GROUP BY e.partner_id, e.order_id
                     ) AS e ON e.partner_id = o.partner_id AND e.order_id = o.order_id
               WHERE (o.last_sequence, 1) IS DISTINCT FROM (e.told, e.first)",
    },
    Invariant {
        name: "a chunk holds its stock without gaps",
        sql: "SELECT c::text
                FROM chunks AS c
               WHERE c.last_stock_id - c.first_stock_id + 1 <> (
                     SELECT count(*)
                       FROM stock AS s
                       JOIN codes AS k ON k.code_id = s.code_id
                      WHERE s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                        AND s.chunk_id = c.chunk_id
                        AND (k.product_id, k.denomination) = (c.product_id, c.denomination)
                     )
               UNION ALL
              SELECT s::text
                FROM stock AS s
               WHERE NOT EXISTS (SELECT FROM chunks AS c WHERE c.chunk_id = s.chunk_id)",
    },
    Invariant {
        name: "a chunk marked as emptied is empty",
        sql: "SELECT s::text
                FROM chunks AS c
                JOIN stock AS s ON s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
               WHERE c.emptied AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)",
    },
    Invariant {
        name: "a code is in stock once, apart from returned rows",
        sql: "SELECT k.code_id::text
                FROM codes AS k
                LEFT JOIN stock AS s
                  ON s.code_id = k.code_id
                 AND NOT EXISTS (
                     SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id AND a.returned_at IS NOT NULL
                     )
               GROUP BY k.code_id
              HAVING count(s.stock_id) <> 1",
    },
    Invariant {
        name: "every code read is audited",
        sql: "SELECT a::text
                FROM allocations AS a
               WHERE a.first_retrieved_at IS NOT NULL
                 AND NOT EXISTS (
                     SELECT
                       FROM audit_log AS r
                       JOIN orders AS o ON r.subject = 'ord_' || replace(o.order_id::text, '-', '')
                      WHERE r.action = 'codes.retrieve'
                        AND o.partner_id = a.partner_id AND o.order_id = a.order_id
                        AND o.codes_retrieved_at IS NOT NULL
                     )",
    },
    Invariant {
        name: "a retrieved voucher is never returned",
        sql: "SELECT a::text
                FROM allocations AS a
               WHERE a.first_retrieved_at IS NOT NULL AND a.returned_at IS NOT NULL",
    },
];

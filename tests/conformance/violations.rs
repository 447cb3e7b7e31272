//! The invariants, each as a query whose rows are its violations.

use sqlx::PgPool;

/// Name and query of each; a row is a text that says what is wrong.
const INVARIANTS: &[(&str, &str)] = &[
    (
        "I1 conservation",
        "SELECT format('%s %s: balance %s at %s, ledger %s at %s', partner_id, currency, w.balance, w.sequence, l.sum, l.last)
           FROM wallets AS w
           FULL JOIN (
                SELECT partner_id, currency, sum(amount) AS sum, max(sequence) AS last
                  FROM ledger
                 GROUP BY partner_id, currency
                ) AS l USING (partner_id, currency)
          WHERE (w.balance, w.sequence) IS DISTINCT FROM (COALESCE(l.sum, 0), COALESCE(l.last, 0))",
    ),
    (
        "I2 chain",
        "SELECT format('%s %s: entry %s', partner_id, currency, sequence)
           FROM (
                SELECT *,
                       lag(sequence) OVER wallet AS sequence_before,
                       lag(balance_after) OVER wallet AS balance_before
                  FROM ledger
                WINDOW wallet AS (PARTITION BY partner_id, currency ORDER BY sequence)
                ) AS l
          WHERE sequence <> COALESCE(sequence_before, 0) + 1
             OR balance_after <> COALESCE(balance_before, 0) + amount",
    ),
    (
        "I3 no overdraft",
        "SELECT format('%s %s', partner_id, currency) FROM ledger WHERE balance_after < 0
          UNION ALL
         SELECT format('%s %s', partner_id, currency) FROM wallets WHERE balance < 0",
    ),
    (
        "I4 order and money",
        "SELECT format('order %s: total %s, moved %s', order_id, o.total, l.net)
           FROM orders AS o
           FULL JOIN (
                SELECT partner_id, currency, order_id, sum(amount) AS net
                  FROM ledger
                 WHERE order_id IS NOT NULL
                 GROUP BY partner_id, currency, order_id
                ) AS l USING (partner_id, currency, order_id)
          WHERE l.net IS DISTINCT FROM o.refunded - o.total",
    ),
    (
        "I4 pending orders",
        "SELECT format('%s %s: pending %s, due %s', w.partner_id, w.currency, w.pending_orders, d.due)
           FROM wallets AS w
           LEFT JOIN (
                SELECT o.partner_id, o.currency,
                       sum((l ->> 'u')::bigint
                           * ((l ->> 'q')::int - (l ->> 'a')::int - COALESCE((l ->> 'f')::int, 0))) AS due
                  FROM orders AS o
                 CROSS JOIN jsonb_array_elements(o.lines) AS l
                 WHERE NOT o.closed
                 GROUP BY o.partner_id, o.currency
                ) AS d ON d.partner_id = w.partner_id AND d.currency = w.currency
          WHERE w.pending_orders <> COALESCE(d.due, 0)",
    ),
    (
        "I5 public id once",
        "SELECT format('%s', voucher_id) FROM allocations
          WHERE voucher_id IS NOT NULL
          GROUP BY voucher_id
         HAVING count(*) > 1",
    ),
    (
        "I5 voucher of stock",
        "SELECT format('stock %s', stock_id) FROM allocations AS a
          WHERE NOT EXISTS (SELECT FROM stock AS s WHERE s.stock_id = a.stock_id)",
    ),
    (
        "I6 total",
        "SELECT format('order %s', o.order_id)
           FROM orders AS o
          CROSS JOIN jsonb_array_elements(o.lines) AS l
          GROUP BY o.order_id, o.total
         HAVING o.total <> sum((l ->> 'u')::bigint * (l ->> 'q')::int)",
    ),
    (
        "I6 completeness",
        "SELECT format('order %s, line %s: %s', o.order_id, l.line, l.item)
           FROM orders AS o
          CROSS JOIN jsonb_array_elements(o.lines) WITH ORDINALITY AS l (item, line)
          WHERE (l.item ->> 'a')::bigint <> (
                SELECT count(*)
                  FROM allocations AS a
                  JOIN stock AS s ON s.stock_id = a.stock_id
                  JOIN chunks AS c ON c.chunk_id = s.chunk_id
                 WHERE (a.partner_id, a.order_id, a.line) = (o.partner_id, o.order_id, l.line - 1)
                   AND (c.product_id, c.denomination) = (l.item ->> 'p', (l.item ->> 'd')::bigint)
                )
             OR (o.status = 'DELIVERED' AND l.item ->> 'a' <> l.item ->> 'q')",
    ),
    (
        "I6 allocation and order",
        "SELECT format('stock %s', a.stock_id)
           FROM allocations AS a
          WHERE a.order_id IS NOT NULL
            AND NOT EXISTS (
                SELECT
                  FROM orders AS o
                 WHERE (o.partner_id, o.order_id) = (a.partner_id, a.order_id)
                   AND a.line < jsonb_array_length(o.lines)
                   AND o.status NOT IN ('CANCELLED', 'REFUNDED')
                )",
    ),
    (
        "I12 numbers without a gap",
        "SELECT format('%s: event %s', partner_id, number)
           FROM (
                SELECT *, lag(number + count) OVER (PARTITION BY partner_id ORDER BY number) AS next
                  FROM events
                ) AS e
          WHERE number <> COALESCE(next, 1)
          UNION ALL
         SELECT format('%s: feed at %s, events to %s', partner_id, f.last_number, e.last)
           FROM feeds AS f
           FULL JOIN (
                SELECT partner_id, max(number + count - 1) AS last FROM events GROUP BY partner_id
                ) AS e USING (partner_id)
          WHERE f.last_number IS DISTINCT FROM e.last",
    ),
    (
        "I14 an order's numbers",
        "SELECT format('order %s: event %s', order_id, first_sequence)
           FROM (
                SELECT *, lag(first_sequence + count) OVER (PARTITION BY order_id ORDER BY number) AS next
                  FROM events
                ) AS e
          WHERE first_sequence <> COALESCE(next, 1)
          UNION ALL
         SELECT format('order %s: at %s, told to %s', order_id, o.last_sequence, e.last)
           FROM orders AS o
           FULL JOIN (
                SELECT partner_id, order_id, max(first_sequence + count - 1) AS last
                  FROM events
                 GROUP BY partner_id, order_id
                ) AS e USING (partner_id, order_id)
          WHERE o.last_sequence IS DISTINCT FROM e.last",
    ),
    (
        "chunks and their stock",
        "SELECT format('stock %s of chunk %s', s.stock_id, s.chunk_id)
           FROM stock AS s
          WHERE NOT EXISTS (
                SELECT
                  FROM chunks AS c
                 WHERE c.chunk_id = s.chunk_id AND s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                )
          UNION ALL
         SELECT format('chunk %s is emptied, and has %s', c.chunk_id, s.stock_id)
           FROM chunks AS c
           JOIN stock AS s ON s.chunk_id = c.chunk_id
          WHERE c.emptied AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)
          UNION ALL
         SELECT format('chunk %s of %s, start %s', c.chunk_id, c.node, c.incarnation)
           FROM chunks AS c
           LEFT JOIN nodes AS n ON n.node = c.node
          WHERE (c.node IS NULL) <> (c.incarnation IS NULL)
             OR (c.node IS NOT NULL AND NOT COALESCE(c.incarnation <= n.incarnation, false))",
    ),
];

/// Every violation, under the name of its invariant.
pub(crate) async fn all(pool: &PgPool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, query) in INVARIANTS {
        let rows: Vec<String> = sqlx::query_scalar(*query).fetch_all(pool).await.unwrap();
        found.extend(rows.into_iter().map(|row| format!("{name}: {row}")));
    }
    found
}

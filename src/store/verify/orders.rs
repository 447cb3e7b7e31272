//! Orders: their lines, what they hold, their stages, and the answers that are kept of them.

use super::Invariant;

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "order.total",
        says: "the total of an order is the sum of its lines, each at its price",
        sql: "
            SELECT format('order %s: total %s', o.order_id, o.total)
              FROM orders AS o
              LEFT JOIN jsonb_array_elements(o.lines::jsonb) AS l ON true
             GROUP BY o.partner_id, o.order_id, o.total
            HAVING o.total IS DISTINCT FROM sum((l ->> 'u')::bigint * (l ->> 'q')::bigint)",
    },
    Invariant {
        name: "order.holds",
        says: "a line says it delivered as many vouchers of its SKU as the order holds",
        sql: "
            SELECT format('order %s, line %s: says %s, holds %s', o.order_id, l.line, l.item ->> 'a', h.held)
              FROM orders AS o
             CROSS JOIN jsonb_array_elements(o.lines::jsonb) WITH ORDINALITY AS l (item, line)
              LEFT JOIN (
                    SELECT a.partner_id, a.order_id, a.line, c.product_id, c.denomination, count(*) AS held
                      FROM allocations AS a
                      JOIN stock AS s ON s.stock_id = a.stock_id
                      JOIN chunks AS c ON c.chunk_id = s.chunk_id
                     WHERE a.order_id IS NOT NULL
                       AND a.returned_at IS NULL
                     GROUP BY a.partner_id, a.order_id, a.line, c.product_id, c.denomination
                    ) AS h
                ON h.partner_id = o.partner_id
               AND h.order_id = o.order_id
               AND h.line = l.line - 1
               AND h.product_id = l.item ->> 'p'
               AND h.denomination = (l.item ->> 'd')::bigint
             WHERE (l.item ->> 'a')::bigint <> COALESCE(h.held, 0)",
    },
    Invariant {
        name: "order.owns",
        says: "an allocated voucher belongs to a line of an order of its partner, and is of the line's SKU",
        sql: "
            SELECT format('stock row %s, order %s, line %s', a.stock_id, a.order_id, a.line)
              FROM allocations AS a
              LEFT JOIN orders AS o ON o.partner_id = a.partner_id AND o.order_id = a.order_id
              LEFT JOIN stock AS s ON s.stock_id = a.stock_id
              LEFT JOIN chunks AS c ON c.chunk_id = s.chunk_id
             WHERE a.order_id IS NOT NULL
               AND (c.product_id, c.denomination)
                   IS DISTINCT FROM (o.lines::jsonb -> a.line ->> 'p', (o.lines::jsonb -> a.line ->> 'd')::bigint)",
    },
    Invariant {
        name: "order.valid",
        says: "no order was given a voucher that had expired when it was placed",
        // A day is allowed for clocks that differ.
        sql: "
            SELECT format('order %s: stock row %s was good until %s', o.order_id, a.stock_id, s.expiry)
              FROM allocations AS a
              JOIN orders AS o ON o.partner_id = a.partner_id AND o.order_id = a.order_id
              JOIN stock AS s ON s.stock_id = a.stock_id
             WHERE s.expiry < (o.created_at AT TIME ZONE 'UTC')::date - 1",
    },
    Invariant {
        name: "order.returned",
        says: "a voucher that came back is missed by the line that had it: its unit counts as failed",
        sql: "
            SELECT format('order %s, line %s: %s came back, %s failed', o.order_id, r.line, r.vouchers,
                          o.lines::jsonb -> r.line ->> 'f')
              FROM (
                    SELECT partner_id, order_id, line, count(*) AS vouchers
                      FROM allocations
                     WHERE returned_at IS NOT NULL
                     GROUP BY partner_id, order_id, line
                    ) AS r
              LEFT JOIN orders AS o ON o.partner_id = r.partner_id AND o.order_id = r.order_id
             WHERE o.order_id IS NULL
                OR r.vouchers > COALESCE((o.lines::jsonb -> r.line ->> 'f')::bigint, 0)",
    },
    Invariant {
        name: "order.status",
        says: "delivered means all units, pending none, partially delivered some; refunded means all the money",
        sql: "
            SELECT format('order %s is %s: %s of %s delivered, %s failed, %s of %s refunded', o.order_id, o.status,
                          l.delivered, l.quantity, l.failed, o.refunded, o.total)
              FROM orders AS o
             CROSS JOIN LATERAL (
                    SELECT sum((i ->> 'q')::bigint) AS quantity,
                           sum((i ->> 'a')::bigint) AS delivered,
                           sum(COALESCE((i ->> 'f')::bigint, 0)) AS failed,
                           bool_or((i ->> 'a')::bigint + COALESCE((i ->> 'f')::bigint, 0) > (i ->> 'q')::bigint) AS over
                      FROM jsonb_array_elements(o.lines::jsonb) AS i
                    ) AS l
             WHERE l.over
                OR CASE o.status
                   WHEN 'PENDING' THEN l.delivered > 0 OR l.failed > 0
                   WHEN 'PROCESSING' THEN l.delivered > 0
                   WHEN 'PARTIALLY_DELIVERED' THEN l.delivered NOT BETWEEN 1 AND l.quantity - 1
                   WHEN 'DELIVERED' THEN l.delivered <> l.quantity
                   WHEN 'CANCELLED' THEN l.delivered > 0
                   WHEN 'REFUNDED' THEN l.failed <> l.quantity OR o.refunded <> o.total
                   ELSE false
                   END
                OR (o.fulfilled_from IS NULL) <> (l.delivered = 0)",
    },
    Invariant {
        name: "order.closed",
        says: "an order is closed when nothing of it is to come, and says what it waits for while it is pending",
        sql: "
            SELECT format('order %s is %s, closed %s, waits for %s', o.order_id, o.status, o.closed, o.pending_reason)
              FROM orders AS o
             WHERE o.closed <> (
                    o.status IN ('DELIVERED', 'REFUNDED')
                    OR (o.status = 'PARTIALLY_DELIVERED' AND NOT EXISTS (
                        SELECT
                          FROM jsonb_array_elements(o.lines::jsonb) AS i
                         WHERE (i ->> 'a')::bigint + COALESCE((i ->> 'f')::bigint, 0) < (i ->> 'q')::bigint
                        ))
                    )
                OR (o.status = 'PENDING' AND o.pending_reason IS NULL)
                OR (o.closed AND o.pending_reason IS NOT NULL)",
    },
    Invariant {
        name: "order.stages",
        says: "the timeline of an order begins as one may, follows the allowed edges in time, and ends at its status",
        sql: "
            SELECT format('order %s: entry %s, %s after %s', t.order_id, t.entry, t.status, t.before)
              FROM (
                    SELECT o.order_id, e.entry, e.item ->> 'status' AS status,
                           lag(e.item ->> 'status') OVER life AS before,
                           (e.item ->> 'at')::timestamptz < lag((e.item ->> 'at')::timestamptz) OVER life AS back
                      FROM orders AS o
                     CROSS JOIN jsonb_array_elements(timeline_of(o)) WITH ORDINALITY AS e (item, entry)
                    WINDOW life AS (PARTITION BY o.partner_id, o.order_id ORDER BY e.entry)
                    ) AS t
             WHERE t.back
                OR CASE
                   WHEN t.before IS NULL THEN t.status NOT IN ('PENDING', 'DELIVERED')
                   ELSE (t.before, t.status) NOT IN (
                        ('PENDING', 'PROCESSING'),
                        ('PENDING', 'CANCELLED'),
                        ('PROCESSING', 'PARTIALLY_DELIVERED'),
                        ('PROCESSING', 'DELIVERED'),
                        ('PROCESSING', 'CANCELLED'),
                        ('PARTIALLY_DELIVERED', 'PARTIALLY_DELIVERED'),
                        ('PARTIALLY_DELIVERED', 'DELIVERED'),
                        ('PARTIALLY_DELIVERED', 'CANCELLED'),
                        ('DELIVERED', 'CANCELLED'),
                        ('DELIVERED', 'PARTIALLY_DELIVERED'),
                        ('CANCELLED', 'REFUNDED')
                        )
                   END
             UNION ALL
            SELECT format('order %s is %s, its timeline ends at %s', o.order_id, o.status, timeline_of(o) -> -1 ->> 'status')
              FROM orders AS o
             WHERE o.status IS DISTINCT FROM timeline_of(o) -> -1 ->> 'status'",
    },
    Invariant {
        name: "order.currency",
        says: "an order that waits is in the currency of its products",
        sql: "
            SELECT format('order %s in %s, product %s', o.order_id, o.currency, l ->> 'p')
              FROM orders AS o
             CROSS JOIN jsonb_array_elements(o.lines::jsonb) AS l
              JOIN products AS p ON p.product_id = l ->> 'p'
             WHERE NOT o.closed AND p.currency <> o.currency",
    },
    Invariant {
        name: "purchase.line",
        says: "what is bought is of a line of an order, and no more than it asked for",
        sql: "
            SELECT format('purchase %s of order %s, line %s: %s codes of %s', p.purchase_id, p.order_id, p.line, b.codes,
                          p.quantity)
              FROM purchases AS p
              LEFT JOIN orders AS o ON o.partner_id = p.partner_id AND o.order_id = p.order_id
              LEFT JOIN (
                    SELECT purchase_id, count(*) AS codes FROM codes WHERE purchase_id IS NOT NULL GROUP BY purchase_id
                    ) AS b ON b.purchase_id = p.purchase_id
             WHERE (o.lines::jsonb -> p.line ->> 'p', (o.lines::jsonb -> p.line ->> 'd')::bigint)
                   IS DISTINCT FROM (p.product_id, p.denomination)
                OR p.quantity > (o.lines::jsonb -> p.line ->> 'q')::bigint
                OR b.codes > p.quantity",
    },
    Invariant {
        name: "order.moment",
        says: "the id of an order says when it was created: lists find orders of a time by their ids",
        sql: "
            SELECT format('order %s: created at %s', order_id, created_at)
              FROM orders
             WHERE left(replace(order_id::text, '-', ''), 16)
                   <> lpad(to_hex((extract(epoch FROM date_trunc('milliseconds', created_at)) * 1000)::bigint), 12, '0')
                      || '7'
                      || lpad(to_hex(extract(microseconds FROM created_at)::bigint % 1000), 3, '0')",
    },
    Invariant {
        name: "order.partner",
        says: "whatever belongs to a partner belongs to one that exists",
        sql: "
            SELECT format('%s of partner %s', x.what, x.partner_id)
              FROM (
                    SELECT DISTINCT 'an order' AS what, partner_id FROM orders
                     UNION ALL
                    SELECT DISTINCT 'a wallet', partner_id FROM wallets
                     UNION ALL
                    SELECT DISTINCT 'a ledger entry', partner_id FROM ledger
                     UNION ALL
                    SELECT DISTINCT 'a feed', partner_id FROM feeds
                     UNION ALL
                    SELECT DISTINCT 'a payout', partner_id FROM payouts
                     UNION ALL
                    SELECT DISTINCT 'a purchase', partner_id FROM purchases
                    ) AS x
             WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = x.partner_id)",
    },
    Invariant {
        name: "key.order",
        says: "a kept answer about an order tells of one that is there, and an order of today has one such answer",
        sql: "
            WITH kept AS MATERIALIZED (
                SELECT convert_from(k.body, 'UTF8')::jsonb ->> 'order_id' AS order_id
                  FROM idempotency_keys AS k
                 WHERE k.status IN (201, 202)
                   AND substring(k.body FROM 1 FOR 1) = '{'
            ), told AS MATERIALIZED (
                SELECT k.order_id, count(*) AS answers FROM kept AS k WHERE k.order_id IS NOT NULL GROUP BY k.order_id
            ), there AS MATERIALIZED (
                SELECT 'ord_' || replace(o.order_id::text, '-', '') AS order_id, o.created_at FROM orders AS o
            )
            SELECT format('%s: %s answers', t.order_id, t.answers)
              FROM told AS t
              LEFT JOIN there AS o ON o.order_id = t.order_id
             WHERE t.answers > 1 OR o.order_id IS NULL
             UNION ALL
            SELECT format('%s: no answer is kept', o.order_id)
              FROM there AS o
              LEFT JOIN told AS t ON t.order_id = o.order_id
             WHERE t.order_id IS NULL
               -- Kept for 24 hours from the commit; an hour for clocks that differ.
               AND o.created_at > now() - interval '23 hours'",
    },
    Invariant {
        name: "key.booking",
        says: "a kept reference of an operator's booking names one ledger entry, and such an entry has its reference kept",
        sql: "
            WITH told AS MATERIALIZED (
                SELECT convert_from(k.body, 'UTF8') AS transaction_id, k.expires_at
                  FROM idempotency_keys AS k
                 WHERE substring(k.body FROM 1 FOR 4) = 'txn_'
            ), there AS MATERIALIZED (
                SELECT 'txn_' || replace(l.transaction_id::text, '-', '') AS transaction_id, l.kind
                  FROM ledger AS l
                 WHERE l.kind IN ('TOP_UP', 'ADJUSTMENT')
            )
            SELECT format('%s, %s, kept until %s', transaction_id, l.kind, t.expires_at)
              FROM told AS t
              FULL JOIN there AS l USING (transaction_id)
             WHERE l.kind IS NULL OR t.expires_at IS DISTINCT FROM 'infinity'",
    },
    Invariant {
        name: "key.time",
        says: "an answer is kept for 24 hours, or for ever",
        sql: "
            SELECT format('key %s: until %s', k.key, k.expires_at)
              FROM idempotency_keys AS k
             WHERE k.expires_at > now() + interval '24 hours 1 minute'
               AND k.expires_at <> 'infinity'",
    },
];

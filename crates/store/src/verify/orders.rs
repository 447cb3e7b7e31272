//! Invariants of orders: lines, vouchers, transitions, purchases and stored responses.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "order.total",
        "the total of an order is the sum of its lines at their prices",
        "SELECT format('order %s: total %s', o.order_id, o.total)
           FROM orders AS o
           LEFT JOIN jsonb_array_elements(o.lines::jsonb) AS l ON true
          GROUP BY o.partner_id, o.order_id, o.total
         HAVING o.total IS DISTINCT FROM sum((l ->> 'u')::bigint * (l ->> 'q')::bigint)"
    ),
    invariant!(
        "order.holds",
        "the delivered units of a line equal the vouchers of its SKU that the order has",
        "SELECT format('order %s, line %s: %s delivered, %s allocated', o.order_id, l.line, l.item ->> 'a', h.held)
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
          WHERE (l.item ->> 'a')::bigint <> COALESCE(h.held, 0)"
    ),
    invariant!(
        "order.owns",
        "an allocated voucher belongs to an order line of its partner and has the line's SKU",
        "SELECT format('stock row %s, order %s, line %s', a.stock_id, a.order_id, a.line)
           FROM allocations AS a
           LEFT JOIN orders AS o ON o.partner_id = a.partner_id AND o.order_id = a.order_id
           LEFT JOIN stock AS s ON s.stock_id = a.stock_id
           LEFT JOIN chunks AS c ON c.chunk_id = s.chunk_id
          WHERE a.order_id IS NOT NULL
            AND (c.product_id, c.denomination)
                IS DISTINCT FROM (o.lines::jsonb -> a.line ->> 'p', (o.lines::jsonb -> a.line ->> 'd')::bigint)"
    ),
    invariant!(
        "order.valid",
        "no order has a voucher that had expired when the order was placed",
        // Allows a day of clock skew.
        "SELECT format('order %s: stock row %s expired after %s', o.order_id, a.stock_id, s.expiry)
           FROM allocations AS a
           JOIN orders AS o ON o.partner_id = a.partner_id AND o.order_id = a.order_id
           JOIN stock AS s ON s.stock_id = a.stock_id
          WHERE s.expiry < (o.created_at AT TIME ZONE 'UTC')::date - 1"
    ),
    invariant!(
        "order.returned",
        "a returned voucher counts as a failed unit of its line",
        "SELECT format('order %s, line %s: %s returned, %s failed', o.order_id, r.line, r.vouchers,
                       o.lines::jsonb -> r.line ->> 'f')
           FROM (
                 SELECT partner_id, order_id, line, count(*) AS vouchers
                   FROM allocations
                  WHERE returned_at IS NOT NULL
                  GROUP BY partner_id, order_id, line
                 ) AS r
           LEFT JOIN orders AS o ON o.partner_id = r.partner_id AND o.order_id = r.order_id
          WHERE o.order_id IS NULL
             OR r.vouchers > COALESCE((o.lines::jsonb -> r.line ->> 'f')::bigint, 0)"
    ),
    invariant!(
        "order.status",
        "the status of an order matches its delivered units, and refunded orders are refunded in full",
        "SELECT format('order %s is %s: %s of %s delivered, %s failed, %s of %s refunded', o.order_id, o.status,
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
             OR (o.fulfilled_from IS NULL) <> (l.delivered = 0)"
    ),
    invariant!(
        "order.closed",
        "an order is closed if nothing is left to deliver, and has a pending reason while it is pending",
        "SELECT format('order %s is %s, closed %s, pending reason %s', o.order_id, o.status, o.closed, o.pending_reason)
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
             OR (o.closed AND o.pending_reason IS NOT NULL)"
    ),
    invariant!(
        "order.stages",
        "the timeline of an order follows the allowed transitions in time and ends with its status",
        "SELECT format('order %s: entry %s, %s after %s', t.order_id, t.entry, t.status, t.before)
           FROM (
                 SELECT o.order_id, e.entry, e.item ->> 'status' AS status,
                        lag(e.item ->> 'status') OVER life AS before,
                        (e.item ->> 'at')::timestamptz < lag((e.item ->> 'at')::timestamptz) OVER life AS back
                   FROM orders AS o
                  CROSS JOIN jsonb_array_elements(order_timeline_v1(o)) WITH ORDINALITY AS e (item, entry)
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
         SELECT format('order %s is %s, its timeline ends at %s', o.order_id, o.status, order_timeline_v1(o) -> -1 ->> 'status')
           FROM orders AS o
          WHERE o.status IS DISTINCT FROM order_timeline_v1(o) -> -1 ->> 'status'"
    ),
    invariant!(
        "order.currency",
        "an open order has the currency of its products",
        "SELECT format('order %s in %s, product %s', o.order_id, o.currency, l ->> 'p')
           FROM orders AS o
          CROSS JOIN jsonb_array_elements(o.lines::jsonb) AS l
           JOIN products AS p ON p.product_id = l ->> 'p'
          WHERE NOT o.closed AND p.currency <> o.currency"
    ),
    invariant!(
        "purchase.line",
        "a purchase belongs to an order line and has at most its quantity",
        "SELECT format('purchase %s of order %s, line %s: %s codes of %s', p.purchase_id, p.order_id, p.line, b.codes,
                       p.quantity)
           FROM purchases AS p
           LEFT JOIN orders AS o ON o.partner_id = p.partner_id AND o.order_id = p.order_id
           LEFT JOIN (
                 SELECT purchase_id, count(*) AS codes FROM codes WHERE purchase_id IS NOT NULL GROUP BY purchase_id
                 ) AS b ON b.purchase_id = p.purchase_id
          WHERE (o.lines::jsonb -> p.line ->> 'p', (o.lines::jsonb -> p.line ->> 'd')::bigint)
                IS DISTINCT FROM (p.product_id, p.denomination)
             OR p.quantity > (o.lines::jsonb -> p.line ->> 'q')::bigint
             OR b.codes > p.quantity"
    ),
    invariant!(
        "order.moment",
        "the id of an order contains its creation time, by which lists find it",
        "SELECT format('order %s: created at %s', order_id, created_at)
           FROM orders
          WHERE left(replace(order_id::text, '-', ''), 16)
                <> lpad(to_hex((extract(epoch FROM date_trunc('milliseconds', created_at)) * 1000)::bigint), 12, '0')
                   || '7'
                   || lpad(to_hex(extract(microseconds FROM created_at)::bigint % 1000), 3, '0')"
    ),
    invariant!(
        "order.partner",
        "everything that names a partner names an existing one",
        "SELECT format('%s of partner %s', x.what, x.partner_id)
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
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = x.partner_id)"
    ),
    invariant!(
        "key.order",
        "a stored order response names an existing order, and each order of the last 24 hours has one",
        "WITH stored AS MATERIALIZED (
             SELECT convert_from(k.body, 'UTF8')::jsonb ->> 'order_id' AS order_id
               FROM idempotency_keys AS k
              WHERE k.status IN (201, 202)
                AND substring(k.body FROM 1 FOR 1) = '{'
         ), counted AS MATERIALIZED (
             SELECT k.order_id, count(*) AS answers FROM stored AS k WHERE k.order_id IS NOT NULL GROUP BY k.order_id
         ), existing AS MATERIALIZED (
             SELECT 'ord_' || replace(o.order_id::text, '-', '') AS order_id, o.created_at FROM orders AS o
         )
         SELECT format('%s: %s stored responses', t.order_id, t.answers)
           FROM counted AS t
           LEFT JOIN existing AS o ON o.order_id = t.order_id
          WHERE t.answers > 1 OR o.order_id IS NULL
          UNION ALL
         SELECT format('%s: no stored response', o.order_id)
           FROM existing AS o
           LEFT JOIN counted AS t ON t.order_id = o.order_id
          WHERE t.order_id IS NULL
            -- Stored for 24 hours from the commit; allows an hour of clock skew.
            AND o.created_at > now() - interval '23 hours'"
    ),
    invariant!(
        "key.booking",
        "a stored reference of an operator's booking names one ledger entry, and each such entry has one",
        "WITH stored AS MATERIALIZED (
             SELECT convert_from(k.body, 'UTF8') AS transaction_id, k.expires_at
               FROM idempotency_keys AS k
              WHERE substring(k.body FROM 1 FOR 4) = 'txn_'
         ), existing AS MATERIALIZED (
             SELECT 'txn_' || replace(l.transaction_id::text, '-', '') AS transaction_id, l.kind
               FROM ledger AS l
              WHERE l.kind IN ('TOP_UP', 'ADJUSTMENT')
         )
         SELECT format('%s, %s, stored until %s', transaction_id, l.kind, t.expires_at)
           FROM stored AS t
           FULL JOIN existing AS l USING (transaction_id)
          WHERE l.kind IS NULL OR t.expires_at IS DISTINCT FROM 'infinity'"
    ),
    invariant!(
        "key.time",
        "a stored response expires within 24 hours, or never",
        "SELECT format('key %s: until %s', k.key, k.expires_at)
           FROM idempotency_keys AS k
          WHERE k.expires_at > now() + interval '24 hours 1 minute'
            AND k.expires_at <> 'infinity'"
    ),
];

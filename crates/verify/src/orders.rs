//! Invariants of orders, by ranges of their key: lines, money, vouchers, transitions, purchases and
//! operators' decisions.

use super::scan::{FIRST_UUID, LAST_UUID, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations};

/// Amounts are shown in minor units.
pub(super) const SCAN: Scan = scan! {
    "orders",
    tables: ["orders"],
    first: [FIRST_UUID, FIRST_UUID],
    last: [LAST_UUID, LAST_UUID],
    next: r#"SELECT ARRAY[o.partner_id::text, o.order_id::text] AS "key!"
               FROM orders AS o
              WHERE (o.partner_id, o.order_id) > (($1::text[])[1]::uuid, ($1::text[])[2]::uuid)
              ORDER BY o.partner_id, o.order_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    // Most orders are delivered from stock at once, in one line, and not touched since. For the text of their
    // lines, as the service writes it, one comparison shows that every condition below holds. Only the other
    // orders (`x`) are taken apart.
    //
    // The ledger is probed per order: for a range the planner might choose an index by which it reads all of
    // a partner's.
    with: r#"WITH o AS MATERIALIZED (
             SELECT o.partner_id, o.order_id, o.status, o.currency, o.total, o.refunded, o.fulfilled_from, o.pending_reason,
                    o.closed, o.timeline, o.codes_retrieved_at, o.created_at, o.lines,
                    (d.currency, d.amount) = (o.currency, -o.total)
                     AND NOT EXISTS (
                         SELECT
                           FROM ledger AS l
                          WHERE l.partner_id = o.partner_id AND l.order_id = o.order_id AND l.kind <> 'DEBIT'
                         OFFSET 0
                        ) AS is_paid,
                    left(replace(o.order_id::text, '-', ''), 16)
                     = lpad(to_hex(o.created_us / 1000), 12, '0') || '7' || lpad(to_hex(o.created_us % 1000), 3, '0') AS has_moment
               FROM (
                     SELECT *, (date_part('epoch', o.created_at) * 1000000)::bigint AS created_us
                       FROM orders AS o
                      WHERE (o.partner_id, o.order_id) > (($1::text[])[1]::uuid, ($1::text[])[2]::uuid)
                        AND (o.partner_id, o.order_id) <= (($2::text[])[1]::uuid, ($2::text[])[2]::uuid)
                     OFFSET 0
                    ) AS o
               LEFT JOIN LATERAL (
                     SELECT l.currency, l.amount
                       FROM ledger AS l
                      WHERE l.partner_id = o.partner_id AND l.transaction_id = o.order_id AND l.kind = 'DEBIT'
                     OFFSET 0
                    ) AS d ON true
         ), a AS MATERIALIZED (
             SELECT a.partner_id, a.order_id, a.stock_id, a.line, a.first_retrieved_at, a.returned_at, s.expiry, k.chunk_id,
                    k.product_id, k.denomination
               FROM (
                     SELECT *
                       FROM allocations AS a
                      WHERE a.order_id IS NOT NULL
                        AND (a.partner_id, a.order_id) > (($1::text[])[1]::uuid, ($1::text[])[2]::uuid)
                        AND (a.partner_id, a.order_id) <= (($2::text[])[1]::uuid, ($2::text[])[2]::uuid)
                     OFFSET 0
                    ) AS a
               LEFT JOIN LATERAL (SELECT * FROM stock AS s WHERE s.stock_id = a.stock_id OFFSET 0) AS s ON true
               LEFT JOIN LATERAL (SELECT * FROM chunks AS k WHERE k.chunk_id = s.chunk_id OFFSET 0) AS k ON true
         ), held AS MATERIALIZED (
             SELECT a.partner_id, a.order_id, count(*) AS vouchers, min(a.product_id) AS product_id,
                    min(a.denomination) AS denomination, min(a.expiry) AS expiry,
                    min(a.chunk_id) = max(a.chunk_id)
                     AND min(a.line) = 0
                     AND max(a.line) = 0
                     AND count(a.product_id) = count(*)
                     AND count(a.first_retrieved_at) + count(a.returned_at) = 0 AS is_plain
               FROM a
              GROUP BY a.partner_id, a.order_id
         ), x AS MATERIALIZED (
             SELECT o.*, m.*, s.*
               FROM (
                     SELECT o.*, o.lines::jsonb AS items
                       FROM o
                       LEFT JOIN held AS h USING (partner_id, order_id)
                      WHERE (
                             o.status = 'DELIVERED'
                             AND o.closed
                             AND o.fulfilled_from IN ('cache', 'vendor', 'mixed')
                             AND o.pending_reason IS NULL
                             AND o.timeline IS NULL
                             AND o.refunded = 0
                             AND o.codes_retrieved_at IS NULL
                             AND o.is_paid
                             AND o.has_moment
                             AND h.is_plain
                             AND o.total % h.vouchers = 0
                             AND o.lines = '[{"p":"' || h.product_id || '","d":' || h.denomination || ',"u":'
                                           || o.total / h.vouchers || ',"q":' || h.vouchers || ',"a":' || h.vouchers || '}]'
                             AND (h.expiry >= (o.created_at AT TIME ZONE 'UTC')::date - 1) IS NOT FALSE
                            ) IS NOT TRUE
                    OFFSET 0
                    ) AS o
              CROSS JOIN LATERAL (
                     SELECT sum(l.amount) AS net,
                            count(*) FILTER (WHERE l.kind = 'DEBIT') AS debits,
                            count(*) FILTER (WHERE l.currency <> o.currency) AS foreign_entries,
                            -sum(l.amount) FILTER (WHERE l.kind = 'DEBIT') AS debited,
                            COALESCE(sum(l.amount) FILTER (WHERE l.kind = 'REFUND'), 0) AS paid_back
                       FROM (
                             SELECT l.kind, l.amount, l.currency
                               FROM ledger AS l
                              WHERE l.partner_id = o.partner_id AND l.transaction_id = o.order_id AND l.kind = 'DEBIT'
                              UNION ALL
                             SELECT l.kind, l.amount, l.currency
                               FROM ledger AS l
                              WHERE l.partner_id = o.partner_id AND l.order_id = o.order_id AND l.kind <> 'DEBIT'
                            ) AS l
                    ) AS m
              CROSS JOIN LATERAL (
                     SELECT sum((i ->> 'u')::bigint * (i ->> 'q')::bigint) AS value,
                            sum((i ->> 'u')::bigint * (i ->> 'a')::bigint) AS delivered_value,
                            sum((i ->> 'u')::bigint * ((i ->> 'q')::bigint - (i ->> 'a')::bigint
                                                       - COALESCE((i ->> 'f')::bigint, 0))) AS pending_value,
                            sum((i ->> 'q')::bigint) AS quantity,
                            sum((i ->> 'a')::bigint) AS delivered,
                            sum(COALESCE((i ->> 'f')::bigint, 0)) AS failed,
                            bool_or((i ->> 'a')::bigint + COALESCE((i ->> 'f')::bigint, 0) > (i ->> 'q')::bigint) AS is_over,
                            bool_or((i ->> 'a')::bigint + COALESCE((i ->> 'f')::bigint, 0) < (i ->> 'q')::bigint) AS is_open
                       FROM jsonb_array_elements(o.items) AS i
                    ) AS s
         ), i AS MATERIALIZED (
             SELECT x.partner_id, x.order_id, x.currency, x.closed, l.line - 1 AS line, l.item ->> 'p' AS product_id,
                    (l.item ->> 'd')::bigint AS denomination, (l.item ->> 'a')::bigint AS delivered,
                    COALESCE((l.item ->> 'f')::bigint, 0) AS failed
               FROM x
              CROSS JOIN jsonb_array_elements(x.items) WITH ORDINALITY AS l (item, line)
         ), b AS MATERIALIZED (
             SELECT a.*, x.created_at FROM a JOIN x USING (partner_id, order_id)
         ), p AS MATERIALIZED (
             SELECT p.*, b.codes
               FROM (
                     SELECT *
                       FROM purchases AS p
                      WHERE (p.partner_id, p.order_id) > (($1::text[])[1]::uuid, ($1::text[])[2]::uuid)
                        AND (p.partner_id, p.order_id) <= (($2::text[])[1]::uuid, ($2::text[])[2]::uuid)
                     OFFSET 0
                    ) AS p
              CROSS JOIN LATERAL (
                     SELECT count(*) AS codes FROM codes AS c WHERE c.purchase_id = p.purchase_id OFFSET 0
                    ) AS b
         ), retrievals AS MATERIALIZED (
             SELECT r.*, e.at, e.vouchers
               FROM (
                     SELECT 'ptn_' || replace(r.partner_id::text, '-', '') AS partner,
                            'ord_' || replace(r.order_id::text, '-', '') AS subject,
                            r.first_retrieved_at, r.codes_retrieved_at, r.retrieved
                       FROM (
                             SELECT o.partner_id, o.order_id, NULL::timestamptz, o.codes_retrieved_at, NULL::bigint
                               FROM o
                              WHERE o.codes_retrieved_at IS NOT NULL
                              UNION ALL
                             SELECT a.partner_id, a.order_id, a.first_retrieved_at, NULL, count(*)
                               FROM a
                              WHERE a.first_retrieved_at IS NOT NULL
                              GROUP BY a.partner_id, a.order_id, a.first_retrieved_at
                            ) AS r (partner_id, order_id, first_retrieved_at, codes_retrieved_at, retrieved)
                    ) AS r
               LEFT JOIN LATERAL (
                     SELECT e.at, (e.after ->> 'vouchers')::integer AS vouchers
                       FROM (SELECT * FROM audit_log AS e WHERE e.subject = r.subject OFFSET 0) AS e
                      WHERE e.action = 'codes.retrieve'
                        AND e.operator = r.partner
                        AND e.at = COALESCE(r.first_retrieved_at, r.codes_retrieved_at)
                      LIMIT 1
                    ) AS e ON true
         ), "#,
    "money.order_paid": "the ledger entries of an order sum up to its total minus refunds, in its currency, with one debit" =>
        "SELECT format('order %s: total %s, refunded %s, moved %s by %s debits, %s entries in another currency', order_id, total,
                       refunded, net, debits, foreign_entries)
           FROM x
          WHERE net IS DISTINCT FROM refunded - total
             OR debits <> 1
             OR foreign_entries > 0",
    "money.order_units": "the debit of an order is the value of its delivered and pending units plus its refunds" =>
        "SELECT format('order %s: debited %s, delivered %s, pending %s, paid back %s', order_id, debited, delivered_value,
                       pending_value, paid_back)
           FROM x
          WHERE debited IS DISTINCT FROM delivered_value + pending_value + paid_back
             OR pending_value < 0
             OR (closed AND pending_value <> 0)",
    "order.total": "the total of an order is the sum of its lines at their prices" =>
        "SELECT format('order %s: total %s', order_id, total) FROM x WHERE total IS DISTINCT FROM value",
    "order.holds": "the delivered units of a line equal the vouchers of its SKU that the order has" =>
        "SELECT format('order %s, line %s: %s delivered, %s allocated', i.order_id, i.line + 1, i.delivered, h.held)
           FROM i
           LEFT JOIN (
                 SELECT partner_id, order_id, line, product_id, denomination, count(*) AS held
                   FROM b
                  WHERE returned_at IS NULL
                  GROUP BY partner_id, order_id, line, product_id, denomination
                 ) AS h USING (partner_id, order_id, line, product_id, denomination)
          WHERE i.delivered <> COALESCE(h.held, 0)",
    "order.owns": "an allocated voucher belongs to an order line of its partner and has the line's SKU" =>
        "SELECT format('stock row %s, order %s, line %s', a.stock_id, a.order_id, a.line)
           FROM b AS a
           LEFT JOIN i USING (partner_id, order_id, line)
          WHERE (a.product_id, a.denomination) IS DISTINCT FROM (i.product_id, i.denomination)
          UNION ALL
         SELECT format('order %s of %s vouchers does not exist', h.order_id, h.vouchers)
           FROM held AS h
           LEFT JOIN o USING (partner_id, order_id)
          WHERE o.total IS NULL",
    // Allows a day of clock skew.
    "order.valid": "no order has a voucher that had expired when the order was placed" =>
        "SELECT format('order %s: stock row %s expired after %s', order_id, stock_id, expiry)
           FROM b
          WHERE expiry < (created_at AT TIME ZONE 'UTC')::date - 1",
    "order.returned": "a returned voucher counts as a failed unit of its line" =>
        "SELECT format('order %s, line %s: %s returned, %s failed', r.order_id, r.line, r.vouchers, i.failed)
           FROM (
                 SELECT partner_id, order_id, line, count(*) AS vouchers
                   FROM b
                  WHERE returned_at IS NOT NULL
                  GROUP BY partner_id, order_id, line
                 ) AS r
           LEFT JOIN i USING (partner_id, order_id, line)
          WHERE r.vouchers > COALESCE(i.failed, 0)",
    "order.status": "the status of an order matches its delivered units, and refunded orders are refunded in full" =>
        "SELECT format('order %s is %s: %s of %s delivered, %s failed, %s of %s refunded', order_id, status, delivered, quantity,
                       failed, refunded, total)
           FROM x
          WHERE is_over
             OR CASE status
                WHEN 'PENDING' THEN delivered > 0 OR failed > 0
                WHEN 'PROCESSING' THEN delivered > 0
                WHEN 'PARTIALLY_DELIVERED' THEN delivered NOT BETWEEN 1 AND quantity - 1
                WHEN 'DELIVERED' THEN delivered <> quantity
                WHEN 'CANCELLED' THEN delivered > 0
                WHEN 'REFUNDED' THEN failed <> quantity OR refunded <> total
                ELSE true
                END
             OR (fulfilled_from IS NULL) <> (delivered = 0)
             OR fulfilled_from NOT IN ('cache', 'vendor', 'mixed')",
    "order.closed": "an order is closed if nothing is left to deliver, and has a pending reason while it is pending" =>
        "SELECT format('order %s is %s, closed %s, pending reason %s', order_id, status, closed, pending_reason)
           FROM x
          WHERE closed <> (
                 status IN ('DELIVERED', 'REFUNDED')
                 OR (status = 'PARTIALLY_DELIVERED' AND is_open IS NOT TRUE)
                )
             OR (status = 'PENDING' AND pending_reason IS NULL)
             OR (closed AND pending_reason IS NOT NULL)
             OR pending_reason NOT IN ('VENDOR', 'APPROVAL')",
    // An order without a timeline stands as it was placed (order_timeline_v1).
    "order.stages": "the timeline of an order follows the allowed transitions in time and ends with its status" =>
        "SELECT format('order %s: entry %s, %s after %s', t.order_id, t.entry, t.status, t.before)
           FROM (
                 SELECT o.order_id, e.entry, e.item ->> 'status' AS status,
                        lag(e.item ->> 'status') OVER life AS before,
                        (e.item ->> 'at')::timestamptz < lag((e.item ->> 'at')::timestamptz) OVER life AS back
                   FROM x AS o
                  CROSS JOIN jsonb_array_elements(o.timeline) WITH ORDINALITY AS e (item, entry)
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
         SELECT format('order %s is %s, its timeline ends at %s', o.order_id, o.status, o.timeline -> -1 ->> 'status')
           FROM x AS o
          WHERE CASE
                WHEN o.timeline IS NULL THEN o.status NOT IN ('PENDING', 'DELIVERED')
                ELSE o.status IS DISTINCT FROM o.timeline -> -1 ->> 'status'
                END",
    "order.currency": "an open order has the currency of its products" =>
        "SELECT format('order %s in %s, product %s', i.order_id, i.currency, i.product_id)
           FROM i
           JOIN products AS p USING (product_id)
          WHERE NOT i.closed AND p.currency <> i.currency",
    "purchase.line": "a purchase belongs to an order line and has at most its quantity" =>
        "SELECT format('purchase %s of order %s, line %s: %s codes of %s', p.purchase_id, p.order_id, p.line, p.codes, p.quantity)
           FROM p
           LEFT JOIN o USING (partner_id, order_id)
          WHERE (o.lines::jsonb -> p.line ->> 'p', (o.lines::jsonb -> p.line ->> 'd')::bigint)
                IS DISTINCT FROM (p.product_id, p.denomination)
             OR p.quantity > (o.lines::jsonb -> p.line ->> 'q')::bigint
             OR p.codes > p.quantity",
    "order.moment": "the id of an order contains its creation time, by which lists find it" =>
        "SELECT format('order %s: created at %s', order_id, created_at)
           FROM x
          WHERE NOT has_moment",
    "order.partner": "everything that names a partner names an existing one" =>
        "SELECT format('%s of partner %s', x.what, x.partner_id)
           FROM (
                 SELECT DISTINCT 'an order' AS what, partner_id FROM o
                  UNION ALL
                 SELECT DISTINCT 'a purchase', partner_id FROM p
                ) AS x
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = x.partner_id)",
    // One statement writes the entry, first_retrieved_at and codes_retrieved_at with one timestamp
    // (retrieve_codes_v1). A voucher that was sold again on a lost timeline counts as retrieved at the time
    // of the comparison (quarantine.rs).
    "retrieval.audited": "each code retrieval has an audit entry with a credential of the order's partner" =>
        "SELECT format('%s: %s vouchers first retrieved %s, %s in the entry of %s', subject, retrieved,
                       COALESCE(first_retrieved_at, codes_retrieved_at), vouchers, at)
           FROM retrievals
          WHERE (at IS NULL OR (retrieved IS NOT NULL AND (vouchers IS NULL OR vouchers < retrieved)))
            -- Entries of earlier reads are archived.
            AND COALESCE(first_retrieved_at, codes_retrieved_at) > COALESCE((SELECT max(x.at) FROM archived_checkpoints AS x), '-infinity')
            AND NOT EXISTS (
                SELECT FROM audit_log AS c WHERE c.at = first_retrieved_at AND c.action = 'stock.compare' OFFSET 0
               )",
};

//! Invariants of ledger entries and of the events of paid orders, by ranges of each wallet's entries.
//!
//! A commit holds the locks of a wallet and of its partner's feed to its end, so the debits of a wallet and
//! the first events of their orders are in one order. A range of entries is therefore compared with a range
//! of events: the key has the number of the first event of the range's last debit as its fourth part. An
//! order's later events are found by `events_of_change`.

use super::scan::{
    FIRST_UUID, LAST_NUMBER, LAST_UUID, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations,
};

pub(super) const SCAN: Scan = scan! {
    "ledger",
    tables: ["ledger"],
    first: [FIRST_UUID, "", "0", "0"],
    last: [LAST_UUID, "", LAST_NUMBER, LAST_NUMBER],
    // Without a debit in the range the number stays. A debit without event is skipped, and reported by the
    // range.
    next: r#"SELECT ARRAY[
                     l.partner_id::text, l.currency, l.sequence::text,
                     COALESCE(
                      (
                       SELECT e.number
                         FROM ledger AS d
                        CROSS JOIN LATERAL (
                               SELECT e.number
                                 FROM events AS e
                                WHERE e.partner_id = l.partner_id
                                  AND e.number > CASE WHEN k.is_same THEN ($1::text[])[4]::bigint ELSE 0 END
                                  AND e.order_id = d.order_id
                                  AND e.first_sequence = 1
                                ORDER BY e.number
                                LIMIT 1
                              ) AS e
                        WHERE d.partner_id = l.partner_id
                          AND d.currency = l.currency
                          AND d.sequence > CASE WHEN k.is_same THEN ($1::text[])[3]::bigint ELSE 0 END
                          AND d.sequence <= l.sequence
                          AND d.sequence > COALESCE(
                              (SELECT (h.debits ->> l.currency)::bigint FROM event_horizons AS h WHERE h.partner_id = l.partner_id LIMIT 1),
                              0
                             )
                          AND d.kind = 'DEBIT'
                        ORDER BY d.sequence DESC
                        LIMIT 1
                      ),
                      CASE WHEN k.is_same THEN ($1::text[])[4]::bigint ELSE 0 END
                     )::text
                    ] AS "key!"
               FROM (
                     SELECT l.partner_id, l.currency, l.sequence
                       FROM ledger AS l
                      WHERE (l.partner_id, l.currency, l.sequence)
                            > (($1::text[])[1]::uuid, ($1::text[])[2], ($1::text[])[3]::bigint)
                      ORDER BY l.partner_id, l.currency, l.sequence
                     OFFSET $2::bigint - 1
                      LIMIT 1
                    ) AS l
              CROSS JOIN LATERAL (
                     SELECT (l.partner_id, l.currency) = (($1::text[])[1]::uuid, ($1::text[])[2]) AS is_same OFFSET 0
                    ) AS k"#,
    // `l` includes the entry before the range. The order by the index keeps the planner from reading a
    // partner's whole ledger. Most orders are delivered at once and not touched since. For the text of their
    // events, as the service writes it, one comparison shows that every condition below holds. Only the other
    // events (`x`) are taken apart.
    with: r#"WITH l AS MATERIALIZED (
             SELECT l.*,
                    (l.partner_id, l.currency, l.sequence)
                     > (($1::text[])[1]::uuid, ($1::text[])[2], ($1::text[])[3]::bigint) AS is_new,
                    lag(l.sequence) OVER wallet AS sequence_before,
                    lag(l.balance_after) OVER wallet AS balance_before
               FROM ledger AS l
              WHERE (l.partner_id, l.currency, l.sequence)
                    >= (($1::text[])[1]::uuid, ($1::text[])[2], ($1::text[])[3]::bigint)
                AND (l.partner_id, l.currency, l.sequence)
                    <= (($2::text[])[1]::uuid, ($2::text[])[2], ($2::text[])[3]::bigint)
             WINDOW wallet AS (PARTITION BY l.partner_id, l.currency ORDER BY l.sequence)
         ), w AS MATERIALIZED (
             SELECT w.partner_id, w.currency,
                    CASE
                        WHEN (w.partner_id, w.currency) = (($1::text[])[1]::uuid, ($1::text[])[2]) THEN ($1::text[])[4]::bigint
                        ELSE 0
                    END AS after,
                    CASE
                        WHEN (w.partner_id, w.currency) = (($2::text[])[1]::uuid, ($2::text[])[2]) THEN ($2::text[])[4]::bigint
                        ELSE 9223372036854775807
                    END AS until
               FROM (
                     SELECT DISTINCT l.partner_id, l.currency FROM l
                      UNION
                     SELECT ($1::text[])[1]::uuid, ($1::text[])[2]
                    ) AS w
         ), first_events AS MATERIALIZED (
             SELECT e.*
               FROM (
                     SELECT w.currency, e.partner_id, e.order_id, e.number, e.count, e.first_sequence, e.body AS text,
                            o.order_id AS order_found, o.currency AS order_currency, o.total, o.refunded, o.status,
                            o.timeline, o.last_sequence
                       FROM w
                      CROSS JOIN LATERAL (
                             SELECT *
                               FROM events AS e
                              WHERE e.partner_id = w.partner_id
                                AND e.number > w.after
                                AND e.number <= w.until
                                AND e.first_sequence = 1
                             OFFSET 0
                            ) AS e
                       LEFT JOIN LATERAL (
                             SELECT * FROM orders AS o WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id OFFSET 0
                            ) AS o ON true
                    ) AS e
              WHERE e.order_currency = e.currency OR e.order_currency IS NULL
         ), x AS MATERIALIZED (
             SELECT f.*, f.text::jsonb AS body
               FROM first_events AS f
              CROSS JOIN LATERAL (
                     SELECT count(*) AS vouchers,
                            bool_and(position('"v":"vch_' || replace(a.voucher_id::text, '-', '') || '"' IN f.text) > 0) AS are_issued
                       FROM allocations AS a
                      WHERE a.partner_id = f.partner_id AND a.order_id = f.order_id
                     OFFSET 0
                    ) AS a
              WHERE (
                     f.status = 'DELIVERED'
                     AND f.timeline IS NULL
                     AND f.refunded = 0
                     AND f.last_sequence = f.count
                     AND a.vouchers = f.count - 2
                     AND a.are_issued
                     AND starts_with(
                         f.text,
                         '{"n":1,"s":["c",{"i":{"f":0,"n":' || a.vouchers || '}},"d"],"o":"DELIVERED","t":'
                             || f.total || ',"c":"' || f.order_currency || '",'
                        )
                     AND right(f.text, 3) = '}]}'
                     AND length(f.text) - length(replace(f.text, '"v":"vch_', '')) = 9 * a.vouchers
                     AND (
                         a.vouchers = 1
                         OR a.vouchers = (
                             SELECT count(DISTINCT a.voucher_id)
                               FROM allocations AS a
                              WHERE a.partner_id = f.partner_id AND a.order_id = f.order_id
                            )
                        )
                     AND NOT EXISTS (
                         SELECT
                           FROM events AS e
                          WHERE e.partner_id = f.partner_id AND e.order_id = f.order_id AND e.first_sequence > 1
                         OFFSET 0
                        )
                    ) IS NOT TRUE
                 OR f.order_id IN (SELECT order_id FROM first_events GROUP BY order_id HAVING count(*) > 1)
         ), later_events AS MATERIALIZED (
             SELECT e.partner_id, e.order_id, e.number, e.count, e.first_sequence, e.body::jsonb AS body
               FROM x
              CROSS JOIN LATERAL (
                     SELECT *
                       FROM events AS e
                      WHERE e.partner_id = x.partner_id AND e.order_id = x.order_id AND e.first_sequence > 1
                     OFFSET 0
                    ) AS e
         ), bundles AS MATERIALIZED (
             SELECT partner_id, order_id, number, count, first_sequence, body FROM x
              UNION ALL
             SELECT * FROM later_events
         ), last_events AS MATERIALIZED (
             SELECT partner_id, order_id, max(number) AS number, max(first_sequence + count - 1) AS sequence
               FROM bundles
              GROUP BY partner_id, order_id
         ), steps AS MATERIALIZED (
             SELECT b.partner_id, b.order_id, b.number, t.place, b.body ->> 'o' AS status, t.step,
                    COALESCE(t.step #>> '{}', '') AS word
               FROM bundles AS b
              CROSS JOIN jsonb_array_elements(b.body -> 's') WITH ORDINALITY AS t (step, place)
         ), "#,
    "money.chain": "the ledger entries of a wallet are numbered without gaps, and each has the balance after it" =>
        "SELECT format('wallet %s %s: entry %s', partner_id, currency, sequence)
           FROM l
          WHERE is_new
            AND (
                 sequence <> COALESCE(sequence_before, 0) + 1
                 OR balance_after <> COALESCE(balance_before, 0) + amount
                )",
    "money.conservation": "the balance of a wallet is the sum of its ledger: the balance after the last entry (see money.chain)" =>
        "SELECT format('wallet %s %s: no wallet', l.partner_id, l.currency)
           FROM (SELECT DISTINCT partner_id, currency FROM l) AS l
          WHERE NOT EXISTS (
                 SELECT FROM wallets AS w WHERE w.partner_id = l.partner_id AND w.currency = l.currency
                )",
    "money.no_overdraft": "no wallet has, or ever had, a negative balance or pending amount" =>
        "SELECT format('wallet %s %s: entry %s left %s', partner_id, currency, sequence, balance_after)
           FROM l
          WHERE is_new AND balance_after < 0",
    "money.signs": "top-ups, refunds and reversals are positive, debits and payouts are negative, and no entry is zero" =>
        "SELECT format('wallet %s %s: entry %s, %s of %s', partner_id, currency, sequence, kind, amount)
           FROM l
          WHERE is_new
            AND (
                 amount = 0
                 OR (kind IN ('TOP_UP', 'REFUND', 'PAYOUT_REVERSAL') AND amount < 0)
                 OR (kind IN ('DEBIT', 'PAYOUT') AND amount > 0)
                )",
    "money.kinds": "only debits and refunds name an order, only payouts and reversals name a payout, and a \
        debit has its order's id" =>
        "SELECT format('wallet %s %s: entry %s, %s', partner_id, currency, sequence, kind)
           FROM l
          WHERE is_new
            AND (
                 kind NOT IN ('TOP_UP', 'DEBIT', 'REFUND', 'PAYOUT', 'PAYOUT_REVERSAL', 'ADJUSTMENT')
                 OR (kind IN ('DEBIT', 'REFUND')) <> (order_id IS NOT NULL)
                 OR (kind IN ('PAYOUT', 'PAYOUT_REVERSAL')) <> (payout_id IS NOT NULL)
                 OR (kind = 'DEBIT' AND transaction_id IS DISTINCT FROM order_id)
                )",
    "money.order_paid" =>
        "SELECT format('wallet %s %s: entry %s of order %s, which does not exist', l.partner_id, l.currency, l.sequence, l.order_id)
           FROM (
                 SELECT l.*
                   FROM l
                   LEFT JOIN first_events AS f ON f.partner_id = l.partner_id AND f.order_found = l.order_id
                  WHERE l.is_new AND l.order_id IS NOT NULL AND f.order_found IS NULL
                 OFFSET 0
                ) AS l
           LEFT JOIN LATERAL (
                 SELECT o.order_id FROM orders AS o WHERE o.partner_id = l.partner_id AND o.order_id = l.order_id OFFSET 0
                ) AS o ON true
          WHERE o.order_id IS NULL",
    "order.partner" =>
        "SELECT format('a ledger entry of partner %s', l.partner_id)
           FROM (SELECT DISTINCT partner_id FROM l) AS l
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = l.partner_id)",
    "event.order": "an order's events are numbered from 1 without gaps, and the order has the last number" =>
        "SELECT format('order %s: paid by entry %s, first event %s', order_id, l.sequence, e.number)
           FROM (
                 SELECT l.*
                   FROM l
                   LEFT JOIN event_horizons AS h ON h.partner_id = l.partner_id
                  WHERE l.is_new
                    AND l.kind = 'DEBIT'
                    -- The first events of earlier debits are archived.
                    AND l.sequence > COALESCE((h.debits ->> l.currency)::bigint, 0)
                ) AS l
           FULL JOIN first_events AS e USING (partner_id, currency, order_id)
          WHERE l.sequence IS NULL OR e.number IS NULL
          UNION ALL
         SELECT format('order %s: event %s', order_id, first_sequence)
           FROM (
                 SELECT *,
                        lag(first_sequence + count) OVER (PARTITION BY partner_id, order_id ORDER BY number) AS next
                   FROM (SELECT partner_id, order_id, number, count, first_sequence FROM bundles) AS b
                ) AS b
          WHERE first_sequence <> COALESCE(next, 1)
          UNION ALL
         SELECT format('order %s: at %s, events to %s', order_id, f.last_sequence, e.sequence)
           FROM x AS f
           JOIN last_events AS e USING (partner_id, order_id)
          WHERE f.last_sequence IS DISTINCT FROM e.sequence",
    "event.body": "an event bundle contains the counted events, and the order's total and currency" =>
        "SELECT format('order %s: event %s', order_id, b.first_sequence)
           FROM bundles AS b
           JOIN x AS f USING (partner_id, order_id)
          WHERE (b.body ->> 't')::bigint <> f.total
             OR b.body ->> 'c' <> f.order_currency
             OR (b.body ->> 'n')::integer <> b.first_sequence
             OR b.count <> (
                 SELECT sum(COALESCE((s -> 'i' ->> 'n')::integer, 1)) FROM jsonb_array_elements(b.body -> 's') AS s
                )",
    "event.status": "the last event of an order has its status" =>
        "SELECT format('order %s is %s, its last event says %s', order_id, f.status, b.body ->> 'o')
           FROM last_events AS e
           JOIN bundles AS b USING (partner_id, order_id, number)
           JOIN x AS f USING (partner_id, order_id)
          WHERE b.body ->> 'o' IS DISTINCT FROM f.status",
    // Acceptance as PENDING is a created event, and a partial refund has no timeline entry. An order without
    // a timeline stands as it was placed (order_timeline_v1).
    "event.stages": "the events of an order match its timeline, in order, and its refunds" =>
        "SELECT format('order %s: %s created events, %s, refunded %s of %s', order_id, t.created, t.stages, t.refunded, f.refunded)
           FROM x AS f
          CROSS JOIN LATERAL (
                 SELECT CASE
                        WHEN f.timeline IS NOT NULL THEN (
                             SELECT array_agg(m.item ->> 'status' ORDER BY m.entry)
                                     FILTER (WHERE m.item ->> 'status' <> 'PENDING')
                               FROM jsonb_array_elements(f.timeline) WITH ORDINALITY AS m (item, entry)
                            )
                        WHEN f.status <> 'PENDING' THEN ARRAY[f.status]
                        END AS stages
                ) AS o
           LEFT JOIN (
                 SELECT s.partner_id, s.order_id,
                        array_agg(
                         CASE
                             WHEN s.word = 'p' THEN 'PROCESSING'
                             WHEN s.word = 'd' THEN 'DELIVERED'
                             WHEN s.step ? 'q' THEN 'PARTIALLY_DELIVERED'
                             WHEN s.step ? 'x' THEN 'CANCELLED'
                             ELSE 'REFUNDED'
                         END ORDER BY s.number, s.place
                        ) FILTER (
                         WHERE s.word IN ('p', 'd')
                            OR s.step ?| ARRAY['q', 'x']
                            OR (s.step ? 'r' AND s.status = 'REFUNDED')
                        ) AS stages,
                        count(*) FILTER (WHERE s.word = 'c') AS created,
                        COALESCE(sum((s.step -> 'r' ->> 'a')::bigint) FILTER (WHERE s.step ? 'r'), 0) AS refunded
                   FROM steps AS s
                  GROUP BY s.partner_id, s.order_id
                ) AS t USING (partner_id, order_id)
          WHERE f.order_found IS NOT NULL
            AND (t.created IS DISTINCT FROM 1 OR t.stages IS DISTINCT FROM o.stages OR t.refunded <> f.refunded)",
    "event.issued": "each voucher of an order has exactly one issued event" =>
        "SELECT format('order %s: voucher %s, %s issued events', a.order_id, a.voucher_id, count(i.voucher_id))
           FROM (
                 SELECT a.partner_id, a.order_id, a.voucher_id
                   FROM (SELECT DISTINCT partner_id, order_id FROM x) AS f
                  CROSS JOIN LATERAL (
                         SELECT *
                           FROM allocations AS a
                          WHERE a.partner_id = f.partner_id AND a.order_id = f.order_id
                         OFFSET 0
                        ) AS a
                ) AS a
           LEFT JOIN (
                 SELECT b.partner_id, b.order_id, v ->> 'v' AS voucher_id
                   FROM bundles AS b
                  CROSS JOIN jsonb_array_elements(b.body -> 's') AS s
                  CROSS JOIN jsonb_array_elements(b.body -> 'v') WITH ORDINALITY AS t (v, place)
                  WHERE jsonb_typeof(s) = 'object'
                    AND t.place - 1 >= (s -> 'i' ->> 'f')::integer
                    AND t.place - 1 < (s -> 'i' ->> 'f')::integer + (s -> 'i' ->> 'n')::integer
                ) AS i
             ON i.partner_id = a.partner_id
            AND i.order_id = a.order_id
            AND i.voucher_id = 'vch_' || replace(a.voucher_id::text, '-', '')
          GROUP BY a.partner_id, a.order_id, a.voucher_id
         HAVING count(i.voucher_id) <> 1",
};

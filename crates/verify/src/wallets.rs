//! Invariants of wallets, payouts and feeds, by ranges of partners.

use super::scan::{FIRST_UUID, LAST_UUID, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations};

/// Amounts are shown in minor units.
pub(super) const SCAN: Scan = scan! {
    "wallets",
    tables: ["wallets"],
    first: [FIRST_UUID],
    last: [LAST_UUID],
    next: r#"SELECT ARRAY[w.partner_id::text] AS "key!"
               FROM wallets AS w
              WHERE w.partner_id > ($1::text[])[1]::uuid
              ORDER BY w.partner_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    with: "WITH w AS MATERIALIZED (
             SELECT w.*, l.sequence AS last_sequence, l.balance_after
               FROM (
                     SELECT *
                       FROM wallets AS w
                      WHERE w.partner_id > ($1::text[])[1]::uuid AND w.partner_id <= ($2::text[])[1]::uuid
                     OFFSET 0
                    ) AS w
               LEFT JOIN LATERAL (
                     SELECT l.sequence, l.balance_after
                       FROM ledger AS l
                      WHERE l.partner_id = w.partner_id AND l.currency = w.currency
                      ORDER BY l.sequence DESC
                      LIMIT 1
                    ) AS l ON true
         ), y AS MATERIALIZED (
             SELECT *
               FROM payouts AS y
              WHERE y.partner_id > ($1::text[])[1]::uuid AND y.partner_id <= ($2::text[])[1]::uuid
         ), f AS MATERIALIZED (
             SELECT f.*, COALESCE(
                     e.last,
                     (SELECT h.removed_to FROM event_horizons AS h WHERE h.partner_id = f.partner_id LIMIT 1)
                    ) AS last
               FROM (
                     SELECT *
                       FROM feeds AS f
                      WHERE f.partner_id > ($1::text[])[1]::uuid AND f.partner_id <= ($2::text[])[1]::uuid
                     OFFSET 0
                    ) AS f
               LEFT JOIN LATERAL (
                     SELECT e.number + e.count - 1 AS last
                       FROM events AS e
                      WHERE e.partner_id = f.partner_id
                      ORDER BY e.number DESC
                      LIMIT 1
                    ) AS e ON true
         ), ",
    "money.conservation" =>
        "SELECT format('wallet %s %s: balance %s, ledger %s', partner_id, currency, balance, balance_after)
           FROM w
          WHERE balance IS DISTINCT FROM COALESCE(balance_after, 0)",
    "money.chain" =>
        "SELECT format('wallet %s %s: at entry %s, ledger at %s', partner_id, currency, sequence, last_sequence)
           FROM w
          WHERE sequence <> COALESCE(last_sequence, 0)",
    "money.no_overdraft" =>
        "SELECT format('wallet %s %s: %s, %s, %s', partner_id, currency, balance, pending_orders, pending_payouts)
           FROM w
          WHERE LEAST(balance, pending_orders, pending_payouts) < 0",
    // Orders in the other states are closed (order.closed).
    "money.pending": "a wallet's pending amount for orders is the value of their units still to be delivered" =>
        "SELECT format('wallet %s %s: pending %s, due %s', partner_id, currency, w.pending_orders, d.due)
           FROM w
           FULL JOIN (
                 SELECT o.partner_id, o.currency,
                        sum((l ->> 'u')::bigint * ((l ->> 'q')::bigint - (l ->> 'a')::bigint
                                                   - COALESCE((l ->> 'f')::bigint, 0))) AS due
                   FROM (
                         SELECT *
                           FROM orders AS o
                          WHERE o.partner_id > ($1::text[])[1]::uuid
                            AND o.partner_id <= ($2::text[])[1]::uuid
                            AND o.status IN ('PENDING', 'PROCESSING', 'PARTIALLY_DELIVERED', 'CANCELLED')
                            AND o.status <> 'DELIVERED' -- the condition of the index
                            AND NOT o.closed
                         OFFSET 0
                        ) AS o
                  CROSS JOIN jsonb_array_elements(o.lines::jsonb) AS l
                  GROUP BY o.partner_id, o.currency
                ) AS d USING (partner_id, currency)
          WHERE COALESCE(w.pending_orders, 0) <> COALESCE(d.due, 0)",
    "money.payout": "a payout was debited from its wallet, and credited back if it was rejected or failed" =>
        "SELECT format('payout %s is %s: amount %s, moved %s', payout_id, y.status, y.amount, l.net)
           FROM y
           FULL JOIN (
                 SELECT partner_id, currency, payout_id, sum(amount) AS net
                   FROM ledger AS l
                  WHERE l.partner_id > ($1::text[])[1]::uuid
                    AND l.partner_id <= ($2::text[])[1]::uuid
                    AND l.kind IN ('PAYOUT', 'PAYOUT_REVERSAL')
                    AND l.kind <> 'DEBIT' -- the condition of the index
                  GROUP BY partner_id, currency, payout_id
                ) AS l USING (partner_id, currency, payout_id)
          WHERE l.net IS DISTINCT FROM CASE WHEN y.status IN ('PENDING', 'PAID') THEN -y.amount ELSE 0 END",
    "money.pending_payouts": "a wallet's pending amount for payouts is the sum of its pending payouts" =>
        "SELECT format('wallet %s %s: pending %s, due %s', partner_id, currency, w.pending_payouts, d.due)
           FROM w
           FULL JOIN (
                 SELECT partner_id, currency, sum(amount) AS due
                   FROM y
                  WHERE status = 'PENDING'
                  GROUP BY partner_id, currency
                ) AS d USING (partner_id, currency)
          WHERE COALESCE(w.pending_payouts, 0) <> COALESCE(d.due, 0)",
    "payout.stages": "a payout is decided once, and its timeline ends with its status" =>
        "SELECT format('payout %s is %s, %s entries', payout_id, status, jsonb_array_length(timeline))
           FROM y
          WHERE status IS DISTINCT FROM timeline -> -1 ->> 'status'
             OR jsonb_array_length(timeline) <> CASE status WHEN 'PENDING' THEN 1 ELSE 2 END",
    "event.numbers" =>
        "SELECT format('partner %s: feed at %s, events to %s', partner_id, last_number, last)
           FROM f
          WHERE last_number IS DISTINCT FROM last",
    "order.partner" =>
        "SELECT format('%s of partner %s', x.what, x.partner_id)
           FROM (
                 SELECT DISTINCT 'a wallet' AS what, partner_id FROM w
                  UNION ALL
                 SELECT DISTINCT 'a feed', partner_id FROM f
                  UNION ALL
                 SELECT DISTINCT 'a payout', partner_id FROM y
                ) AS x
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = x.partner_id)",
};

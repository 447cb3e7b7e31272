//! Invariants of the running totals of order rates, by ranges of each wallet's totals.

use super::scan::{FIRST_UUID, LAST_UUID, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations};

pub(super) const SCAN: Scan = scan! {
    "order totals",
    tables: ["order_totals"],
    first: [FIRST_UUID, "", "-infinity"],
    last: [LAST_UUID, "", "infinity"],
    next: r#"SELECT ARRAY[t.partner_id::text, t.currency, t.at::text] AS "key!"
               FROM order_totals AS t
              WHERE (t.partner_id, t.currency, t.at)
                    > (($1::text[])[1]::uuid, ($1::text[])[2], ($1::text[])[3]::timestamptz)
              ORDER BY t.partner_id, t.currency, t.at
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    // Each total is compared with the one before, which may be in the range before. An order has one debit
    // (`money.order_paid`).
    with: "WITH t AS MATERIALIZED (
             SELECT t.partner_id, t.currency, t.at, t.sequence, t.orders - p.orders AS orders, t.total - p.total AS total,
                    p.sequence AS after, l.orders AS debits, l.total AS debited
               FROM (
                     SELECT *
                       FROM order_totals AS t
                      WHERE (t.partner_id, t.currency, t.at)
                            > (($1::text[])[1]::uuid, ($1::text[])[2], ($1::text[])[3]::timestamptz)
                        AND (t.partner_id, t.currency, t.at)
                            <= (($2::text[])[1]::uuid, ($2::text[])[2], ($2::text[])[3]::timestamptz)
                     OFFSET 0
                    ) AS t
              CROSS JOIN LATERAL (
                     SELECT p.sequence, p.orders, p.total
                       FROM order_totals AS p
                      WHERE p.partner_id = t.partner_id AND p.currency = t.currency AND p.at < t.at
                      ORDER BY p.at DESC
                      LIMIT 1
                    ) AS p
              CROSS JOIN LATERAL (
                     SELECT count(*) AS orders, COALESCE(-sum(l.amount), 0) AS total
                       FROM ledger AS l
                      WHERE l.partner_id = t.partner_id
                        AND l.currency = t.currency
                        AND l.sequence > p.sequence
                        AND l.sequence <= t.sequence
                        AND l.kind = 'DEBIT'
                    ) AS l
         ), ",
    "caps.order_totals": "between two running totals of a wallet, orders and their amount grow by its debits in the ledger" =>
        "SELECT format('wallet %s %s, entries %s to %s: %s orders, %s; debits %s, %s', partner_id, currency, after, sequence,
                       orders, total, debits, debited)
           FROM t
          WHERE (orders, total) IS DISTINCT FROM (debits, debited) OR sequence <= after",
};

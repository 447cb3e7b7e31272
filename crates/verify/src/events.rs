//! Invariants of feeds, by ranges of each partner's event numbers.

use super::scan::{
    FIRST_UUID, LAST_NUMBER, LAST_UUID, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations,
};

pub(super) const SCAN: Scan = scan! {
    "events",
    tables: ["events"],
    first: [FIRST_UUID, "0"],
    last: [LAST_UUID, LAST_NUMBER],
    next: r#"SELECT ARRAY[e.partner_id::text, e.number::text] AS "key!"
               FROM events AS e
              WHERE (e.partner_id, e.number) > (($1::text[])[1]::uuid, ($1::text[])[2]::bigint)
              ORDER BY e.partner_id, e.number
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    // Includes the event before the range.
    with: "WITH e AS MATERIALIZED (
             SELECT e.partner_id, e.number, e.order_id,
                    (e.partner_id, e.number) > (($1::text[])[1]::uuid, ($1::text[])[2]::bigint) AS is_new,
                    lag(e.number + e.count) OVER (PARTITION BY e.partner_id ORDER BY e.number) AS next
               FROM events AS e
              WHERE (e.partner_id, e.number) >= (($1::text[])[1]::uuid, ($1::text[])[2]::bigint)
                AND (e.partner_id, e.number) <= (($2::text[])[1]::uuid, ($2::text[])[2]::bigint)
         ), ",
    "event.numbers": "a partner's events are numbered without gaps after those that are archived, and its \
        feed has the last number" =>
        "SELECT format('partner %s: event %s', e.partner_id, e.number)
           FROM e
           LEFT JOIN event_horizons AS h ON h.partner_id = e.partner_id
          WHERE e.is_new AND e.number <> COALESCE(e.next, h.removed_to + 1, 1)
          UNION ALL
         SELECT format('partner %s: no feed', e.partner_id)
           FROM (SELECT DISTINCT partner_id FROM e) AS e
          WHERE NOT EXISTS (SELECT FROM feeds AS f WHERE f.partner_id = e.partner_id)",
    "event.order" =>
        "SELECT format('order %s of event %s does not exist', e.order_id, e.number)
           FROM e
           LEFT JOIN LATERAL (
                 SELECT o.order_id FROM orders AS o WHERE o.partner_id = e.partner_id AND o.order_id = e.order_id OFFSET 0
                ) AS o ON true
          WHERE e.is_new AND o.order_id IS NULL",
};

//! Invariants of stored responses and of public voucher ids, by slices: neither table has the order of the
//! other.

use super::scan::{MAX_ROWS, Scan, Steps, description, sliced_scan, to_bigint, violations};

pub(super) const SCAN: Scan = sliced_scan! {
    "stored responses",
    tables: ["idempotency_keys"],
    // An order's response begins with its id. Only the orders from the oldest stored response on are read.
    with: r#"WITH stored AS MATERIALIZED (
             SELECT k.order_id, count(*) AS answers
               FROM (
                     SELECT CASE substring(k.body FROM 1 FOR 17)
                            WHEN '{"order_id":"ord_'::bytea THEN convert_from(substring(k.body FROM 14 FOR 36), 'UTF8')
                            ELSE convert_from(k.body, 'UTF8')::jsonb ->> 'order_id'
                            END AS order_id
                       FROM idempotency_keys AS k
                      WHERE k.status IN (201, 202)
                        AND substring(k.body FROM 1 FOR 1) = '{'
                    ) AS k
              WHERE k.order_id IS NOT NULL
                AND hashtext(k.order_id) & ($2::integer - 1) = $1::integer
              GROUP BY k.order_id
         ), oldest AS MATERIALIZED (
             SELECT LEAST(
                     substring(min(s.order_id) FROM '^ord_([0-9a-f]{12})'),
                     lpad(to_hex((extract(epoch FROM now() - interval '24 hours') * 1000)::bigint), 12, '0')
                    ) AS moment
               FROM stored AS s
         ), existing AS MATERIALIZED (
             SELECT o.order_id, o.partner_id, o.created_at
               FROM (
                     SELECT 'ord_' || replace(o.order_id::text, '-', '') AS order_id, p.partner_id, o.created_at
                       FROM partners AS p
                      CROSS JOIN LATERAL (
                             SELECT o.order_id, o.created_at
                               FROM orders AS o
                              WHERE o.partner_id = p.partner_id
                                AND o.order_id >= ((SELECT t.moment FROM oldest AS t) || repeat('0', 20))::uuid
                             OFFSET 0
                            ) AS o
                    ) AS o
              WHERE hashtext(o.order_id) & ($2::integer - 1) = $1::integer
         ), "#,
    "key.order": "a stored order response names an existing order, and each order of the last 24 hours by the clock of its partner has one" =>
        "SELECT format('%s: %s stored responses', t.order_id, t.answers)
           FROM stored AS t
           LEFT JOIN existing AS o USING (order_id)
          WHERE t.answers > 1 OR o.order_id IS NULL
          UNION ALL
         SELECT format('%s: no stored response', o.order_id)
           FROM existing AS o
           LEFT JOIN stored AS t USING (order_id)
          WHERE t.order_id IS NULL
            -- Stored for 24 hours from the commit; allows an hour of clock skew.
            AND o.created_at > now() - interval '23 hours' + COALESCE((
                    SELECT sum((a ->> 'seconds')::bigint)
                      FROM sandbox_clocks AS c
                     CROSS JOIN jsonb_array_elements(c.advances) AS a
                     WHERE c.partner_id = o.partner_id AND (a ->> 'at')::timestamptz > o.created_at), 0) * interval '1 second'",
};

pub(super) const BOOKING_SCAN: Scan = sliced_scan! {
    "stored references",
    tables: ["idempotency_keys"],
    with: "WITH stored AS MATERIALIZED (
             SELECT *
               FROM (
                     SELECT convert_from(k.body, 'UTF8') AS transaction_id, k.expires_at
                       FROM idempotency_keys AS k
                      WHERE substring(k.body FROM 1 FOR 4) = 'txn_'
                    ) AS k
              WHERE hashtext(k.transaction_id) & ($2::integer - 1) = $1::integer
         ), existing AS MATERIALIZED (
             SELECT *
               FROM (
                     SELECT 'txn_' || replace(l.transaction_id::text, '-', '') AS transaction_id, l.kind
                       FROM ledger AS l
                      WHERE l.kind IN ('TOP_UP', 'ADJUSTMENT')
                        AND l.kind <> 'DEBIT' -- the condition of the index
                    ) AS l
              WHERE hashtext(l.transaction_id) & ($2::integer - 1) = $1::integer
         ), ",
    "key.booking": "a stored reference of an operator's booking names one ledger entry, and each such entry has one" =>
        "SELECT format('%s, %s, stored until %s', transaction_id, l.kind, t.expires_at)
           FROM stored AS t
           FULL JOIN existing AS l USING (transaction_id)
          WHERE l.kind IS NULL OR t.expires_at IS DISTINCT FROM 'infinity'",
    "key.time": "a stored response expires within 24 hours, or never" =>
        "SELECT format('key %s: until %s', k.key, k.expires_at)
           FROM idempotency_keys AS k
          -- After the clock was set back, responses stored before expire later by as much.
          WHERE k.expires_at > GREATEST(now(), (SELECT max(n.latest_clock) FROM nodes AS n)) + interval '24 hours 1 minute'
            AND k.expires_at <> 'infinity'
            AND uuid_hash(k.key) & ($2::integer - 1) = $1::integer",
};

pub(super) const VOUCHER_SCAN: Scan = sliced_scan! {
    "voucher ids",
    tables: ["allocations"],
    with: "WITH ",
    "stock.public_id": "the public id of a voucher names one allocation" =>
        "SELECT format('voucher %s: %s allocations', a.voucher_id, count(*))
           FROM allocations AS a
          WHERE a.voucher_id IS NOT NULL
            AND get_byte(uuid_send(a.voucher_id), 15) & ($2::integer - 1) = $1::integer
          GROUP BY a.voucher_id
         HAVING count(*) > 1",
};

-- Inserts delivered orders $1 to $2 (from 1) of one voucher each, with allocation, debit, events and, for recent orders, the
-- stored response. The last `keys` orders date from the past 20 hours, the others from the 100 days before. Orders are
-- distributed round-robin over the partners.
WITH timed AS MATERIALIZED (
    SELECT plan.*,
           number,
           ('01900000-0000-7000-8000-'
               || lpad(to_hex((number - 1) % plan.partners + 1), 12, '0'))::uuid AS partner_id,
           (number - 1) / plan.partners + 1 AS turn,
           'grown-' || lpad(((number - 1) / plan.chunk % plan.skus)::text, 5, '0') AS product_id,
           number > plan.orders - plan.keys AS kept,
           CASE
               WHEN number > plan.orders - plan.keys
               THEN plan.now - interval '20 hours'
                    + interval '18 hours' * ((number - plan.orders + plan.keys)::float8 / plan.keys)
               ELSE plan.now - interval '100 days'
                    + interval '98 days' * (number::float8 / (plan.orders - plan.keys))
           END AS at
      FROM plan
     CROSS JOIN generate_series($1::bigint, $2::bigint) AS number
), named AS MATERIALIZED (
    -- Order ids are UUIDv7 values with microsecond precision, like those of the service.
    SELECT timed.*,
           moment || '8' || lpad(to_hex(number), 15, '0') AS order_hex,
           moment || '9' || lpad(to_hex(number), 15, '0') AS voucher_hex,
           to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at_text
      FROM timed
     CROSS JOIN LATERAL (
            SELECT lpad(to_hex((extract(epoch FROM date_trunc('milliseconds', at)) * 1000)::bigint), 12, '0')
                   || '7'
                   || lpad(to_hex(extract(microseconds FROM at)::bigint % 1000), 3, '0') AS moment
           ) AS moments
), put_orders AS (
    INSERT INTO orders (partner_id, order_id, status, currency, total, fulfilled_from, closed, last_sequence, lines,
                        created_at, updated_at)
    SELECT partner_id, order_hex::uuid, 'DELIVERED', 'USD', 2500, 'cache', true, 3,
           '[{"p":"' || product_id || '","d":2500,"u":2500,"q":1,"a":1}]', at, at
      FROM named
), put_allocations AS (
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT first_stock + number - 1, voucher_hex::uuid, partner_id, order_hex::uuid, 0
      FROM named
), put_entries AS (
    INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
    SELECT partner_id, order_hex::uuid, 'USD', 1 + turn, 'DEBIT', -2500,
           (orders / partners + 11 - turn) * 2500, order_hex::uuid, at
      FROM named
), put_events AS (
    INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
    SELECT partner_id, 3 * turn - 2, 3, order_hex::uuid, 1,
           '{"n":1,"s":["c",{"i":{"f":0,"n":1}},"d"],"o":"DELIVERED","t":2500,"c":"USD","f":"cache","l":[["'
               || product_id || '",2500]],"v":[{"v":"vch_' || voucher_hex || '","l":0}]}',
           at
      FROM named
)
INSERT INTO idempotency_keys (key, fingerprint, status, body, expires_at)
SELECT md5('grown key ' || number)::uuid, sha256(convert_to('grown key ' || number, 'UTF8')), 201,
       convert_to(
        '{"order_id":"ord_' || order_hex || '","status":"DELIVERED","total_amount":25.00,"currency":"USD",'
            || '"fulfilled_from":"cache","reference":null,"metadata":null,"items":[{"product_id":"' || product_id
            || '","denomination":25.00,"quantity":1,"delivered":1,"pending":0,"failed":0}],"vouchers":[{"voucher_id":"vch_'
            || voucher_hex || '","product_id":"' || product_id || '","denomination":25.00,"expiry":null}],'
            || '"refunded_amount":0.00,"closed":true,"pending_reason":null,"timeline":[{"status":"DELIVERED","at":"'
            || at_text || '","by":"partner","reason":null}],"created_at":"' || at_text || '","updated_at":"' || at_text
            || '"}',
        'UTF8'
       ),
       at + interval '24 hours'
  FROM named
 WHERE kept

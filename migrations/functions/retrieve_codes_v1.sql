-- Returns the sealed codes of orders and records the access in the audit log in the same transaction.
--
-- Each read is one element of the arrays, sorted by partner and order: lanes lock orders in the same order. An order may occur
-- more than once and is audited once per read.
--
-- Returns one row per voucher, or one row without a voucher for a read that has none. `order_exists`: the partner has this order.
-- `deferred`: run this read alone, because another transaction holds the order or because the reads before it return enough
-- vouchers already. A call with several reads never waits for a lock.
--
-- Locks each order until the audit entry is committed, as returning a voucher does: a voucher returned earlier is not read, and
-- a voucher read here is not returned later.
CREATE OR REPLACE FUNCTION retrieve_codes_v1(
    p_partner uuid[],
    p_order uuid[],
    p_credential uuid[],
    p_address text[],
    p_trace text[]
)
RETURNS TABLE (
    request integer,
    order_exists boolean,
    deferred boolean,
    voucher_id uuid,
    expiry date,
    code_id bigint,
    product_id text,
    denomination bigint,
    currency text,
    key_id integer,
    nonce bytea,
    ciphertext bytea
)
LANGUAGE plpgsql
-- Plans must stay index probes, whatever the table sizes were at plan time. Joined arrays have a LIMIT, for which the planner
-- expects one row. Per-row lookups end in OFFSET 0: without it the planner might read the inner table first and whole.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    c_enough CONSTANT integer := 4096; -- vouchers per call
    c_read   CONSTANT text[] := ARRAY['PROCESSING', 'PARTIALLY_DELIVERED', 'DELIVERED']; -- statuses whose codes can be read
    v_currency text[];    -- per read; null: the order is not locked here
    v_vouchers integer[]; -- per read; null: deferred, the call has enough vouchers
    v_now      timestamptz;
BEGIN
    IF cardinality(p_order) = 1 THEN
        SELECT array_agg(o.currency)
          INTO v_currency
          FROM (
                SELECT o.currency
                  FROM orders AS o
                 WHERE o.partner_id = p_partner[1] AND o.order_id = p_order[1] AND o.status = ANY (c_read)
                   FOR NO KEY UPDATE
               ) AS o;
    ELSE
        SELECT array_agg(o.currency ORDER BY n.request)
          INTO v_currency
          FROM unnest(p_partner, p_order) WITH ORDINALITY AS n (partner_id, order_id, request)
          LEFT JOIN LATERAL (
                SELECT o.currency
                  FROM orders AS o
                 WHERE o.partner_id = n.partner_id AND o.order_id = n.order_id AND o.status = ANY (c_read)
                   FOR NO KEY UPDATE SKIP LOCKED
               ) AS o ON true;
    END IF;

    SELECT array_agg(CASE WHEN c.request > 1 AND c.with_those_before > c_enough THEN NULL ELSE c.vouchers END
                     ORDER BY c.request)
      INTO v_vouchers
      FROM (
            SELECT n.request, h.vouchers, sum(h.vouchers) OVER (ORDER BY n.request) AS with_those_before
              FROM unnest(p_partner, p_order, v_currency) WITH ORDINALITY AS n (partner_id, order_id, currency, request)
             CROSS JOIN LATERAL (
                    SELECT count(*)::integer AS vouchers
                      FROM allocations AS a
                     WHERE n.currency IS NOT NULL
                       AND a.partner_id = n.partner_id
                       AND a.order_id = n.order_id
                       AND a.returned_at IS NULL
                   ) AS h
           ) AS c;

    IF 0 < ANY (v_vouchers) THEN
        v_now := clock_timestamp();
        UPDATE orders AS o
           SET codes_retrieved_at = v_now
          FROM (SELECT * FROM unnest(p_partner, p_order, v_vouchers) LIMIT cardinality(p_order))
               AS n (partner_id, order_id, vouchers)
         WHERE o.partner_id = n.partner_id
           AND o.order_id = n.order_id
           AND o.codes_retrieved_at IS NULL
           AND n.vouchers > 0;
        UPDATE allocations AS a
           SET first_retrieved_at = v_now
          FROM (SELECT * FROM unnest(p_partner, p_order, v_vouchers) LIMIT cardinality(p_order))
               AS n (partner_id, order_id, vouchers)
         WHERE a.partner_id = n.partner_id
           AND a.order_id = n.order_id
           AND a.first_retrieved_at IS NULL
           AND a.returned_at IS NULL
           AND n.vouchers > 0;
        -- At the time of first_retrieved_at: `vouchsafe verify` matches the two.
        INSERT INTO audit_log (at, operator, action, subject, after, trace_id, partner_id)
        SELECT v_now, 'ptn_' || replace(p_partner[n.request]::text, '-', ''), 'codes.retrieve',
               'ord_' || replace(p_order[n.request]::text, '-', ''),
               jsonb_build_object('credential_id', 'cred_' || replace(p_credential[n.request]::text, '-', ''),
                                  'address', p_address[n.request],
                                  'vouchers', v_vouchers[n.request]),
               p_trace[n.request],
               p_partner[n.request]
          FROM generate_series(1, cardinality(p_order)) AS n (request)
         WHERE v_vouchers[n.request] > 0;
    END IF;

    -- An order that is not locked here may be locked by another transaction: then it is deferred.
    RETURN QUERY
    SELECT n.request::integer, o.status IS NOT NULL,
           n.vouchers IS NULL OR (v_currency[n.request] IS NULL AND COALESCE(o.status = ANY (c_read), false)),
           v.voucher_id, v.expiry, v.code_id, v.product_id, v.denomination, v_currency[n.request], v.key_id, v.nonce,
           v.ciphertext
      FROM unnest(p_partner, p_order, v_vouchers) WITH ORDINALITY AS n (partner_id, order_id, vouchers, request)
      LEFT JOIN LATERAL (
            SELECT o.status
              FROM orders AS o
             WHERE n.vouchers = 0 AND o.partner_id = n.partner_id AND o.order_id = n.order_id
            OFFSET 0
           ) AS o ON true
      LEFT JOIN LATERAL (
            SELECT a.voucher_id, a.line, a.stock_id, s.expiry, c.*
              FROM allocations AS a
             CROSS JOIN LATERAL (
                    SELECT s.expiry, s.code_id FROM stock AS s WHERE s.stock_id = a.stock_id OFFSET 0
                   ) AS s
             CROSS JOIN LATERAL (
                    SELECT c.code_id, c.product_id, c.denomination, c.key_id, c.nonce, c.ciphertext
                      FROM codes AS c
                     WHERE c.code_id = s.code_id
                    OFFSET 0
                   ) AS c
             WHERE n.vouchers > 0
               AND a.partner_id = n.partner_id
               AND a.order_id = n.order_id
               AND a.returned_at IS NULL
            OFFSET 0
           ) AS v ON true
     ORDER BY n.request, v.line, v.expiry NULLS LAST, v.stock_id;
END
$$;

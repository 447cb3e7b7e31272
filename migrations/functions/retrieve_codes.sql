-- The codes of orders, still sealed, for those who read them: first the trail, then what it tells of.
--
-- Each reading is an element of the arrays, in the order of partners and orders: in it lanes lock orders, too. An order may
-- be in them more than once, and is on the trail as often.
--
-- A row a voucher; a reading that has none has one row without. `known` says whether the partner has such an order. Where
-- several read at once nobody waits, and nobody takes long: `put_off` says that somebody else holds the order, or that the
-- readings before it have enough vouchers. Such a one is read alone.
--
-- Whoever returns a voucher holds its order. So does this, until the trail is committed: what was returned before is not
-- read, and what is read is not returned after.
CREATE OR REPLACE FUNCTION retrieve_codes(
    p_partner uuid[],
    p_order uuid[],
    p_credential uuid[],
    p_address text[],
    p_trace text[]
)
RETURNS TABLE (
    reading integer,
    known boolean,
    put_off boolean,
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
-- Plans must stay index probes, whatever the tables' sizes were when they were first made. Arrays that are joined have a
-- limit, for which the planner expects one row; and what is looked up for each row of another stands behind an OFFSET, or it
-- might be read first, and whole.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    c_enough CONSTANT integer := 4096; -- vouchers of one call
    c_read   CONSTANT text[] := ARRAY['PROCESSING', 'PARTIALLY_DELIVERED', 'DELIVERED']; -- of what codes can be read
    v_currency text[];    -- of each order that is held here
    v_vouchers integer[]; -- how many are read of it; null where that would be too many
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
        SELECT array_agg(o.currency ORDER BY n.reading)
          INTO v_currency
          FROM unnest(p_partner, p_order) WITH ORDINALITY AS n (partner_id, order_id, reading)
          LEFT JOIN LATERAL (
                SELECT o.currency
                  FROM orders AS o
                 WHERE o.partner_id = n.partner_id AND o.order_id = n.order_id AND o.status = ANY (c_read)
                   FOR NO KEY UPDATE SKIP LOCKED
               ) AS o ON true;
    END IF;

    SELECT array_agg(CASE WHEN c.reading > 1 AND c.with_those_before > c_enough THEN NULL ELSE c.vouchers END
                     ORDER BY c.reading)
      INTO v_vouchers
      FROM (
            SELECT n.reading, h.vouchers, sum(h.vouchers) OVER (ORDER BY n.reading) AS with_those_before
              FROM unnest(p_partner, p_order, v_currency) WITH ORDINALITY AS n (partner_id, order_id, currency, reading)
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
        INSERT INTO audit_log (operator, action, subject, after, trace_id)
        SELECT 'ptn_' || replace(p_partner[n.reading]::text, '-', ''), 'codes.retrieve',
               'ord_' || replace(p_order[n.reading]::text, '-', ''),
               jsonb_build_object('credential_id', 'cred_' || replace(p_credential[n.reading]::text, '-', ''),
                                  'address', p_address[n.reading],
                                  'vouchers', v_vouchers[n.reading]),
               p_trace[n.reading]
          FROM generate_series(1, cardinality(p_order)) AS n (reading)
         WHERE v_vouchers[n.reading] > 0;
        INSERT INTO code_retrievals (partner_id, order_id, credential_id, address, vouchers, trace_id)
        SELECT p_partner[n.reading], p_order[n.reading], p_credential[n.reading], p_address[n.reading],
               v_vouchers[n.reading], p_trace[n.reading]
          FROM generate_series(1, cardinality(p_order)) AS n (reading)
         WHERE v_vouchers[n.reading] > 0;
    END IF;

    -- What is none of the orders that are held here may be one that somebody else holds.
    RETURN QUERY
    SELECT n.reading::integer, o.status IS NOT NULL,
           n.vouchers IS NULL OR (v_currency[n.reading] IS NULL AND COALESCE(o.status = ANY (c_read), false)),
           v.voucher_id, v.expiry, v.code_id, v.product_id, v.denomination, v_currency[n.reading], v.key_id, v.nonce,
           v.ciphertext
      FROM unnest(p_partner, p_order, v_vouchers) WITH ORDINALITY AS n (partner_id, order_id, vouchers, reading)
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
     ORDER BY n.reading, v.line, v.expiry NULLS LAST, v.stock_id;
END
$$;

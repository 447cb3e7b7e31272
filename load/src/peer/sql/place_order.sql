-- Places an order in one statement; single statements would need nine round trips for the same work.
--
-- p_vouchers has one element per voucher. The function builds the response body (head, vouchers, tail) because the same
-- transaction stores it under the idempotency key.
--
-- Each error rolls the order back: VP001 insufficient stock, VP002 insufficient balance, VP003 the key was taken by a
-- concurrent request.
CREATE FUNCTION place_order(
    p_partner uuid,
    p_key uuid,
    p_fingerprint bytea,
    p_order uuid,
    p_transaction uuid,
    p_currency text,
    p_total bigint,
    p_lines text,
    p_at timestamptz,
    p_sku integer,
    p_quantity integer,
    p_product text,
    p_vouchers uuid[],
    p_head text,
    p_tail text,
    p_wait boolean,
    p_has_endpoint boolean
) RETURNS TABLE (
    replayed boolean,
    fingerprint bytea,
    status smallint,
    body bytea
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_picked   bigint[];
    v_list     text;
    v_balance  bigint;
    v_sequence bigint;
BEGIN
    RETURN QUERY
    SELECT true, k.fingerprint, k.status, k.body
      FROM idempotency_keys AS k
     WHERE k.key = p_key
       AND k.expires_at > now();
    IF FOUND THEN
        RETURN;
    END IF;

    IF p_wait THEN
        v_picked := ARRAY(
            SELECT v.stock_id
              FROM vouchers AS v
             WHERE v.sku_id = p_sku
               AND v.order_id IS NULL
             ORDER BY v.expiry, v.stock_id
             LIMIT p_quantity
               FOR UPDATE);
    ELSE
        v_picked := ARRAY(
            SELECT v.stock_id
              FROM vouchers AS v
             WHERE v.sku_id = p_sku
               AND v.order_id IS NULL
             ORDER BY v.expiry, v.stock_id
             LIMIT p_quantity
               FOR UPDATE SKIP LOCKED);
    END IF;
    IF cardinality(v_picked) < p_quantity THEN
        RAISE EXCEPTION 'insufficient stock' USING ERRCODE = 'VP001';
    END IF;
    WITH sold AS (
        UPDATE vouchers AS v
           SET order_id = p_order
         WHERE v.stock_id = ANY (v_picked)
        RETURNING v.stock_id, v.expiry
    ), numbered AS (
        SELECT s.stock_id,
               s.expiry,
               p_vouchers[row_number() OVER (ORDER BY s.expiry, s.stock_id)] AS voucher_id
          FROM sold AS s
    ), allocated AS (
        INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line, expiry)
        SELECT n.stock_id, n.voucher_id, p_partner, p_order, 1, n.expiry
          FROM numbered AS n
    )
    SELECT string_agg(
               '{"voucher_id":"vch_' || replace(n.voucher_id::text, '-', '') || '",' || p_product
                   || ',"expiry":"' || n.expiry || '","first_retrieved_at":null}',
               ',' ORDER BY n.expiry, n.stock_id)
      INTO v_list
      FROM numbered AS n;

    INSERT INTO orders (partner_id, order_id, status, currency, total, lines, created_at)
    VALUES (p_partner, p_order, 'DELIVERED', p_currency, p_total, p_lines::jsonb, p_at);
    INSERT INTO events (partner_id, order_id, body, created_at)
    VALUES (p_partner, p_order, p_head || v_list || ']}', p_at);

    IF p_has_endpoint THEN
        INSERT INTO outbox (event_id, body)
        SELECT e.event_id,
               '{"event_id":"evt_' || replace(e.event_id::text, '-', '') || '","event":"' || e.name || '","data":' || p_head
                   || v_list || ']}}'
          FROM (
                   SELECT gen_random_uuid() AS event_id,
                          n.name
                     FROM unnest(
                              ARRAY['order.created'] || array_fill('voucher.issued'::text, ARRAY[p_quantity]) || ARRAY['order.delivered']
                          ) AS n (name)
               ) AS e;
    END IF;

    INSERT INTO idempotency_keys AS k (key, fingerprint, status, body, expires_at)
    VALUES (p_key, p_fingerprint, 201, convert_to(p_head || v_list || p_tail, 'UTF8'), now() + interval '24 hours')
    ON CONFLICT (key) DO UPDATE
       SET fingerprint = EXCLUDED.fingerprint,
           status = EXCLUDED.status,
           body = EXCLUDED.body,
           expires_at = EXCLUDED.expires_at
     WHERE k.expires_at <= now();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'idempotency key already used' USING ERRCODE = 'VP003';
    END IF;

    UPDATE wallets AS w
       SET balance = w.balance - p_total,
           sequence = w.sequence + 1,
           updated_at = p_at
     WHERE w.partner_id = p_partner
       AND w.currency = p_currency
       AND w.balance >= p_total
    RETURNING w.balance, w.sequence INTO v_balance, v_sequence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'insufficient balance' USING ERRCODE = 'VP002';
    END IF;
    INSERT INTO ledger (
        partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
    VALUES (
        p_partner, p_transaction, p_currency, v_sequence, 'DEBIT', -p_total, v_balance, p_order, p_at);

    RETURN QUERY SELECT false, p_fingerprint, 201::smallint, convert_to(p_head || v_list || p_tail, 'UTF8');
END
$$;

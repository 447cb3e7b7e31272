-- The commit statement: one call writes a batch of records in one transaction, and says of each what became of it.
--
-- Memory has decided; this verifies. Everything that somebody else could have taken meanwhile is claimed first, in the
-- lock order of 0001: keys, orders, payouts, wallets, chunks, vouchers. A record that loses a claim gets its verdict and gives back what it
-- had claimed; what is left is written. An error anywhere undoes the whole batch.
--
-- A line that carries a guard says which: tests take each one out and expect another test to turn red.
--
-- Arrays come in five groups, an element a row: r_ the records themselves; m_ money that moves, o_ orders, a_ allocations
-- and e_ events, each with the number (from 1) of the record it belongs to. What few records have comes as JSON, in
-- p_rest, null where none has any: `changes` of orders, vouchers that come back (`returns`), `payouts`, `shifts` of what
-- wallets' money waits for, and the `deeds` of operators.
--
-- Verdicts: 0 committed, 1 key known, 2 the balance is short, 3 the stock is gone, 4 it has moved on.
CREATE OR REPLACE FUNCTION commit_batch(
    p_node text,
    p_incarnation bigint,
    p_lane smallint,
    p_generation bigint,
    p_batch bigint,
    r_partner uuid[],
    r_key uuid[],
    r_fingerprint bytea[],
    r_status smallint[],
    r_body bytea[],
    r_forever boolean[],
    m_record integer[],
    m_transaction uuid[],
    m_currency text[],
    m_kind text[],
    m_amount bigint[],
    m_order uuid[],
    m_payout uuid[],
    m_reference text[],
    m_operator text[],
    m_trace text[],
    o_record integer[],
    o_order uuid[],
    o_status text[],
    o_currency text[],
    o_total bigint[],
    o_source text[],
    o_pending_reason text[],
    o_closed boolean[],
    o_sequence integer[],
    o_reference text[],
    o_metadata text[],
    o_lines text[],
    o_timeline text[],
    o_created timestamptz[],
    a_record integer[],
    a_stock bigint[],
    a_chunk bigint[],
    a_voucher uuid[],
    a_order uuid[],
    a_line smallint[],
    e_record integer[],
    e_order uuid[],
    e_count integer[],
    e_sequence integer[],
    e_body text[],
    p_rest jsonb
) RETURNS TABLE (
    verdict smallint,
    wallet_sequence bigint,
    wallet_balance bigint,
    known_fingerprint bytea,
    known_status smallint,
    known_body bytea
) LANGUAGE plpgsql
-- Plans must stay index probes, whatever the tables' sizes were when they were first made. The planner takes every array
-- for a handful of rows: no join that every batch makes is of two of them, since it would compare each row with each.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    v_count    integer := cardinality(r_key);
    v_now      timestamptz := clock_timestamp();
    v_verdict  smallint[] := array_fill(0::smallint, ARRAY[v_count]);
    v_sequence bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
    v_balance  bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
    v_claimed  uuid[];
    v_left     numeric;
    v_written  bigint;
    v_asked    bigint;
    v_row      record;
BEGIN
    -- The fence. Also what recovery waits for, and where it reads whether this batch committed.
    UPDATE lanes AS l
       SET batch = p_batch /* guard: lane-batch */
     WHERE l.node = p_node
       AND l.lane = p_lane
       AND l.generation = p_generation; /* guard: lane */
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lane % of node % was fenced off', p_lane, p_node USING ERRCODE = 'VS001';
    END IF;

    -- Keys. Waits where another transaction has the key and is not over; a key whose time is over is taken again.
    WITH claimed AS (
        INSERT INTO idempotency_keys AS k (key, fingerprint, status, body, expires_at)
        SELECT r.key,
               r.fingerprint,
               r.status,
               r.body,
               CASE WHEN r.forever /* guard: key-forever */ THEN 'infinity' ELSE v_now + interval '24 hours' END
          FROM unnest(r_key, r_fingerprint, r_status, r_body, r_forever)
               AS r (key, fingerprint, status, body, forever)
         ORDER BY r.key
        ON CONFLICT (key) DO UPDATE
           SET fingerprint = EXCLUDED.fingerprint,
               status = EXCLUDED.status,
               body = EXCLUDED.body,
               expires_at = EXCLUDED.expires_at
         WHERE k.expires_at <= v_now /* guard: key, key-expiry */
        RETURNING k.key
    )
    SELECT array_agg(c.key) INTO v_claimed FROM claimed AS c;
    IF cardinality(v_claimed) IS DISTINCT FROM v_count THEN
        FOR v_row IN
            SELECT r.record::integer
              FROM unnest(r_key) WITH ORDINALITY AS r (key, record)
             WHERE r.key NOT IN (SELECT c.key FROM unnest(v_claimed) AS c (key))
        LOOP
            v_verdict[v_row.record] := 1;
        END LOOP;
    END IF;

    -- Orders that move on, and payouts: each from where it stood when that was decided. A code that was read does not come
    -- back; its order is locked by whoever reads it, too.
    IF p_rest IS NOT NULL THEN
        FOR v_row IN
            SELECT c.record, r_partner[c.record] AS partner_id, c.order_id, c.since
              FROM jsonb_to_recordset(p_rest -> 'changes') AS c (record integer, order_id uuid, since integer)
             WHERE v_verdict[c.record] = 0
             ORDER BY 2, 3
        LOOP
            PERFORM
               FROM orders AS o
              WHERE o.partner_id = v_row.partner_id
                AND o.order_id = v_row.order_id
                AND o.last_sequence = v_row.since /* guard: order-moved */
                FOR UPDATE;
            IF NOT FOUND THEN
                v_verdict[v_row.record] := 4;
            END IF;
        END LOOP;
        FOR v_row IN
            SELECT y.record, r_partner[y.record] AS partner_id, y.payout_id
              FROM jsonb_to_recordset(p_rest -> 'payouts') AS y (record integer, payout_id uuid, new boolean)
             WHERE v_verdict[y.record] = 0 AND NOT y.new
             ORDER BY 2, 3
        LOOP
            PERFORM
               FROM payouts AS y
              WHERE y.partner_id = v_row.partner_id
                AND y.payout_id = v_row.payout_id
                AND y.status = 'PENDING' /* guard: payout-pending */
                FOR UPDATE;
            IF NOT FOUND THEN
                v_verdict[v_row.record] := 4;
            END IF;
        END LOOP;
        FOR v_row IN
            SELECT b.record, b.stock_id, b.voucher_id
              FROM jsonb_to_recordset(p_rest -> 'returns') AS b (record integer, stock_id bigint, voucher_id uuid)
             WHERE v_verdict[b.record] = 0
        LOOP
            PERFORM
               FROM allocations AS a
              WHERE a.stock_id = v_row.stock_id
                AND a.voucher_id = v_row.voucher_id
                AND a.returned_at IS NULL
                AND a.first_retrieved_at IS NULL /* guard: retrieved */;
            IF NOT FOUND THEN
                v_verdict[v_row.record] := 4;
            END IF;
        END LOOP;
    END IF;

    -- Wallets. Money that comes in opens a wallet where there is none.
    IF 0 < ANY (m_amount) THEN
        INSERT INTO wallets (partner_id, currency)
        SELECT DISTINCT r_partner[m.record], m.currency
          FROM unnest(m_record, m_currency, m_amount) AS m (record, currency, amount)
         WHERE m.amount > 0 AND v_verdict[m.record] = 0
         ORDER BY 1, 2
        ON CONFLICT (partner_id, currency) DO NOTHING;
    END IF;
    PERFORM
       FROM (
            SELECT DISTINCT r_partner[m.record] AS partner_id, m.currency
              FROM (
                    SELECT * FROM unnest(m_record, m_currency) AS m (record, currency)
                     UNION ALL
                    SELECT * FROM jsonb_to_recordset(p_rest -> 'shifts') AS w (record integer, currency text)
                   ) AS m
             WHERE v_verdict[m.record] = 0
             ORDER BY 1, 2
           ) AS m
      CROSS JOIN LATERAL (
            SELECT FROM wallets AS w WHERE w.partner_id = m.partner_id AND w.currency = m.currency
               FOR UPDATE /* guard: wallet-lock */
           ) AS w;
    -- Where the debits together are more than there is, each must find enough after those before it that stand.
    FOR v_row IN
        WITH moved AS MATERIALIZED (
            SELECT m.record, r_partner[m.record] AS partner_id, m.currency, m.amount
              FROM unnest(m_record, m_currency, m_amount) AS m (record, currency, amount)
             WHERE v_verdict[m.record] = 0
        ), debits AS (
            SELECT m.partner_id, m.currency, sum(m.amount) AS amount
              FROM moved AS m
             WHERE m.amount < 0
             GROUP BY m.partner_id, m.currency
        ), short AS MATERIALIZED (
            SELECT d.partner_id, d.currency, COALESCE(w.balance, 0) AS balance
              FROM debits AS d
              LEFT JOIN wallets AS w ON w.partner_id = d.partner_id AND w.currency = d.currency
             WHERE COALESCE(w.balance, 0) + d.amount < 0
        )
        SELECT m.record,
               m.amount,
               s.balance,
               row_number() OVER (PARTITION BY m.partner_id, m.currency ORDER BY m.record) AS n
          FROM short AS s
          JOIN moved AS m ON m.partner_id = s.partner_id AND m.currency = s.currency
         ORDER BY m.partner_id, m.currency, m.record
    LOOP
        IF v_row.n = 1 THEN
            v_left := v_row.balance;
        END IF;
        IF v_left + v_row.amount < 0 THEN /* guard: balance */
            v_verdict[v_row.record] := 2;
        ELSE
            v_left := v_left + v_row.amount; /* guard: running-balance */
        END IF;
    END LOOP;

    IF cardinality(a_stock) > 0 THEN
        -- Chunks. Shared, so that lanes do not wait for each other; a takeover waits for us, or we see that it happened.
        PERFORM
           FROM (SELECT DISTINCT a.chunk_id FROM unnest(a_chunk) AS a (chunk_id) ORDER BY 1) AS a
          CROSS JOIN LATERAL (
                SELECT FROM chunks AS c WHERE c.chunk_id = a.chunk_id
                   FOR SHARE /* guard: chunk-lock */
               ) AS c;
        FOR v_row IN
            SELECT DISTINCT a.record
              FROM unnest(a_record, a_stock, a_chunk) AS a (record, stock_id, chunk_id)
             WHERE v_verdict[a.record] = 0
               AND NOT EXISTS (
                    SELECT
                      FROM chunks AS c
                     WHERE c.chunk_id = a.chunk_id
                       AND a.stock_id BETWEEN c.first_stock_id AND c.last_stock_id /* guard: chunk-range */
                       AND c.node = p_node /* guard: chunk-node */
                       AND c.incarnation = p_incarnation /* guard: chunk-incarnation */
                    )
        LOOP
            v_verdict[v_row.record] := 3;
        END LOOP;

        -- Vouchers. The primary key decides; the count says whether it decided against one of ours.
        INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
        SELECT a.stock_id, a.voucher_id, r_partner[a.record], a.order_id, a.line
          FROM unnest(a_record, a_stock, a_voucher, a_order, a_line) AS a (record, stock_id, voucher_id, order_id, line)
         WHERE v_verdict[a.record] = 0
         ORDER BY a.stock_id
        ON CONFLICT (stock_id) DO NOTHING;
        GET DIAGNOSTICS v_written = ROW_COUNT;
        SELECT count(*) INTO v_asked FROM unnest(a_record) AS a (record) WHERE v_verdict[a.record] = 0;
        IF v_written < v_asked THEN /* guard: voucher */
            FOR v_row IN
                SELECT DISTINCT a.record
                  FROM unnest(a_record, a_stock, a_voucher) AS a (record, stock_id, voucher_id)
                  JOIN allocations AS x ON x.stock_id = a.stock_id
                 WHERE v_verdict[a.record] = 0
                   AND x.voucher_id IS DISTINCT FROM a.voucher_id
            LOOP
                v_verdict[v_row.record] := 3;
            END LOOP;
        END IF;
    END IF;

    -- What lost a claim gives back the claims it had won. A key that was known is not ours to give.
    IF v_verdict && ARRAY[2, 3, 4]::smallint[] THEN
        DELETE FROM allocations AS x
         USING unnest(a_record, a_stock, a_voucher) AS a (record, stock_id, voucher_id)
         WHERE x.stock_id = a.stock_id
           AND x.voucher_id = a.voucher_id /* guard: give-back-own */
           AND v_verdict[a.record] IN (2, 3); /* guard: give-back-vouchers */
        DELETE FROM idempotency_keys AS k
         USING unnest(r_key) WITH ORDINALITY AS r (key, record)
         WHERE k.key = r.key
           AND v_verdict[r.record] IN (2, 3, 4); /* guard: give-back-key */
    END IF;

    -- From here on nothing can be lost to anybody. Money: the balances, then an entry each. The wallet's row says how it
    -- stands after the last entry; what an entry left is that without the entries behind it.
    UPDATE wallets AS w
       SET balance = w.balance + s.amount,
           sequence = w.sequence + s.entries,
           updated_at = v_now
      FROM (
            SELECT r_partner[m.record] AS partner_id,
                   m.currency,
                   sum(m.amount) AS amount,
                   count(*) AS entries
              FROM unnest(m_record, m_currency, m_amount) AS m (record, currency, amount)
             WHERE v_verdict[m.record] = 0
             GROUP BY 1, 2
           ) AS s
     WHERE w.partner_id = s.partner_id AND w.currency = s.currency;
    FOR v_row IN
        WITH booked AS MATERIALIZED (
            SELECT m.*,
                   w.partner_id,
                   w.sequence + 1 - row_number() OVER from_here AS sequence,
                   w.balance + m.amount - sum(m.amount) OVER from_here AS balance_after
              FROM unnest(m_record, m_transaction, m_currency, m_kind, m_amount, m_order, m_payout, m_reference,
                          m_operator, m_trace)
                   AS m (record, transaction_id, currency, kind, amount, order_id, payout_id, reference, operator,
                         trace_id)
              JOIN wallets AS w ON w.partner_id = r_partner[m.record] AND w.currency = m.currency
             WHERE v_verdict[m.record] = 0
            WINDOW from_here AS (PARTITION BY w.partner_id, w.currency ORDER BY m.record DESC)
        ), written AS (
            INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after,
                                order_id, payout_id, reference, created_at)
            SELECT b.partner_id, b.transaction_id, b.currency, b.sequence, b.kind, b.amount, b.balance_after,
                   b.order_id, b.payout_id, b.reference, v_now
              FROM booked AS b
        ), told AS (
            -- What an operator booked is in the trail with it, or neither is there.
            INSERT INTO audit_log (operator, action, subject, before, after, trace_id)
            SELECT b.operator,
                   CASE b.kind WHEN 'TOP_UP' THEN 'wallet.top_up' ELSE 'wallet.adjust' END,
                   'ptn_' || replace(b.partner_id::text, '-', '') || '/' || b.currency,
                   jsonb_build_object('balance_minor', b.balance_after - b.amount),
                   jsonb_build_object('balance_minor', b.balance_after,
                                      'amount_minor', b.amount,
                                      'reference', b.reference,
                                      'transaction_id', 'txn_' || replace(b.transaction_id::text, '-', '')),
                   b.trace_id
              FROM booked AS b
             WHERE b.operator IS NOT NULL
        )
        SELECT b.record, b.sequence, b.balance_after FROM booked AS b
    LOOP
        v_sequence[v_row.record] := v_row.sequence;
        v_balance[v_row.record] := v_row.balance_after;
    END LOOP;

    INSERT INTO orders (partner_id, order_id, status, currency, total, fulfilled_from, pending_reason, closed,
                        last_sequence, reference, metadata, lines, timeline, created_at, updated_at)
    SELECT r_partner[o.record], o.order_id, o.status, o.currency, o.total, o.source, o.pending_reason, o.closed,
           o.last_sequence, o.reference, o.metadata, o.lines::jsonb, o.timeline::jsonb, o.created_at, o.created_at
      FROM unnest(o_record, o_order, o_status, o_currency, o_total, o_source, o_pending_reason, o_closed, o_sequence,
                  o_reference, o_metadata, o_lines, o_timeline, o_created)
           AS o (record, order_id, status, currency, total, source, pending_reason, closed, last_sequence,
                 reference, metadata, lines, timeline, created_at)
     WHERE v_verdict[o.record] = 0;

    IF p_rest IS NOT NULL THEN
        FOR v_row IN
            SELECT r_partner[w.record] AS partner_id, w.currency, sum(w.orders) AS orders, sum(w.payouts) AS payouts
              FROM jsonb_to_recordset(p_rest -> 'shifts')
                   AS w (record integer, currency text, orders bigint, payouts bigint)
             WHERE v_verdict[w.record] = 0
             GROUP BY 1, 2
        LOOP
            UPDATE wallets AS w
               SET pending_orders = w.pending_orders + v_row.orders,
                   pending_payouts = w.pending_payouts + v_row.payouts,
                   updated_at = v_now
             WHERE w.partner_id = v_row.partner_id AND w.currency = v_row.currency;
        END LOOP;
        FOR v_row IN
            SELECT r_partner[c.record] AS partner_id, c.*
              FROM jsonb_to_recordset(p_rest -> 'changes')
                   AS c (record integer, order_id uuid, status text, source text, pending_reason text, closed boolean,
                         refunded bigint, last_sequence integer, lines jsonb, timeline jsonb, updated_at timestamptz)
             WHERE v_verdict[c.record] = 0
        LOOP
            UPDATE orders AS o
               SET status = v_row.status,
                   fulfilled_from = v_row.source,
                   pending_reason = v_row.pending_reason,
                   closed = v_row.closed,
                   refunded = v_row.refunded,
                   last_sequence = v_row.last_sequence,
                   lines = v_row.lines,
                   timeline = v_row.timeline,
                   updated_at = v_row.updated_at
             WHERE o.partner_id = v_row.partner_id AND o.order_id = v_row.order_id;
        END LOOP;
        -- A voucher that comes back: its row stays sold, its code gets another one in a chunk that nobody owns. Where
        -- orders wait for it, the chunk is kept for them, and no shelf claims it.
        FOR v_row IN
            SELECT b.stock_id
              FROM jsonb_to_recordset(p_rest -> 'returns') AS b (record integer, stock_id bigint)
             WHERE v_verdict[b.record] = 0
        LOOP
            UPDATE allocations AS a SET returned_at = v_now WHERE a.stock_id = v_row.stock_id;
        END LOOP;
        WITH back AS MATERIALIZED (
            SELECT b.new_id, b.begins, s.code_id, s.expiry, k.product_id, k.denomination
              FROM jsonb_to_recordset(p_rest -> 'returns')
                   AS b (record integer, stock_id bigint, new_id bigint, begins bigint)
             CROSS JOIN LATERAL (SELECT * FROM stock AS s WHERE s.stock_id = b.stock_id OFFSET 0) AS s
             CROSS JOIN LATERAL (SELECT * FROM chunks AS k WHERE k.chunk_id = s.chunk_id OFFSET 0) AS k
             WHERE v_verdict[b.record] = 0
        ), made AS (
            INSERT INTO chunks AS k (product_id, denomination, first_expiry, last_expiry, first_stock_id, last_stock_id,
                                     purchase_id)
            SELECT b.product_id, b.denomination, min(b.expiry),
                   CASE WHEN count(*) = count(b.expiry) THEN max(b.expiry) END, min(b.new_id), max(b.new_id),
                   CASE WHEN EXISTS (SELECT FROM waiting_for(b.product_id, b.denomination, NULL, 1))
                        THEN gen_random_uuid()
                   END
              FROM back AS b
             GROUP BY b.begins, b.product_id, b.denomination
            RETURNING k.chunk_id, k.first_stock_id
        )
        INSERT INTO stock (stock_id, chunk_id, code_id, expiry)
        SELECT b.new_id, m.chunk_id, b.code_id, b.expiry
          FROM back AS b
          JOIN made AS m ON m.first_stock_id = b.begins;
        FOR v_row IN
            SELECT r_partner[y.record] AS partner_id, y.*
              FROM jsonb_to_recordset(p_rest -> 'payouts')
                   AS y (record integer, payout_id uuid, new boolean, status text, currency text, amount bigint,
                         destination text, sealed text, reference text, timeline jsonb, at timestamptz)
             WHERE v_verdict[y.record] = 0
        LOOP
            IF v_row.new THEN
                INSERT INTO payouts (partner_id, payout_id, status, currency, amount, destination, destination_sealed,
                                     reference, timeline, created_at, updated_at)
                VALUES (v_row.partner_id, v_row.payout_id, v_row.status, v_row.currency, v_row.amount,
                        v_row.destination, decode(v_row.sealed, 'base64'), v_row.reference, v_row.timeline, v_row.at,
                        v_row.at);
            ELSE
                UPDATE payouts AS y
                   SET status = v_row.status, timeline = v_row.timeline, updated_at = v_row.at
                 WHERE y.partner_id = v_row.partner_id AND y.payout_id = v_row.payout_id;
            END IF;
        END LOOP;
        -- What an operator decided is in the trail with it, or neither is there.
        INSERT INTO audit_log (operator, action, subject, before, after, trace_id)
        SELECT d.operator, d.action, d.subject, d.before, d.after, d.trace_id
          FROM jsonb_to_recordset(p_rest -> 'deeds')
               AS d (record integer, operator text, action text, subject text, before jsonb, after jsonb, trace_id text)
         WHERE v_verdict[d.record] = 0
         ORDER BY d.record;
    END IF;

    -- Events, numbered in the order of the commits: the counter's row stays locked until this one is over.
    INSERT INTO feeds AS f (partner_id, last_number)
    SELECT r_partner[e.record], sum(e.count)
      FROM unnest(e_record, e_count) AS e (record, count)
     WHERE v_verdict[e.record] = 0
     GROUP BY 1
     ORDER BY 1
    ON CONFLICT (partner_id) DO UPDATE SET last_number = f.last_number + EXCLUDED.last_number;
    INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
    SELECT f.partner_id,
           f.last_number + 1 - sum(e.count) OVER (PARTITION BY f.partner_id ORDER BY e.record DESC),
           e.count, e.order_id, e.sequence, e.body, v_now
      FROM unnest(e_record, e_order, e_count, e_sequence, e_body) AS e (record, order_id, count, sequence, body)
      JOIN feeds AS f ON f.partner_id = r_partner[e.record]
     WHERE v_verdict[e.record] = 0;

    RETURN QUERY
    SELECT v.verdict, v.sequence, v.balance, k.fingerprint, k.status, k.body
      FROM unnest(v_verdict, v_sequence, v_balance, r_key) WITH ORDINALITY AS v (verdict, sequence, balance, key, record)
      LEFT JOIN LATERAL (
            SELECT * FROM idempotency_keys AS k WHERE v.verdict = 1 AND k.key = v.key OFFSET 0
           ) AS k ON true
     ORDER BY v.record;
END
$$;

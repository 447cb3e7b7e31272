-- The commit statement: one call writes a batch of records in one transaction and returns a verdict per record.
--
-- The actors decide in memory; this function verifies. First it claims everything that another writer could have taken, in the
-- lock order: keys, continuity (if vouchers return), orders, payouts, wallets, chunks, vouchers, then caps. A record that loses a claim gets its verdict and
-- releases what it has claimed; the other records are written. An error anywhere rolls back the whole batch.
--
-- Lines marked with a guard comment protect an invariant: the conformance suite removes each guard and expects a test to fail.
--
-- Arrays form groups with one element per row: r_ records, m_ money movements, o_ orders, a_ allocations, e_ events. Each row of
-- the last four names its record by number (from 1). Rows that several records share, and that are locked in order, come once
-- and sorted: w_ wallets, c_ chunks, f_ feeds; other rows name them by number. w_amount and w_entries are the sum and the count
-- of the movements per wallet if all movements are debits, else empty. r_by_key lists the records in key order; allocations
-- come in stock id order. p_rest holds the columns that few records have as JSON, or null: `changes` of orders, returned
-- vouchers (`returns`), `payouts`, `pending_deltas` of the wallets, `audit_entries` of operators' decisions, and `caps` of partners that have some.
--
-- A column without any value comes as an empty array: reading beyond the end of an array yields null.
--
-- Arrays are read by index. Unnesting several in parallel copies row by row, which costs a third of an insert's time; and the
-- planner expects few rows from each, so it joins two of them by comparing every pair.
--
-- Keys and vouchers are inserted without checking first, and debits are applied as if every wallet had enough money. If that
-- fails, a subtransaction rolls back and the slower path finds the conflicts.
--
-- Plans must stay index probes, whatever the table sizes were at plan time. The lane's connection sets the planner options when
-- it opens; setting them on the function would repeat the work for every batch. Joined arrays have a LIMIT equal to their
-- length: for a limit that the planner does not know it expects one row, and probes any table for one row.
--
-- Every batch writes a version of its lane's row, its wallets and its feeds, and while any snapshot is open (pg_dump, a report) none
-- of them is removed. The key then has an index entry per page of versions, oldest first. These rows are therefore found backwards,
-- by an order that the planner cannot leave out (BETWEEN instead of =), and updated by ctid: the cost stays, however many versions
-- there are. Where another transaction changes such a row meanwhile, an update by ctid may find nothing: a wallet then takes the
-- slower path, a feed the path of the first event, and a lane was fenced off.
--
-- Verdicts: 0 committed, 1 key known, 2 insufficient balance, 3 stock gone, 4 order, payout or voucher has changed, 5 a cap of the
-- partner would be exceeded. The result is
-- one row of arrays with one element per record; the known_ columns are null unless some key was known.
CREATE OR REPLACE FUNCTION commit_batch_v2(
    p_node text,
    p_incarnation bigint,
    p_lane smallint,
    p_generation bigint,
    p_batch bigint,
    r_partner uuid[],
    r_key uuid[],
    r_by_key integer[],
    r_fingerprint bytea[],
    r_status smallint[],
    r_body bytea[],
    r_forever boolean[],
    w_partner uuid[],
    w_currency text[],
    w_amount bigint[],
    w_entries bigint[],
    m_record integer[],
    m_wallet integer[],
    m_transaction uuid[],
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
    o_trace bytea[],
    c_chunk bigint[],
    a_record integer[],
    a_chunk integer[],
    a_stock bigint[],
    a_voucher uuid[],
    a_order uuid[],
    a_line smallint[],
    f_partner uuid[],
    e_record integer[],
    e_feed integer[],
    e_order uuid[],
    e_count integer[],
    e_sequence integer[],
    e_body text[],
    p_rest jsonb
) RETURNS TABLE (
    verdicts smallint[],
    wallet_sequences bigint[],
    wallet_balances bigint[],
    known_fingerprints bytea[],
    known_statuses smallint[],
    known_bodies bytea[]
) LANGUAGE plpgsql
AS $$
DECLARE
    v_count    integer := cardinality(r_key);
    v_now      timestamptz := clock_timestamp();
    v_verdict  smallint[] := array_fill(0::smallint, ARRAY[v_count]);
    v_sequence bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
    v_balance  bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
    v_left     bigint[]; -- running balance per wallet
    v_entry    bigint[]; -- running ledger sequence per wallet
    v_written_balance bigint[]; -- the same two as written to the tables by the fast path for debits
    v_written_entry   bigint[];
    v_first    bigint[]; -- stock id range per chunk; null: the chunk is not ours
    v_last     bigint[];
    v_added     bigint[] := array_fill(0::bigint, ARRAY[cardinality(f_partner)]); -- number of new events per feed
    v_newest   bigint[] := v_added; -- number of the last event per feed
    v_before   bigint[] := array_fill(0::bigint, ARRAY[cardinality(e_record)]); -- earlier events of the same feed in this batch
    v_claimed  uuid[];
    v_taken    bigint; -- allocations inserted by the fast path
    v_record   integer;
    v_wallet   integer;
    v_feed     integer;
    v_number   bigint;
    v_row      record;
    v_n        integer := 1;
    v_place    bigint[]; -- counter per check of a cap
    v_adds     bigint[]; -- what the record adds, per check
    v_room     bigint[]; -- what was left before this batch, per check; null: no cap
    v_added_to bigint[]; -- what accepted records add, per counter
    v_first_check bigint[]; -- range of checks per record
    v_last_check  bigint[];
    v_rated    integer[]; -- records whose orders count for an order rate; null: none
    v_epoch    bigint; -- cleared_epoch of returned vouchers; null: nothing is returned, or the database was never checked
BEGIN
    -- The fence. Recovery waits for this row lock and reads from the row whether the batch committed.
    UPDATE lanes AS l
       SET batch = p_batch /* guard: lane-batch */
     WHERE l.ctid = (
            SELECT t.ctid
              FROM lanes AS t
             WHERE t.node = p_node AND t.lane BETWEEN p_lane AND p_lane
             ORDER BY t.lane DESC
             LIMIT 1
           )
       AND l.generation = p_generation; /* guard: lane */
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lane % of node % was fenced off', p_lane, p_node USING ERRCODE = 'VS001';
    END IF;

    -- Keys. Waits for a transaction that holds the same key; an expired key is taken again.
    BEGIN
        INSERT INTO idempotency_keys (key, fingerprint, status, body, expires_at)
        SELECT r_key[r.n], r_fingerprint[r.n], r_status[r.n], r_body[r.n],
               CASE WHEN r_forever[r.n] /* guard: key-forever */ THEN 'infinity' ELSE v_now + interval '24 hours' END
          FROM unnest(r_by_key) AS r (n);
    EXCEPTION WHEN unique_violation THEN
        -- Finds known keys by reading: INSERT ON CONFLICT locks the row it meets, which writes to its page and to the WAL. The
        -- insert below settles keys that were added meanwhile or have expired.
        FOR v_record IN
            SELECT r.n
              FROM (SELECT * FROM unnest(r_by_key) LIMIT v_count) AS r (n)
              JOIN idempotency_keys AS k ON k.key = r_key[r.n]
             WHERE NOT k.expires_at <= v_now /* guard: key, key-expiry */
        LOOP
            v_verdict[v_record] := 1;
        END LOOP;
        WITH claimed AS (
            INSERT INTO idempotency_keys AS k (key, fingerprint, status, body, expires_at)
            SELECT r_key[r.n], r_fingerprint[r.n], r_status[r.n], r_body[r.n],
                   CASE WHEN r_forever[r.n] /* guard: key-forever */ THEN 'infinity' ELSE v_now + interval '24 hours' END
              FROM unnest(r_by_key) AS r (n)
             WHERE v_verdict[r.n] = 0
            ON CONFLICT (key) DO UPDATE
               SET fingerprint = EXCLUDED.fingerprint,
                   status = EXCLUDED.status,
                   body = EXCLUDED.body,
                   expires_at = EXCLUDED.expires_at
             WHERE k.expires_at <= v_now /* guard: key, key-expiry */
            RETURNING k.key
        )
        SELECT array_agg(c.key) INTO v_claimed FROM claimed AS c;
        FOR v_record IN
            SELECT r.n
              FROM unnest(r_by_key) AS r (n)
             WHERE v_verdict[r.n] = 0 AND (r_key[r.n] = ANY (v_claimed)) IS NOT TRUE
        LOOP
            v_verdict[v_record] := 1;
        END LOOP;
    END;

    -- Order and payout changes: each must still be in the state in which it was decided. A voucher whose code was retrieved
    -- cannot be returned; whatever marks one as retrieved locks the order before (retrieve_codes_v1, Quarantine::withdraw_sold).
    IF p_rest IS NOT NULL THEN
        IF jsonb_array_length(p_rest -> 'returns') > 0 THEN
            -- A release or a quarantine waits until the returned voucher is visible to it, or is visible here: else the one would leave
            -- it in quarantine for good, and the other would miss it. Before orders and chunks, which a comparison, a quarantine and
            -- a release lock after this row.
            SELECT CASE WHEN q.quarantined_at IS NULL THEN q.quarantine_epoch ELSE q.quarantine_epoch - 1 END
              INTO v_epoch
              FROM continuity AS q
             WHERE q.only_row
               FOR SHARE /* guard: continuity-lock */;
        END IF;
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

    -- Wallets. A credit creates a missing wallet.
    IF 0 < ANY (m_amount) THEN
        INSERT INTO wallets (partner_id, currency)
        SELECT DISTINCT w_partner[m_wallet[m.n]], w_currency[m_wallet[m.n]]
          FROM generate_series(1, cardinality(m_record)) AS m (n)
         WHERE m_amount[m.n] > 0 AND v_verdict[m_record[m.n]] = 0
         ORDER BY 1, 2
        ON CONFLICT (partner_id, currency) DO NOTHING;
    END IF;
    IF cardinality(w_amount) > 0 AND 0 = ALL (v_verdict) THEN
        -- Fast path: one write per wallet. An overdraft violates the check constraint, and a missing wallet is not written.
        BEGIN
            WITH paid AS (
                UPDATE wallets AS w
                   SET balance = w.balance + w_amount[n.wallet],
                       sequence = w.sequence + w_entries[n.wallet],
                       updated_at = v_now
                  FROM (
                        SELECT n.wallet, t.ctid
                          FROM unnest(w_partner, w_currency) WITH ORDINALITY AS n (partner_id, currency, wallet)
                         CROSS JOIN LATERAL (
                                SELECT t.ctid
                                  FROM wallets AS t
                                 WHERE t.partner_id = n.partner_id AND t.currency BETWEEN n.currency AND n.currency
                                 ORDER BY t.currency DESC
                                 LIMIT 1
                               ) AS t
                         LIMIT cardinality(w_amount)
                       ) AS n
                 WHERE w.ctid = n.ctid
                RETURNING n.wallet, w.balance, w.sequence
            )
            SELECT array_agg(p.balance), array_agg(p.sequence),
                   array_agg(p.balance - w_amount[p.wallet]), array_agg(p.sequence - w_entries[p.wallet])
              INTO v_written_balance, v_written_entry, v_left, v_entry
              FROM (SELECT * FROM paid ORDER BY wallet) AS p;
            IF cardinality(v_left) IS DISTINCT FROM cardinality(w_amount) /* guard: wallet-missing */ THEN
                RAISE check_violation;
            END IF;
        EXCEPTION WHEN check_violation THEN
            v_left := NULL;
            v_written_balance := NULL;
        END;
    END IF;
    IF v_left IS NULL THEN
        SELECT array_agg(COALESCE(w.balance, 0) ORDER BY n.wallet),
               array_agg(COALESCE(w.sequence, 0) ORDER BY n.wallet)
          INTO v_left, v_entry
          FROM unnest(w_partner, w_currency) WITH ORDINALITY AS n (partner_id, currency, wallet)
          LEFT JOIN LATERAL (
                SELECT w.balance, w.sequence
                  FROM wallets AS w
                 WHERE w.partner_id = n.partner_id AND w.currency BETWEEN n.currency AND n.currency
                 ORDER BY w.currency DESC
                 LIMIT 1
                   FOR UPDATE /* guard: wallet-lock */
               ) AS w ON true;
    END IF;

    IF cardinality(a_stock) > 0 THEN
        -- Chunks. FOR SHARE, so that lanes do not wait for each other. A takeover waits for this lock, or is visible here.
        SELECT array_agg(c.first_stock_id ORDER BY n.chunk), array_agg(c.last_stock_id ORDER BY n.chunk)
          INTO v_first, v_last
          FROM unnest(c_chunk) WITH ORDINALITY AS n (chunk_id, chunk)
          LEFT JOIN LATERAL (
                SELECT *
                  FROM chunks AS c
                 WHERE c.chunk_id = n.chunk_id
                   FOR SHARE /* guard: chunk-lock */
               ) AS c
            ON true
           AND c.node = p_node /* guard: chunk-node */
           AND c.incarnation = p_incarnation /* guard: chunk-incarnation */
           -- A quarantine waits for this transaction, which has written its lane's row before, or is visible here.
           AND c.cleared_epoch = COALESCE((SELECT q.quarantine_epoch FROM continuity AS q WHERE q.only_row), 0) /* guard: chunk-cleared */;

        -- Vouchers. The primary key decides; vouchers outside of our chunks are not written.
        BEGIN
            INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
            SELECT a_stock[a.n], a_voucher[a.n], r_partner[a_record[a.n]], a_order[a.n], a_line[a.n]
              FROM generate_series(1, cardinality(a_record)) AS a (n)
             WHERE v_verdict[a_record[a.n]] = 0
               AND a_stock[a.n] BETWEEN v_first[a_chunk[a.n]] AND v_last[a_chunk[a.n]] /* guard: chunk-range */;
            GET DIAGNOSTICS v_taken = ROW_COUNT;
        EXCEPTION WHEN unique_violation THEN
            INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
            SELECT a_stock[a.n], a_voucher[a.n], r_partner[a_record[a.n]], a_order[a.n], a_line[a.n]
              FROM generate_series(1, cardinality(a_record)) AS a (n)
             WHERE v_verdict[a_record[a.n]] = 0
               AND a_stock[a.n] BETWEEN v_first[a_chunk[a.n]] AND v_last[a_chunk[a.n]] /* guard: chunk-range */
            ON CONFLICT (stock_id) DO NOTHING;
            FOR v_record IN
                SELECT DISTINCT a.record
                  FROM unnest(a_record, a_stock, a_voucher) AS a (record, stock_id, voucher_id)
                  JOIN allocations AS x ON x.stock_id = a.stock_id
                 WHERE v_verdict[a.record] = 0
                   AND x.voucher_id IS DISTINCT FROM a.voucher_id
            LOOP
                v_verdict[v_record] := 3; /* guard: voucher */
            END LOOP;
        END;
        IF v_taken IS DISTINCT FROM cardinality(a_record) THEN
            FOR v_record IN
                SELECT DISTINCT a_record[a.n]
                  FROM generate_series(1, cardinality(a_record)) AS a (n)
                 WHERE v_verdict[a_record[a.n]] = 0
                   AND (
                        a_stock[a.n] BETWEEN v_first[a_chunk[a.n]] AND v_last[a_chunk[a.n]] /* guard: chunk-range */
                       ) IS NOT TRUE
            LOOP
                v_verdict[v_record] := 3;
            END LOOP;
        END IF;
    END IF;

    -- Caps. The commits of a partner with caps run one after the other from here on, on whichever node; a statement after the lock sees
    -- what was committed before.
    IF p_rest ? 'caps' THEN
        FOR v_row IN
            SELECT DISTINCT r_partner[c.record] AS partner_id
              FROM jsonb_to_recordset(p_rest -> 'caps') AS c (record integer)
             WHERE v_verdict[c.record] = 0
             ORDER BY 1
        LOOP
            PERFORM pg_advisory_xact_lock(hashtextextended(v_row.partner_id::text, 51));
        END LOOP;
        -- Each counter is read once. `room` is what is left of it before this batch, null without a cap: what is added then counts for
        -- later records only. The checks of a record have consecutive numbers.
        WITH checks AS MATERIALIZED (
            SELECT c.*, r_partner[c.record] AS partner_id,
                   concat_ws('/', r_partner[c.record], c.kind, c.currency, c.credential, c.day) AS counter
              FROM ROWS FROM (
                    jsonb_to_recordset(p_rest -> 'caps')
                    AS (record integer, kind text, currency text, credential uuid, day date, within_s integer, added bigint, cap bigint)
                   ) WITH ORDINALITY AS c (record, kind, currency, credential, day, within_s, added, cap, n)
        ), used AS MATERIALIZED (
            SELECT c.counter, COALESCE(c.within_s, 0) AS within_s,
                   cap_usage_v1(c.partner_id, c.kind, c.currency, c.credential, c.day, c.within_s, max(c.cap)) AS used
              FROM checks AS c
             WHERE c.cap IS NOT NULL AND v_verdict[c.record] = 0
             GROUP BY c.counter, c.within_s, c.partner_id, c.kind, c.currency, c.credential, c.day
        ), numbered AS (
            SELECT c.*, c.cap - u.used AS room, dense_rank() OVER (ORDER BY c.counter) AS place,
                   row_number() OVER (ORDER BY c.record, c.n) AS number
              FROM checks AS c
              LEFT JOIN used AS u ON u.counter = c.counter AND u.within_s = COALESCE(c.within_s, 0)
        ), of_record AS (
            SELECT c.record, min(c.number) AS first, max(c.number) AS last FROM numbered AS c GROUP BY c.record
        )
        SELECT c.places, c.added, c.rooms, array_fill(0::bigint, ARRAY[c.counters]), r.first, r.last, c.rated
          INTO v_place, v_adds, v_room, v_added_to, v_first_check, v_last_check, v_rated
          FROM (
                SELECT array_agg(c.place ORDER BY c.number) AS places, array_agg(c.added ORDER BY c.number) AS added,
                       array_agg(c.room ORDER BY c.number) AS rooms, max(c.place)::integer AS counters,
                       array_agg(c.record) FILTER (WHERE c.within_s IS NOT NULL) AS rated
                  FROM numbered AS c
               ) AS c
         CROSS JOIN (
                SELECT array_agg(COALESCE(o.first, 1) ORDER BY r.n) AS first, array_agg(COALESCE(o.last, 0) ORDER BY r.n) AS last
                  FROM generate_series(1, v_count) AS r (n)
                  LEFT JOIN of_record AS o ON o.record = r.n
               ) AS r;

        -- Caps and money, record by record: each cap needs room for what the record adds after the accepted records before it, and each debit
        -- enough balance. A record that is rejected counts for none of them. The wallet rows are locked already.
        FOR v_record IN 1 .. v_count LOOP
            IF m_record[v_n] < v_record THEN
                v_n := v_n + 1;
            END IF;
            v_wallet := CASE WHEN m_record[v_n] = v_record THEN m_wallet[v_n] END; -- null: the record moves no money
            CONTINUE WHEN v_verdict[v_record] <> 0;
            IF m_amount[v_n] < 0 AND v_left[v_wallet] + m_amount[v_n] < 0 THEN /* guard: balance */
                v_verdict[v_record] := 2;
                CONTINUE;
            END IF;
            FOR v_check IN v_first_check[v_record] .. v_last_check[v_record] LOOP
                IF v_added_to[v_place[v_check]] + v_adds[v_check] > v_room[v_check] THEN /* guard: cap */
                    v_verdict[v_record] := 5;
                END IF;
            END LOOP;
            CONTINUE WHEN v_verdict[v_record] <> 0;
            FOR v_check IN v_first_check[v_record] .. v_last_check[v_record] LOOP
                v_added_to[v_place[v_check]] := v_added_to[v_place[v_check]] + v_adds[v_check]; /* guard: running-cap */
            END LOOP;
            IF v_wallet IS NOT NULL THEN
                v_left[v_wallet] := v_left[v_wallet] + m_amount[v_n]; /* guard: running-balance */
                v_entry[v_wallet] := v_entry[v_wallet] + 1;
                v_sequence[v_record] := v_entry[v_wallet];
                v_balance[v_record] := v_left[v_wallet];
            END IF;
        END LOOP;
    ELSE
        -- Money. Each debit needs enough balance after the accepted debits before it. The wallet rows are locked already.
        FOR v_n IN 1 .. cardinality(m_record) LOOP
            v_record := m_record[v_n];
            v_wallet := m_wallet[v_n];
            IF v_verdict[v_record] = 0 THEN
                IF m_amount[v_n] < 0 AND v_left[v_wallet] + m_amount[v_n] < 0 THEN /* guard: balance */
                    v_verdict[v_record] := 2;
                ELSE
                    v_left[v_wallet] := v_left[v_wallet] + m_amount[v_n]; /* guard: running-balance */
                    v_entry[v_wallet] := v_entry[v_wallet] + 1;
                    v_sequence[v_record] := v_entry[v_wallet];
                    v_balance[v_record] := v_left[v_wallet];
                END IF;
            END IF;
        END LOOP;
    END IF;

    -- Records that lost a claim release the claims they had won. Verdict 1 is left out: a known key belongs to another record.
    IF v_verdict && ARRAY[2, 3, 4, 5]::smallint[] THEN
        DELETE FROM allocations AS x
         USING unnest(a_record, a_stock, a_voucher) AS a (record, stock_id, voucher_id)
         WHERE x.stock_id = a.stock_id
           AND x.voucher_id = a.voucher_id /* guard: give-back-own */
           AND v_verdict[a.record] IN (2, 3, 5); /* guard: give-back-vouchers */
        DELETE FROM idempotency_keys AS k
         USING unnest(r_key) WITH ORDINALITY AS r (key, record)
         WHERE k.key = r.key
           AND v_verdict[r.record] IN (2, 3, 4, 5); /* guard: give-back-key */
    END IF;

    -- From here on no claim can be lost. Money: the balances, then one ledger entry per movement.
    IF v_written_balance IS DISTINCT FROM v_left OR v_written_entry IS DISTINCT FROM v_entry THEN
        UPDATE wallets AS w
           SET balance = v_left[n.wallet],
               sequence = v_entry[n.wallet],
               updated_at = v_now
          FROM (
                SELECT n.wallet, t.ctid
                  FROM unnest(w_partner, w_currency) WITH ORDINALITY AS n (partner_id, currency, wallet)
                 CROSS JOIN LATERAL (
                        SELECT t.ctid
                          FROM wallets AS t
                         WHERE t.partner_id = n.partner_id AND t.currency BETWEEN n.currency AND n.currency
                         ORDER BY t.currency DESC
                         LIMIT 1
                       ) AS t
                 LIMIT cardinality(w_partner)
               ) AS n
         WHERE w.ctid = n.ctid
           AND w.sequence <> v_entry[n.wallet];
    END IF;
    INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after,
                        order_id, payout_id, reference, created_at)
    SELECT w_partner[m_wallet[m.n]], m_transaction[m.n], w_currency[m_wallet[m.n]], v_sequence[m_record[m.n]], m_kind[m.n],
           m_amount[m.n], v_balance[m_record[m.n]], m_order[m.n], m_payout[m.n], m_reference[m.n], v_now
      FROM generate_series(1, cardinality(m_record)) AS m (n)
     WHERE v_verdict[m_record[m.n]] = 0;
    -- An operator's booking and its audit entry commit together.
    IF cardinality(array_remove(m_operator, NULL)) > 0 THEN
        INSERT INTO audit_log (operator, action, subject, before, after, trace_id, partner_id)
        SELECT m_operator[m.n],
               CASE m_kind[m.n] WHEN 'TOP_UP' THEN 'wallet.top_up' ELSE 'wallet.adjust' END,
               'ptn_' || replace(w_partner[m_wallet[m.n]]::text, '-', '') || '/' || w_currency[m_wallet[m.n]],
               jsonb_build_object('balance_minor', v_balance[m_record[m.n]] - m_amount[m.n]),
               jsonb_build_object('balance_minor', v_balance[m_record[m.n]],
                                  'amount_minor', m_amount[m.n],
                                  'reference', m_reference[m.n],
                                  'transaction_id', 'txn_' || replace(m_transaction[m.n]::text, '-', '')),
               m_trace[m.n],
               w_partner[m_wallet[m.n]]
          FROM generate_series(1, cardinality(m_record)) AS m (n)
         WHERE v_verdict[m_record[m.n]] = 0 AND m_operator[m.n] IS NOT NULL;
    END IF;

    INSERT INTO orders (partner_id, order_id, status, currency, total, fulfilled_from, pending_reason, closed,
                        last_sequence, reference, metadata, lines, timeline, created_at, updated_at, trace)
    SELECT r_partner[o_record[o.n]], o_order[o.n], o_status[o.n], o_currency[o.n], o_total[o.n], o_source[o.n],
           o_pending_reason[o.n], o_closed[o.n], o_sequence[o.n], o_reference[o.n], o_metadata[o.n], o_lines[o.n],
           o_timeline[o.n]::jsonb, o_created[o.n], o_created[o.n], o_trace[o.n]
      FROM generate_series(1, cardinality(o_record)) AS o (n)
     WHERE v_verdict[o_record[o.n]] = 0;

    IF p_rest IS NOT NULL THEN
        FOR v_row IN
            SELECT r_partner[w.record] AS partner_id, w.currency, sum(w.orders) AS orders, sum(w.payouts) AS payouts
              FROM jsonb_to_recordset(p_rest -> 'pending_deltas')
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
                         refunded bigint, last_sequence integer, lines text, timeline jsonb, updated_at timestamptz)
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
        -- A returned voucher: its stock row stays sold, and its code gets a new stock row in a chunk without an owner. If orders
        -- wait for the SKU, the chunk is reserved for them, so no shelf claims it.
        FOR v_row IN
            SELECT b.stock_id
              FROM jsonb_to_recordset(p_rest -> 'returns') AS b (record integer, stock_id bigint)
             WHERE v_verdict[b.record] = 0
        LOOP
            UPDATE allocations AS a
               SET returned_at = v_now
             WHERE a.stock_id = v_row.stock_id
               AND a.returned_at IS NULL /* guard: return-once */
               AND a.first_retrieved_at IS NULL /* guard: return-unread */;
            IF NOT FOUND THEN
                -- Changed since the check above, by a statement that did not lock the order, or by another record of this batch. The
                -- writes before this one cannot be taken back for one record, so nothing of the batch is written. The lane sends the
                -- records again in parts, where the check gives this one its verdict and the others are written.
                RAISE EXCEPTION 'stock row % was read or returned after its check', v_row.stock_id
                      USING ERRCODE = 'serialization_failure';
            END IF;
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
                                     reservation_id, cleared_epoch)
            SELECT b.product_id, b.denomination, min(b.expiry),
                   CASE WHEN count(*) = count(b.expiry) THEN max(b.expiry) END, min(b.new_id), max(b.new_id),
                   CASE WHEN EXISTS (
                            SELECT
                              FROM order_demands AS d
                             WHERE d.product_id = b.product_id AND d.denomination = b.denomination
                        )
                        THEN gen_random_uuid()
                   END,
                   -- The voucher may have come back on a lost timeline too, and have been sold again there.
                   COALESCE(v_epoch, 0)
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
        IF p_rest ? 'caps' THEN
            INSERT INTO partner_usage AS u (partner_id, day, counter, value)
            SELECT r_partner[c.record], c.day, concat_ws('/', c.kind, c.currency, c.credential), sum(c.added)
              FROM jsonb_to_recordset(p_rest -> 'caps')
                   AS c (record integer, kind text, currency text, credential uuid, day date, added bigint)
             WHERE c.day IS NOT NULL AND v_verdict[c.record] = 0
             GROUP BY 1, 2, 3
             ORDER BY 1, 2, 3
            ON CONFLICT (partner_id, day, counter) DO UPDATE SET value = u.value + EXCLUDED.value;
            PERFORM record_order_totals_v1(w_partner[w.n], w_currency[w.n])
               FROM (
                     SELECT DISTINCT m_wallet[m.n] AS n
                       FROM generate_series(1, cardinality(m_record)) AS m (n)
                      WHERE m_record[m.n] = ANY (v_rated) AND v_verdict[m_record[m.n]] = 0
                      ORDER BY 1
                    ) AS w;
        END IF;
        -- An operator's decision and its audit entry commit together.
        INSERT INTO audit_log (operator, action, subject, before, after, trace_id, partner_id)
        SELECT d.operator, d.action, d.subject, d.before, d.after, d.trace_id, r_partner[d.record]
          FROM jsonb_to_recordset(p_rest -> 'audit_entries')
               AS d (record integer, operator text, action text, subject text, before jsonb, after jsonb, trace_id text)
         WHERE v_verdict[d.record] = 0
         ORDER BY d.record;
    END IF;

    -- Events, numbered in commit order: the feed's counter row stays locked until this transaction ends.
    FOR v_n IN 1 .. cardinality(e_record) LOOP
        IF v_verdict[e_record[v_n]] = 0 THEN
            v_feed := e_feed[v_n];
            v_before[v_n] := v_added[v_feed];
            v_added[v_feed] := v_added[v_feed] + e_count[v_n];
        END IF;
    END LOOP;
    FOR v_row IN
        UPDATE feeds AS f
           SET last_number = f.last_number + v_added[n.feed]
          FROM (
                SELECT n.feed, t.ctid
                  FROM unnest(f_partner) WITH ORDINALITY AS n (partner_id, feed)
                 CROSS JOIN LATERAL (
                        SELECT t.ctid
                          FROM feeds AS t
                         WHERE t.partner_id BETWEEN n.partner_id AND n.partner_id
                         ORDER BY t.partner_id DESC
                         LIMIT 1
                       ) AS t
                 LIMIT cardinality(f_partner)
               ) AS n
         WHERE f.ctid = n.ctid AND v_added[n.feed] > 0
        RETURNING n.feed, f.last_number
    LOOP
        v_newest[v_row.feed] := v_row.last_number;
    END LOOP;
    IF 0 = ANY (v_newest) THEN
        -- A partner's first event, or a feed whose records all lost a claim. New rows are locked after existing ones. Batches
        -- that could deadlock here have nearly always met at a wallet before; else Postgres aborts one and the lane resends it.
        FOR v_n IN 1 .. cardinality(f_partner) LOOP
            IF v_added[v_n] > 0 AND v_newest[v_n] = 0 THEN
                INSERT INTO feeds AS f (partner_id, last_number)
                VALUES (f_partner[v_n], v_added[v_n])
                ON CONFLICT (partner_id) DO UPDATE SET last_number = f.last_number + EXCLUDED.last_number
                RETURNING f.last_number INTO v_number;
                v_newest[v_n] := v_number;
            END IF;
        END LOOP;
    END IF;
    INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
    SELECT f_partner[e_feed[e.n]],
           v_newest[e_feed[e.n]] - v_added[e_feed[e.n]] + v_before[e.n] + 1,
           e_count[e.n], e_order[e.n], e_sequence[e.n], e_body[e.n], v_now
      FROM generate_series(1, cardinality(e_record)) AS e (n)
     WHERE v_verdict[e_record[e.n]] = 0;

    verdicts := v_verdict;
    wallet_sequences := v_sequence;
    wallet_balances := v_balance;
    IF 1 = ANY (v_verdict) THEN
        SELECT array_agg(k.fingerprint ORDER BY r.n), array_agg(k.status ORDER BY r.n), array_agg(k.body ORDER BY r.n)
          INTO known_fingerprints, known_statuses, known_bodies
          FROM generate_series(1, v_count) AS r (n)
          LEFT JOIN LATERAL (
                SELECT * FROM idempotency_keys AS k WHERE v_verdict[r.n] = 1 AND k.key = r_key[r.n] OFFSET 0
               ) AS k ON true;
    END IF;
    RETURN NEXT;
END
$$;

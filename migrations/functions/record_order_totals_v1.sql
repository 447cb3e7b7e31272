-- Adds the ledger entries of a wallet that order_totals lacks, with a row for each second in which some were written. Every commit that an order
-- rate applies to calls it, and so reads the entries of its own batch; setting an order rate calls it for the orders before. What
-- commits without caps have written meanwhile is added with the next call.
--
-- The totals of a wallet that were not continued for a day are of no use: they begin anew, at the last entry that is older than any window,
-- and at most a million entries ago.
CREATE OR REPLACE FUNCTION record_order_totals_v1(p_partner uuid, p_currency text) RETURNS void LANGUAGE plpgsql
AS $$
DECLARE
    -- Longer than the longest window: a commit may wait for locks between its time and its turn in the ledger.
    v_oldest timestamptz := clock_timestamp() - interval '25 hours';
    v_last   order_totals;
    v_first  bigint;
    v_end    bigint;
    v_middle bigint;
BEGIN
    -- A change of the caps and a commit must not begin the totals at different entries.
    PERFORM pg_advisory_xact_lock(hashtextextended(p_partner::text, 72));
    SELECT *
      INTO v_last
      FROM order_totals AS t
     WHERE t.partner_id = p_partner AND t.currency = p_currency
     ORDER BY t.at DESC
     LIMIT 1;
    IF v_last.at < v_oldest IS NOT FALSE THEN
        SELECT w.sequence
          INTO v_end
          FROM wallets AS w
         WHERE w.partner_id = p_partner AND w.currency = p_currency;
        v_first := GREATEST(v_end - 1000000, 0);
        WHILE v_first < v_end LOOP
            v_middle := (v_first + v_end + 1) / 2;
            IF v_oldest > (SELECT l.created_at
                             FROM ledger AS l
                            WHERE l.partner_id = p_partner AND l.currency = p_currency AND l.sequence = v_middle) THEN
                v_first := v_middle;
            ELSE
                v_end := v_middle - 1;
            END IF;
        END LOOP;
        IF v_first IS NULL THEN
            RETURN; -- no such wallet
        END IF;
        DELETE FROM order_totals AS t WHERE t.partner_id = p_partner AND t.currency = p_currency;
        INSERT INTO order_totals AS t (partner_id, currency, at, sequence, orders, total)
        VALUES (p_partner, p_currency, '-infinity', v_first, 0, 0)
        RETURNING * INTO v_last;
    END IF;
    -- Times in the ledger are those at which commits began; a total has the latest of its entries.
    INSERT INTO order_totals AS t (partner_id, currency, at, sequence, orders, total)
    SELECT p_partner, p_currency, s.at, s.sequence,
           v_last.orders + sum(s.orders) OVER (ORDER BY s.at),
           v_last.total + sum(s.total) OVER (ORDER BY s.at)
      FROM (
            SELECT l.at, max(l.sequence) AS sequence, count(l.debit) AS orders, COALESCE(sum(l.debit), 0) AS total
              FROM (
                    SELECT l.sequence,
                           CASE WHEN l.kind = 'DEBIT' THEN -l.amount END AS debit,
                           GREATEST(v_last.at, date_trunc('second', max(l.created_at) OVER (ORDER BY l.sequence))) AS at
                      FROM ledger AS l
                     WHERE l.partner_id = p_partner AND l.currency = p_currency AND l.sequence > v_last.sequence
                   ) AS l
             GROUP BY l.at
           ) AS s
    ON CONFLICT (partner_id, currency, at) DO UPDATE
       SET sequence = EXCLUDED.sequence, orders = EXCLUDED.orders, total = EXCLUDED.total;
END
$$;

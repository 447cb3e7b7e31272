-- Removes the first of a partner's events, up to p_limit rows and up to the number p_up_to, and returns how many rows. Refused unless the removal
-- of the month is recorded, and unless these events follow the removed ones without a gap.
CREATE OR REPLACE FUNCTION remove_archived_events_v1(p_month date, p_partner uuid, p_up_to bigint, p_limit integer)
RETURNS bigint LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_before bigint := COALESCE((SELECT h.removed_to FROM event_horizons AS h WHERE h.partner_id = p_partner), 0);
    v_row    record;
BEGIN
    IF NOT EXISTS (
        SELECT FROM log_archives AS a WHERE a.log = 'events' AND a.month = p_month AND a.removal_began_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the events of % are not archived', p_month;
    END IF;
    WITH removed AS MATERIALIZED (
        DELETE FROM events AS e
         WHERE e.partner_id = p_partner
           AND e.number IN (
               SELECT n.number
                 FROM events AS n
                WHERE n.partner_id = p_partner AND n.number <= p_up_to
                ORDER BY n.number
                LIMIT p_limit
               )
        RETURNING e.number, e.count, e.order_id, e.first_sequence
    ), debits AS (
        SELECT l.currency, max(l.sequence) AS sequence
          FROM removed AS r
         CROSS JOIN LATERAL (
                SELECT l.currency, l.sequence
                  FROM ledger AS l
                 WHERE l.partner_id = p_partner AND l.transaction_id = r.order_id AND l.kind = 'DEBIT'
                OFFSET 0
               ) AS l
         WHERE r.first_sequence = 1
         GROUP BY l.currency
    )
    SELECT count(*) AS rows, sum(r.count) AS events, max(r.number + r.count - 1) AS last,
           COALESCE((SELECT jsonb_object_agg(d.currency, d.sequence) FROM debits AS d), '{}') AS debits
      INTO v_row
      FROM removed AS r;
    IF v_row.rows = 0 THEN
        RETURN 0;
    END IF;
    IF v_row.last > p_up_to OR v_row.events <> v_row.last - v_before THEN
        RAISE EXCEPTION 'partner %: % events to %, after %', p_partner, v_row.events, v_row.last, v_before;
    END IF;
    INSERT INTO event_horizons AS h (partner_id, removed_to, debits)
    VALUES (p_partner, v_row.last, v_row.debits)
    ON CONFLICT (partner_id) DO UPDATE SET removed_to = EXCLUDED.removed_to, debits = h.debits || EXCLUDED.debits;
    RETURN v_row.rows;
END
$$;

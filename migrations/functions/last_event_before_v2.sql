-- Number of a partner's last event before a timestamp, also if it is removed (event_horizons). Events are numbered in commit order, so binary
-- search finds it. created_at can be out of number order by the duration of one commit; callers widen the range accordingly.
CREATE OR REPLACE FUNCTION last_event_before_v2(p_partner uuid, p_before timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_before bigint := 0;
    v_from   bigint := COALESCE((SELECT f.last_number FROM feeds AS f WHERE f.partner_id = p_partner), 0) + 1;
    v_middle bigint;
BEGIN
    WHILE v_from - v_before > 1 LOOP
        v_middle := (v_before + v_from) / 2;
        -- Null: only removed events have such numbers. They are older than all that are left.
        IF (
            SELECT e.created_at < p_before
              FROM events AS e
             WHERE e.partner_id = p_partner AND e.number <= v_middle
             ORDER BY e.number DESC
             LIMIT 1
        ) IS NOT FALSE THEN
            v_before := v_middle;
        ELSE
            v_from := v_middle;
        END IF;
    END LOOP;
    RETURN v_before;
END
$$;

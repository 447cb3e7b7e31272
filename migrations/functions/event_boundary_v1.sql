-- Number before a partner's first event that is not older than a timestamp: the end of the partner's events in the archives before that time.
-- The same at any time, as long as that event is not removed: an archive ends where the next one begins. A commit takes less than ten minutes.
CREATE OR REPLACE FUNCTION event_boundary_v1(p_partner uuid, p_at timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_after bigint := last_event_before_v2(p_partner, p_at - interval '10 minutes');
BEGIN
    RETURN COALESCE(
        (
            SELECT e.number - 1
              FROM events AS e
             WHERE e.partner_id = p_partner AND e.number > v_after AND e.created_at >= p_at
             ORDER BY e.number
             LIMIT 1
        ),
        (SELECT f.last_number FROM feeds AS f WHERE f.partner_id = p_partner),
        0
    );
END
$$;

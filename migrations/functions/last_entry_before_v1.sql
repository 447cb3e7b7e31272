-- Number of a wallet's last ledger entry before a timestamp. Entries are numbered from 1 without gaps in commit order, so binary
-- search finds it, with twenty probes among a million. created_at can be out of number order by the duration of one commit; callers
-- widen the range accordingly and check the time of each entry.
CREATE OR REPLACE FUNCTION last_entry_before_v1(p_partner uuid, p_currency text, p_newest bigint, p_before timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_before bigint := 0;
    v_from   bigint := p_newest + 1;
    v_middle bigint;
BEGIN
    WHILE v_from - v_before > 1 LOOP
        v_middle := (v_before + v_from) / 2;
        IF (
            SELECT l.created_at < p_before
              FROM ledger AS l
             WHERE l.partner_id = p_partner AND l.currency = p_currency AND l.sequence = v_middle
        ) THEN
            v_before := v_middle;
        ELSE
            v_from := v_middle;
        END IF;
    END LOOP;
    RETURN v_before;
END
$$;

-- Drops the partition of a day of delivery_attempts, and returns whether it was dropped here: another node may have dropped it. Runs with
-- the rights of the owner, because the service's role drops no tables. Waits for readers as long as lock_timeout permits.
CREATE OR REPLACE FUNCTION drop_attempt_partition_v1(p_day date)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
-- Last, so that a temporary table of the caller replaces nothing.
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    v_name text := 'delivery_attempts_' || to_char(p_day, 'YYYYMMDD');
BEGIN
    -- The lock of partition changes.
    PERFORM pg_advisory_xact_lock(8534168888703808628);
    -- Only a partition of the log, whatever else has this name.
    IF NOT EXISTS (
        SELECT FROM pg_inherits AS i
         WHERE i.inhparent = 'public.delivery_attempts'::regclass AND i.inhrelid = to_regclass('public.' || v_name)
    ) THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE public.%I', v_name);
    RETURN true;
END
$$;

-- Creates the partition of a day (UTC) of delivery_attempts unless it exists. Runs with the rights of the owner, because the service's role
-- creates no tables.
--
-- Attaching takes SHARE UPDATE EXCLUSIVE on the log; CREATE TABLE … PARTITION OF would take ACCESS EXCLUSIVE and wait for readers.
CREATE OR REPLACE FUNCTION create_attempt_partition_v1(p_day date)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
-- Last, so that a temporary table of the caller replaces nothing.
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    v_name text := 'delivery_attempts_' || to_char(p_day, 'YYYYMMDD');
BEGIN
    IF to_regclass('public.' || v_name) IS NOT NULL THEN
        RETURN;
    END IF;
    -- The lock of partition changes; another node may have created the partition meanwhile. A second to_regclass would not see it: the session
    -- remembers that there is no such table.
    PERFORM pg_advisory_xact_lock(8534168888703808628);
    IF EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = v_name) THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.delivery_attempts INCLUDING ALL)', v_name);
    -- The ids of attempts begin with their start, as those of UUID version 7.
    EXECUTE format(
        'ALTER TABLE public.delivery_attempts ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
        v_name,
        lpad(to_hex((p_day - DATE '1970-01-01') * 86400000::bigint), 12, '0') || '70008000000000000000',
        lpad(to_hex((p_day + 1 - DATE '1970-01-01') * 86400000::bigint), 12, '0') || '70008000000000000000'
    );
END
$$;

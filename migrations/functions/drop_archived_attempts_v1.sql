-- Drops the partition of a day of delivery_attempts that has as many rows as its archive, and returns their number; null: there is no such
-- partition any more. With another number of rows it drops nothing. Refused unless the removal of the day's month is recorded.
--
-- Locks the partition against writers while it counts, and the log for the drop alone. Waits for each as long as lock_timeout permits.
CREATE OR REPLACE FUNCTION drop_archived_attempts_v1(p_day date, p_rows bigint)
RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_name text := 'delivery_attempts_' || to_char(p_day, 'YYYYMMDD');
    v_rows bigint;
BEGIN
    IF NOT EXISTS (
        SELECT
          FROM log_archives AS a
         WHERE a.log = 'delivery_attempts'
           AND a.month = date_trunc('month', p_day::timestamp)::date
           AND a.removal_began_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the delivery attempts of % are not archived', p_day;
    END IF;
    IF to_regclass('public.' || v_name) IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format('LOCK TABLE public.%I IN SHARE MODE', v_name);
    EXECUTE format('SELECT count(*) FROM public.%I', v_name) INTO v_rows;
    IF v_rows = p_rows THEN
        PERFORM drop_attempt_partition_v1(p_day);
    END IF;
    RETURN v_rows;
END
$$;

-- Sets the partner of a batch of audit entries that version 0.2.0 wrote, newest first, and returns whether there may be more. Waits for another
-- node that does the same. Runs with the rights of the owner, because the service's role changes no audit entry.
CREATE OR REPLACE FUNCTION fill_audit_partners_v1(p_entries bigint)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
-- Last, so that a temporary table of the caller replaces nothing.
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    v_newest bigint;
    v_rest   bigint;
BEGIN
    SELECT b.audit_id INTO v_newest FROM public.audit_partner_backfill AS b FOR UPDATE;
    IF v_newest IS NULL THEN
        RETURN false;
    END IF;
    v_rest := v_newest - p_entries;
    WITH found AS MATERIALIZED (
        SELECT a.audit_id, public.partner_of_audit_entry(a) AS partner_id
          FROM public.audit_log AS a
         WHERE a.audit_id > v_rest
           AND a.audit_id <= v_newest
           AND a.partner_id IS NULL
    )
    UPDATE public.audit_log AS a
       SET partner_id = f.partner_id
      FROM found AS f
     WHERE a.audit_id = f.audit_id
       AND f.partner_id IS NOT NULL;
    IF v_rest > 0 THEN
        UPDATE public.audit_partner_backfill SET audit_id = v_rest;
        RETURN true;
    END IF;
    DELETE FROM public.audit_partner_backfill;
    RETURN false;
END
$$;

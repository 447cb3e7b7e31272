-- Removes the reads of codes of an archived checkpoint from the audit log, and returns how many. p_hash is the SHA-256 of the checkpoint's hash and
-- of the entries that stay, and p_mac its HMAC. Refused unless the removal of the month is recorded, and if other entries would stay.
CREATE OR REPLACE FUNCTION remove_archived_reads_v1(p_month date, p_number bigint, p_hash bytea, p_mac bytea)
RETURNS bigint LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_entries bigint[];
    v_removed bigint;
BEGIN
    IF NOT EXISTS (
        SELECT FROM log_archives AS a WHERE a.log = 'audit_log' AND a.month = p_month AND a.removal_began_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the audit log of % is not archived', p_month;
    END IF;
    INSERT INTO archived_checkpoints (number, at, hash, mac)
    SELECT c.number, c.at, p_hash, p_mac FROM audit_checkpoints AS c WHERE c.number = p_number;
    SELECT c.entries INTO STRICT v_entries FROM audit_checkpoints AS c WHERE c.number = p_number;
    PERFORM set_config('vouchsafe.archived_checkpoint', p_number::text, true);
    DELETE FROM audit_log AS a WHERE a.audit_id = ANY (v_entries) AND a.action = 'codes.retrieve';
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    PERFORM set_config('vouchsafe.archived_checkpoint', '', true);
    IF p_hash IS DISTINCT FROM (
        SELECT sha256(c.hash || convert_to(
                   COALESCE((SELECT string_agg(audit_entry_text_v1(a), E'\n' ORDER BY a.audit_id)
                               FROM audit_log AS a
                              WHERE a.audit_id = ANY (c.entries)), ''),
                   'UTF8'))
          FROM audit_checkpoints AS c
         WHERE c.number = p_number
    ) THEN
        RAISE EXCEPTION 'checkpoint %: the entries that stay are not those of the archive', p_number;
    END IF;
    RETURN v_removed;
END
$$;

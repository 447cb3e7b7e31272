-- Canonical text of an audit entry, hashed into audit checkpoints. Independent of session settings. It must never change:
-- `verify` compares stored hashes with it.
CREATE OR REPLACE FUNCTION audit_entry_text_v1(p_entry audit_log)
RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT jsonb_build_array(
            p_entry.audit_id,
            (extract(epoch FROM p_entry.at) * 1000000)::bigint,
            p_entry.operator,
            p_entry.action,
            p_entry.subject,
            p_entry.before,
            p_entry.after,
            p_entry.trace_id
           )::text
$$;

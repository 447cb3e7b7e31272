-- The text of an entry of the trail that its seal is made of: all that it says, in one form whatever the session's settings
-- are. It stays as it is for ever, since seals that were made with it are compared with it.
CREATE OR REPLACE FUNCTION audit_text(p_entry audit_log)
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

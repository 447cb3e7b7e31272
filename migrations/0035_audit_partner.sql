-- The partner that an audit entry concerns; null: none, or one that nothing names any more. The hash of audit checkpoints leaves it out
-- (audit_entry_text_v1), so entries of version 0.2.0 can receive theirs later; `vouchsafe verify` compares it with the entry's object.
ALTER TABLE audit_log ADD COLUMN partner_id uuid;

-- Derives the partner of an entry from its actor and its object. Plans must stay index probes, whatever the table sizes were at
-- plan time.
CREATE FUNCTION partner_of_audit_entry(p_entry audit_log) RETURNS uuid LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    -- An entry about a change request concerns the partner of the object that is to be changed.
    v_object text := CASE WHEN p_entry.action LIKE 'request.%' THEN p_entry.after ->> 'object' ELSE p_entry.subject END;
    v_id     uuid;
BEGIN
    -- A partner acts on its own objects only.
    IF p_entry.operator ~ '^ptn_[0-9a-f]{32}$' THEN
        RETURN substr(p_entry.operator, 5)::uuid;
    END IF;
    IF p_entry.action = 'purchase.end' THEN
        RETURN (SELECT p.partner_id FROM purchases AS p WHERE p.purchase_id = p_entry.subject::uuid);
    END IF;
    IF v_object !~ '^(ptn|cred|wh|po|drf|ord)_[0-9a-f]{32}(/[A-Z]{3})?$' THEN
        RETURN NULL;
    END IF;
    v_id := substr(split_part(v_object, '_', 2), 1, 32)::uuid;
    CASE split_part(v_object, '_', 1)
        WHEN 'ptn' THEN
            RETURN v_id;
        WHEN 'cred' THEN
            -- Ended credentials are purged: their entries have the partner in the state, too.
            RETURN COALESCE((SELECT c.partner_id FROM credentials AS c WHERE c.credential_id = v_id),
                            substr(COALESCE(p_entry.after, p_entry.before) ->> 'partner_id', 5)::uuid);
        WHEN 'wh' THEN
            -- Partners register and remove endpoints: the entries of a removed one name its partner.
            RETURN COALESCE((SELECT w.partner_id FROM webhooks AS w WHERE w.webhook_id = v_id),
                            (SELECT substr(a.operator, 5)::uuid
                               FROM audit_log AS a
                              WHERE a.subject = v_object AND a.operator ~ '^ptn_[0-9a-f]{32}$'
                              LIMIT 1));
        WHEN 'po' THEN
            RETURN (SELECT y.partner_id FROM payouts AS y WHERE y.payout_id = v_id LIMIT 1);
        WHEN 'drf' THEN
            RETURN (SELECT d.partner_id FROM drifts AS d WHERE d.drift_id = v_id);
        ELSE
            -- Orders have no index by their id alone: one probe per partner, that of the entry first.
            RETURN (SELECT o.partner_id
                      FROM (SELECT p_entry.partner_id UNION ALL SELECT p.partner_id FROM partners AS p) AS p (partner_id)
                     CROSS JOIN LATERAL (
                            SELECT o.partner_id FROM orders AS o WHERE o.partner_id = p.partner_id AND o.order_id = v_id OFFSET 0
                           ) AS o
                     LIMIT 1);
    END CASE;
END
$$;

-- For entries of version 0.2.0, which still runs during an upgrade; this version writes the column itself.
CREATE FUNCTION set_partner_of_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.partner_id := partner_of_audit_entry(NEW);
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_log_partner BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (NEW.partner_id IS NULL)
    EXECUTE FUNCTION set_partner_of_audit_entry();

-- The partner of an old entry is set once; nothing else of an entry ever changes.
CREATE OR REPLACE TRIGGER audit_log_only_grows
    BEFORE UPDATE OF audit_id, at, operator, action, subject, before, after, trace_id OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_partner_is_final BEFORE UPDATE OF partner_id ON audit_log
    FOR EACH ROW WHEN (OLD.partner_id IS NOT NULL)
    EXECUTE FUNCTION refuse_change();

-- Entries up to this one may lack their partner. The service goes through them, newest first, and deletes the row at the end. The
-- lock of the first statement keeps other entries from being written meanwhile.
CREATE TABLE audit_partner_backfill (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    audit_id bigint NOT NULL
);
INSERT INTO audit_partner_backfill (audit_id)
SELECT max(audit_id) FROM audit_log HAVING max(audit_id) IS NOT NULL;

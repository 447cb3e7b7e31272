-- expand
-- Checkpoints whose code reads are archived and removed from the audit log. The other entries stay, and stay provable: hash and HMAC.
-- Written by `vouchsafe archive`, never by the service.
CREATE TABLE archived_checkpoints (
    number bigint PRIMARY KEY REFERENCES audit_checkpoints,
    at     timestamptz NOT NULL, -- of the checkpoint
    hash   bytea NOT NULL CHECK (length(hash) = 32), -- SHA-256 of the checkpoint's hash and of the entries that stay
    mac    bytea NOT NULL -- HMAC of the negative number, time and hash under a key of the vault
);
CREATE TRIGGER archived_checkpoints_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON archived_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A removal names its checkpoint in the setting of its transaction; refuse_unarchived_removal then looks at the rows.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'audit_log' AND TG_OP = 'DELETE' AND current_setting('vouchsafe.archived_checkpoint', true) ~ '^[0-9]+$' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME;
END
$$;

CREATE FUNCTION refuse_unarchived_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT
          FROM removed AS r
         WHERE r.action <> 'codes.retrieve'
            OR NOT EXISTS (
               SELECT
                 FROM archived_checkpoints AS x
                 JOIN audit_checkpoints AS c ON c.number = x.number
                WHERE x.number = current_setting('vouchsafe.archived_checkpoint')::bigint AND r.audit_id = ANY (c.entries)
               )
    ) THEN
        RAISE EXCEPTION 'only archived reads of codes are removed from the audit log';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit_log_loses_archived_reads AFTER DELETE ON audit_log
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unarchived_removal();

-- HMACs under a key of the vault of the rows that grant access; null: none. A row without the right one grants nothing.
ALTER TABLE partners ADD COLUMN mac bytea;
ALTER TABLE credentials ADD COLUMN mac bytea;
ALTER TABLE operators ADD COLUMN mac bytea;
ALTER TABLE operator_tokens ADD COLUMN mac bytea;
ALTER TABLE operator_sessions ADD COLUMN mac bytea;
ALTER TABLE operator_sign_in_links ADD COLUMN mac bytea;
ALTER TABLE operator_identities ADD COLUMN mac bytea;

-- Whether rows without an HMAC grant nothing. A database of an earlier version has the row once `vouchsafe keys seal` has computed the HMACs of
-- its rows; the service's role cannot change it.
CREATE TABLE grant_seal (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sealed_at timestamptz NOT NULL DEFAULT now()
);

-- The account of a sandbox's first token is created with the token. One that nothing refers to grants nothing.
DELETE FROM operators
 WHERE name = 'admin'
   AND NOT EXISTS (SELECT FROM operator_tokens WHERE operator = 'admin')
   AND NOT EXISTS (SELECT FROM operator_sessions WHERE operator = 'admin')
   AND NOT EXISTS (SELECT FROM operator_sign_in_links WHERE operator = 'admin')
   AND NOT EXISTS (SELECT FROM operator_identities WHERE operator = 'admin')
   -- One that an operator has created or changed stays.
   AND NOT EXISTS (SELECT FROM audit_log WHERE subject = 'admin' AND action IN ('operator.create', 'operator.change'));

INSERT INTO grant_seal (sealed_at)
SELECT now()
 WHERE NOT EXISTS (SELECT FROM partners)
   AND NOT EXISTS (SELECT FROM operators);

-- An entry has the time of its insertion, or that of its transaction, which lasts no longer than two minutes. Only the owner of the table may
-- write another one, so the service's role cannot backdate an entry.
CREATE FUNCTION stamp_audit_entry() RETURNS trigger LANGUAGE plpgsql
-- pg_temp comes last, so that a temporary table named pg_class deceives nobody.
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_has_role(current_user, (SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.oid = TG_RELID), 'MEMBER') THEN
        NEW.at := clock_timestamp();
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_log_time BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (NEW.at NOT BETWEEN clock_timestamp() - interval '2 minutes' AND clock_timestamp())
    EXECUTE FUNCTION stamp_audit_entry();

-- `vouchsafe verify` compares the times of the entries above this one; earlier versions took some from the clocks of nodes.
CREATE TABLE audit_times_since (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    audit_id bigint NOT NULL
);
INSERT INTO audit_times_since (audit_id) SELECT COALESCE(max(audit_id), 0) FROM audit_log;

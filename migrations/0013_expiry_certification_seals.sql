-- What has expired goes out of sale. Everything of a chunk that was free and had expired before this day is out; null: it
-- was never looked through. A chunk's rows never change, so a look a day is enough.
ALTER TABLE chunks ADD COLUMN swept_before date;
CREATE INDEX chunks_to_sweep ON chunks (first_expiry, chunk_id) WHERE NOT emptied;

-- What the sandbox saw a partner do, as far as its certification asks for it: ids and hashes, never a body, a key, a
-- signature or a code. Some hundred rows a partner and point; the oldest go.
CREATE TABLE certification_observations (
    partner_id     uuid NOT NULL,
    point          text NOT NULL,
    observation_id bigint GENERATED ALWAYS AS IDENTITY,
    at             timestamptz NOT NULL,
    seen           jsonb NOT NULL,
    PRIMARY KEY (partner_id, point, observation_id)
);

-- What is looked at each second: the newest of all partners.
CREATE INDEX certification_observations_by_time ON certification_observations (at);

-- The operators' trail, sealed: a seal is the hash of the seal before it and of the entries that it names. Entries are
-- sealed after they were committed, so that nobody waits for anybody; a seal names them, since they do not become visible
-- in the order of their numbers.
CREATE TABLE audit_seals (
    seal    bigint PRIMARY KEY CHECK (seal > 0),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    entries bigint[] NOT NULL CHECK (cardinality(entries) > 0),
    hash    bytea NOT NULL CHECK (length(hash) = 32)
);
CREATE INDEX audit_seals_by_newest ON audit_seals ((entries[cardinality(entries)]));
CREATE TRIGGER audit_seals_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

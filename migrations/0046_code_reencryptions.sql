-- Requests to encrypt old codes again under a newer data key. The nodes go through the codes by their ids, in batches.
CREATE TABLE code_reencryptions (
    reencryption_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    requested_at    timestamptz NOT NULL DEFAULT now(),
    key_id          integer NOT NULL,           -- the newest data key at the request: older ones are replaced
    position        bigint NOT NULL DEFAULT 0,  -- codes up to this id are done
    codes           bigint NOT NULL DEFAULT 0,  -- encrypted again
    failures        bigint NOT NULL DEFAULT 0,  -- could not be decrypted, and stay
    ended_at        timestamptz
);
CREATE UNIQUE INDEX one_open_code_reencryption ON code_reencryptions ((ended_at IS NULL)) WHERE ended_at IS NULL;

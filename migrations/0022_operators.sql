-- Operators and their API tokens. A token's text is stored nowhere: its hash identifies it.
CREATE TABLE operators (
    name       text PRIMARY KEY,
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    disabled   boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
-- The account of the token in the settings, and of a sandbox's first token.
INSERT INTO operators (name, role) VALUES ('admin', 'admin');

CREATE TABLE operator_tokens (
    token_id     uuid PRIMARY KEY,
    operator     text NOT NULL REFERENCES operators,
    token_hash   bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz, -- null: a sandbox's first token
    last_used_at timestamptz, -- written at most once a minute
    revoked_at   timestamptz
);
CREATE INDEX operator_tokens_of_operator ON operator_tokens (operator, token_id);

-- Sessions of operators in the console, and the links that begin one. A token's text is stored nowhere: its hash identifies it.
CREATE TABLE operator_sessions (
    session_id   uuid PRIMARY KEY,
    operator     text NOT NULL REFERENCES operators,
    token_hash   bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    method       text NOT NULL CHECK (method IN ('link', 'oidc')),
    address      text NOT NULL, -- of the client that signed in
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(), -- written at most once a minute
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz -- signed out
);
CREATE INDEX operator_sessions_of_operator ON operator_sessions (operator, session_id);

-- An operator has one link at most: a new one replaces it. Its use deletes it.
CREATE TABLE operator_sign_in_links (
    operator   text PRIMARY KEY REFERENCES operators,
    token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    expires_at timestamptz NOT NULL
);

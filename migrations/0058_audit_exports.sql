-- Audit exports to HTTP endpoints: one row per endpoint, so that the nodes take turns and continue after a restart.
CREATE TABLE audit_exports (
    endpoint     text PRIMARY KEY,             -- HMAC of its URL under a key of the vault
    position     bigint NOT NULL DEFAULT 0,    -- number of the last checkpoint that the endpoint accepted
    leased_until timestamptz NOT NULL          -- until then, no other node exports
);

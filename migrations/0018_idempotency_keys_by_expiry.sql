-- no-transaction
-- Replaces a BRIN index, whose ranges never narrow: rows of every age share a page once a vacuum has made room among them.
CREATE INDEX CONCURRENTLY idempotency_keys_by_expiry ON idempotency_keys (expires_at);

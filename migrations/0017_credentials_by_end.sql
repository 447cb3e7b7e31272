-- no-transaction
CREATE INDEX CONCURRENTLY credentials_by_end ON credentials ((LEAST(revoked_at, not_after)));

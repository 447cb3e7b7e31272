-- no-transaction
-- Version 0.2.0 finds expired keys by idempotency_keys_by_expiry as well.
DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_by_age;

-- no-transaction
-- The index cost each order more CPU and WAL than the sweep that replaces it (StoredResponses::purge_expired) costs.
DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_by_expiry;

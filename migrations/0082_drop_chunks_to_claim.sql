-- no-transaction
-- Version 0.2.0 finds the chunks of a SKU by chunks_by_clearance as well, and sorts them.
DROP INDEX CONCURRENTLY IF EXISTS chunks_to_claim;

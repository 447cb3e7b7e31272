-- no-transaction
-- Stock levels read chunks_uncounted, which does not grow with what was ever sold.
DROP INDEX CONCURRENTLY IF EXISTS chunks_by_sku;

-- no-transaction
-- expand
-- Finds an order by its trace ID. Bloom filters over ranges of pages, because trace IDs of partners are random: a B-tree would write
-- 75 B of WAL and more to each order within its commit. Autovacuum adds a range once it is full: 6 B of WAL an order, none of it in the commit.
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_by_trace ON orders
 USING brin (substring(trace FROM 1 FOR 16) bytea_bloom_ops (false_positive_rate = 0.001)) WITH (pages_per_range = 16, autosummarize = on);

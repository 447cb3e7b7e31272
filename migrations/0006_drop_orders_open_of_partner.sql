-- no-transaction
-- orders_open_by_id replaces it.
DROP INDEX CONCURRENTLY IF EXISTS orders_open_of_partner;

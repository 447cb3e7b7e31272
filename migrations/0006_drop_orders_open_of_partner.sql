-- no-transaction
-- orders_open_by_id replaces it.
DROP INDEX CONCURRENTLY orders_open_of_partner;

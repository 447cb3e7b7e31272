-- no-transaction
-- The order of a voucher, by the id that the partner knows. First retrieval and return do not change the id, so their updates stay on
-- the row's page.
CREATE INDEX CONCURRENTLY allocations_by_voucher ON allocations (voucher_id) WHERE voucher_id IS NOT NULL;

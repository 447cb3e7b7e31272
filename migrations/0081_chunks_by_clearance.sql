-- no-transaction
-- Finds the chunks of a SKU that can be claimed, and those that are quarantined, without reading the others.
CREATE INDEX CONCURRENTLY chunks_by_clearance ON chunks (product_id, denomination, cleared_epoch, first_expiry NULLS LAST, chunk_id) WHERE NOT emptied;

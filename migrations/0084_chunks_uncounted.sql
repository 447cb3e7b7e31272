-- no-transaction
CREATE INDEX CONCURRENTLY chunks_uncounted ON chunks (product_id, denomination) WHERE voided IS NULL;

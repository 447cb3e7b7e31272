-- no-transaction
CREATE INDEX CONCURRENTLY chunks_by_sku ON chunks (product_id, denomination);

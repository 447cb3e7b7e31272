-- no-transaction
CREATE INDEX CONCURRENTLY chunks_to_count ON chunks (chunk_id) WHERE emptied AND voided IS NULL;

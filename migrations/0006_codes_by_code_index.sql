-- no-transaction
CREATE UNIQUE INDEX CONCURRENTLY codes_by_code_index ON codes (code_index);

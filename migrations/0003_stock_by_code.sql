-- no-transaction
CREATE INDEX CONCURRENTLY stock_by_code ON stock (code_id);

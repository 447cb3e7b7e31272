-- no-transaction
-- expand
-- Lists the entries of the audit trail without the retrievals of codes, which are most of it. A retrieval writes no entry of this index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_without_code_reads ON audit_log (audit_id) WHERE action <> 'codes.retrieve';

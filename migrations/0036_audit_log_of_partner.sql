-- no-transaction
CREATE INDEX CONCURRENTLY audit_log_of_partner ON audit_log (partner_id, audit_id) WHERE partner_id IS NOT NULL;

-- What every node has to know of, newest first: looked at each second, among codes that were retrieved and money that was
-- booked.
CREATE INDEX audit_log_of_changes ON audit_log (audit_id) WHERE action ~ '^(partner|credential|product)\.';

-- What the lists are found by. An order that is delivered at once and has no reference pays for one of these indexes,
-- that of its ledger entry's time; docs/performance.md says how much.

-- Ledger entries are booked by this database's clock, after they were decided: their ids do not tell when.
CREATE INDEX ledger_by_time ON ledger (partner_id, currency, created_at);
CREATE INDEX ledger_by_kind ON ledger (partner_id, currency, kind, created_at) WHERE kind <> 'DEBIT';

-- An order is paid by the entry that has its id, so the primary key finds it, and there is one. What else was booked for
-- the order is in the index. Not valid: entries of earlier versions have ids of their own.
ALTER TABLE ledger
  ADD CONSTRAINT debit_of_order
CHECK (kind <> 'DEBIT' OR (order_id IS NOT NULL AND transaction_id = order_id)) NOT VALID;
CREATE INDEX ledger_of_order ON ledger (partner_id, order_id) WHERE kind <> 'DEBIT';

-- An order's id is made of its created_at: a span of time is a range of the primary key, and so is the list of all. Most
-- orders are delivered, and are found on that walk.
CREATE INDEX orders_by_status ON orders (partner_id, status, order_id) WHERE status <> 'DELIVERED';
CREATE INDEX orders_by_reference ON orders (partner_id, reference, order_id) WHERE reference IS NOT NULL;

-- The operators' trail grows by what people do.
CREATE INDEX audit_log_of_operator ON audit_log (operator, audit_id);
CREATE INDEX audit_log_of_action ON audit_log (action, audit_id);
CREATE INDEX audit_log_of_subject ON audit_log (subject, audit_id);
CREATE INDEX audit_log_by_time ON audit_log (at, audit_id);

-- What the lists are found by. An order that is delivered at once and has no reference pays for none of it.

-- How many entries of a wallet were booked before a moment. They are numbered from 1 without a gap, in the order in which
-- they were booked; so halving finds it, with twenty probes among a million. Times may run against the numbers for as
-- long as a commit takes: whoever asks allows for that, and looks at the time of each entry.
CREATE FUNCTION booked_before(p_partner uuid, p_currency text, p_newest bigint, p_moment timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_before bigint := 0;
    v_from   bigint := p_newest + 1;
    v_middle bigint;
BEGIN
    WHILE v_from - v_before > 1 LOOP
        v_middle := (v_before + v_from) / 2;
        IF (
            SELECT l.created_at < p_moment
              FROM ledger AS l
             WHERE l.partner_id = p_partner AND l.currency = p_currency AND l.sequence = v_middle
        ) THEN
            v_before := v_middle;
        ELSE
            v_from := v_middle;
        END IF;
    END LOOP;
    RETURN v_before;
END
$$;

-- What is no debit is little.
CREATE INDEX ledger_by_kind ON ledger (partner_id, currency, kind, sequence) WHERE kind <> 'DEBIT';

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

-- no-transaction
-- Payouts that wait for an operator, to count them.
CREATE INDEX CONCURRENTLY payouts_pending ON payouts (payout_id) WHERE status = 'PENDING';

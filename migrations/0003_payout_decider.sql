-- Who may decide on a pending payout: `operator` once one has read its destination or begun to record its payment, `partner` once it is
-- being cancelled; null until then. Older payouts belong to operators, who may have begun to transfer the money.
ALTER TABLE payouts ADD COLUMN decider text DEFAULT 'operator';
ALTER TABLE payouts ALTER COLUMN decider DROP DEFAULT;

-- Running totals of the orders that a wallet has paid, per second, for the order rate of caps (record_order_totals_v1). The orders of a window
-- are the difference of two of them, however many there are. The totals begin at an entry before the oldest window.
CREATE TABLE order_totals (
    partner_id uuid NOT NULL,
    currency   text NOT NULL,
    at         timestamptz NOT NULL, -- second of the last entry; '-infinity': where the totals begin
    sequence   bigint NOT NULL,      -- last ledger entry that is counted
    orders     bigint NOT NULL CHECK (orders >= 0),
    total      bigint NOT NULL CHECK (total >= 0), -- minor units
    PRIMARY KEY (partner_id, currency, at)
) WITH (fillfactor = 50); -- each batch of a second updates its row
-- For their purge. A B-tree has the order of the totals of one wallet, too: to find the last one, the planner would read those of all.
CREATE INDEX order_totals_by_time ON order_totals USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
-- Where an order rate was set by a version between releases, orders count from now on.
INSERT INTO order_totals (partner_id, currency, at, sequence, orders, total)
SELECT w.partner_id, w.currency, '-infinity', w.sequence, 0, 0
  FROM wallets AS w
  JOIN partners AS p ON p.partner_id = w.partner_id
 WHERE p.caps ? 'approval_over';

-- no-transaction
-- The order of a voucher, by the id that the partner knows, for an operator's rare search. A BRIN index, because a B-tree would add
-- 75 B of WAL to each voucher sold. Ids begin with the time of the sale, so a range of pages has few of them; first retrieval and
-- return may move rows to other pages, for which a range keeps several intervals.
CREATE INDEX CONCURRENTLY allocations_by_voucher ON allocations USING brin (voucher_id uuid_minmax_multi_ops) WITH (pages_per_range = 2, autosummarize = on);

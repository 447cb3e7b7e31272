-- expand
-- The trace of the request that placed an order, and how long each step before its commit took. Null for orders of earlier
-- programs. No default: orders are written by commit_batch_v2 with all four.
ALTER TABLE orders
    ADD COLUMN trace_id     uuid,
    ADD COLUMN admission_us integer,
    ADD COLUMN holds_us     integer,
    ADD COLUMN queue_us     integer;

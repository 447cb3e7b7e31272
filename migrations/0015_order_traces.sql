-- expand
-- The trace of the request that placed an order, and how long each step before its commit took: 16 bytes of the trace ID, then the microseconds
-- of admission, holds and the wait for the commit, each a big-endian integer of 4 bytes. Null for orders of earlier programs. One column, because
-- each parameter of commit_batch costs every order.
ALTER TABLE orders ADD COLUMN trace bytea;

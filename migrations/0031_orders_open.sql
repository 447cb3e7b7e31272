-- no-transaction
-- Orders that wait for something, to count them by reason. An order that is delivered at once is never in it.
CREATE INDEX CONCURRENTLY orders_open ON orders (pending_reason) WHERE NOT closed;

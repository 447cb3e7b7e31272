-- no-transaction
-- The orders that are due, of whatever SKU: one of which none is due costs nothing.
CREATE INDEX CONCURRENTLY order_demands_by_time ON order_demands (next_at);

-- no-transaction
-- Orders that changed after they were placed. An order that is delivered at once is not among them, and costs nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_changed ON orders (partner_id, updated_at) WHERE updated_at > created_at;

-- no-transaction
-- Erased orders, whose events are read without their texts.
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_erased ON orders (partner_id, order_id) WHERE erased_at IS NOT NULL;

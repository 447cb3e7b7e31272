-- no-transaction
-- Lists the orders of a partner of which something is still to be delivered, and counts them as orders_open_of_partner does.
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_open_by_id ON orders (partner_id, order_id) WHERE NOT closed;

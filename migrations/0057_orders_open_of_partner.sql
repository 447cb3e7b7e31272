-- no-transaction
-- Orders of a partner that wait for something, to count them. An order that is delivered at once is never in it.
CREATE INDEX CONCURRENTLY orders_open_of_partner ON orders (partner_id) WHERE NOT closed;

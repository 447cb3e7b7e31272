-- no-transaction
CREATE INDEX CONCURRENTLY events_of_change ON events (partner_id, order_id) WHERE first_sequence > 1;

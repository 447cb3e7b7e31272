-- no-transaction
-- Rows that a failing endpoint attempts, those whose time ends first before the others.
CREATE INDEX CONCURRENTLY deliveries_by_end ON deliveries (partner_id, webhook_id, give_up_at, number)
 WHERE state = 'WAITING' AND next_at < 'infinity';

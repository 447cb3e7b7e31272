-- Caps that override the service's settings; null: none.
ALTER TABLE partners ADD COLUMN caps jsonb;

-- Caps that override the service's settings. Null: those of the settings apply; an empty object: none apply.
ALTER TABLE partners ADD COLUMN caps jsonb;

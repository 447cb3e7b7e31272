-- HMAC of number, time and hash under a key of the vault; null: written by version 0.2.0.
ALTER TABLE audit_checkpoints ADD COLUMN mac bytea;

-- A credential names the one that it came from by rotation also after that one was purged: the HMAC of the row covers the name.
ALTER TABLE credentials DROP CONSTRAINT credentials_rotated_from_fkey;

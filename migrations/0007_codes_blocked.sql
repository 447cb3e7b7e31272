-- Whether a suspended partner may not even read the codes of its orders.
ALTER TABLE partners ADD COLUMN codes_blocked boolean NOT NULL DEFAULT false;

-- Who vouchers are bought from. The credential is sealed by a data key, like codes are, and never leaves but for the
-- vendor itself.
CREATE TABLE vendors (
    vendor_id   text PRIMARY KEY,
    adapter     text NOT NULL CHECK (adapter IN ('mock', 'http', 'manual')),
    url         text,
    key_id      integer,
    nonce       bytea CHECK (length(nonce) = 12),
    ciphertext  bytea,
    concurrency integer NOT NULL CHECK (concurrency > 0),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    -- Who is spoken to has a place and a credential, nobody else has either.
    CHECK ((adapter = 'http') = (url IS NOT NULL)),
    CHECK ((adapter = 'http') = (key_id IS NOT NULL)),
    CHECK (num_nulls(key_id, nonce, ciphertext) IN (0, 3))
);

-- A sandbox that was filled before there were vendors has the products of this one.
INSERT INTO vendors (vendor_id, adapter, concurrency)
SELECT 'mock', 'mock', 4
  FROM deployment
 WHERE environment = 'sandbox';

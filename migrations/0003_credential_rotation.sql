-- Rotation by the partner: which credential asked for which, and whether the new one was ever used. An unused one is
-- taken back when the same credential asks again, because then the answer that named it was lost.
ALTER TABLE credentials
    ADD COLUMN rotated_from  uuid REFERENCES credentials,
    ADD COLUMN rotated_at    timestamptz,
    ADD COLUMN first_used_at timestamptz;

-- The first use is kept for credentials that came from a rotation; nobody asks for it with the others.
ALTER TABLE credentials
    ADD CONSTRAINT first_use_of_rotated CHECK (first_used_at IS NULL OR rotated_from IS NOT NULL);

CREATE INDEX credentials_rotated_from ON credentials (rotated_from) WHERE rotated_from IS NOT NULL;

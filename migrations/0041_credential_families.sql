-- Families of credentials: a credential and all that came from it by rotation, which share their rate limits. family_id is the first
-- of them. It is null on rows that version 0.2.0 wrote: family_of_credential_v1 finds it. issued_at is the time by the database's
-- clock, null on rows from before this migration; it counts the rotations of a day.
ALTER TABLE credentials
    ADD COLUMN family_id uuid,
    ADD COLUMN issued_at timestamptz,
    ALTER COLUMN issued_at SET DEFAULT clock_timestamp();

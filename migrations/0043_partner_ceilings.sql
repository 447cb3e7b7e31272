-- Rate limits of all credentials of a partner together, by class, in the form of limits. Null is none, also on rows that version 0.2.0 writes.
ALTER TABLE partners ADD COLUMN ceilings jsonb;

-- Deliveries after a restore or a failover: events that the database has lost were delivered, and their numbers are given again.

-- Replaced by each quarantine, so by each change of the server after which commits may be missing. Random: an epoch that was lost is
-- counted again.
ALTER TABLE continuity ADD COLUMN history uuid NOT NULL DEFAULT gen_random_uuid();

-- The history in which the lease was acquired; null: by a version without this column. In another one its holder writes nothing.
ALTER TABLE webhook_progress ADD COLUMN lease_history uuid;

-- A requested retry of everything that waits for an endpoint: events up to this number are attempted even while it fails.
ALTER TABLE webhook_progress ADD COLUMN retry_to bigint NOT NULL DEFAULT 0;

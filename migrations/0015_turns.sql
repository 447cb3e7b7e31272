-- A turn that is written again, because nobody knows whether it was written, counts its attempts once.
ALTER TABLE webhook_progress ADD COLUMN turn bigint NOT NULL DEFAULT 0; -- the last under its lease that was counted

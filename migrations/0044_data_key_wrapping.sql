-- Which wrapping key encrypts the data key, null: some master key, as version 0.2.0 wrote it; and from which number of codes on the key is
-- used, with the number of old codes that were encrypted again under it.
ALTER TABLE data_keys
    ADD COLUMN wrapped_by   text,
    ADD COLUMN codes_before bigint NOT NULL DEFAULT 0,
    ADD COLUMN reencrypted  bigint NOT NULL DEFAULT 0;

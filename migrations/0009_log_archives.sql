-- Months of logs that `vouchsafe archive` has written to files. The service reads this table and never writes it.
CREATE TABLE log_archives (
    log              text NOT NULL,
    month            date NOT NULL CHECK (extract(day FROM month) = 1), -- UTC
    rows             bigint NOT NULL CHECK (rows >= 0),
    bytes            bigint NOT NULL CHECK (bytes >= 0), -- compressed
    manifest         bytea NOT NULL CHECK (length(manifest) = 32), -- SHA-256 of the manifest, which has those of the files
    archived_at      timestamptz NOT NULL DEFAULT now(),
    removal_began_at timestamptz, -- the files may be the only copy of the month: they are never written again
    removed_at       timestamptz,
    PRIMARY KEY (log, month),
    CHECK (removed_at IS NULL OR removal_began_at IS NOT NULL)
);

-- Stock is quarantined by comparison: a chunk that was cleared before the last quarantine is not sold. The detection of a lost commit
-- writes one row, however much stock there is. Stock that is quarantined during this migration has to be released again.
ALTER TABLE continuity ADD COLUMN quarantine_epoch bigint NOT NULL DEFAULT 0; -- number of quarantines
UPDATE continuity SET quarantine_epoch = 1 WHERE quarantined_at IS NOT NULL;

-- A constant default: the table is not rewritten.
ALTER TABLE chunks
    DROP COLUMN quarantined,
    ADD COLUMN cleared_epoch bigint NOT NULL DEFAULT 0; -- below continuity.quarantine_epoch: the chunk is quarantined, unless emptied

-- Epoch of a new chunk, whose vouchers were not sold on a lost timeline. A quarantine waits until the chunk is visible, or the chunk has
-- its epoch: a release would else miss a chunk with the epoch before.
CREATE FUNCTION new_chunk_epoch() RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    v_epoch bigint;
BEGIN
    SELECT q.quarantine_epoch INTO v_epoch FROM continuity AS q WHERE q.only_row FOR SHARE;
    RETURN COALESCE(v_epoch, 0);
END
$$;
ALTER TABLE chunks ALTER COLUMN cleared_epoch SET DEFAULT new_chunk_epoch();

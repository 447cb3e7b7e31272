-- Number of quarantines. A chunk with free vouchers is for sale if its cleared_epoch is this number, else quarantined.
--
-- Write (SELECT quarantine_epoch_v1()) where a statement reads several chunks: it is then called once.
CREATE OR REPLACE FUNCTION quarantine_epoch_v1() RETURNS bigint LANGUAGE sql STABLE
AS $$
    SELECT COALESCE((SELECT q.quarantine_epoch FROM continuity AS q WHERE q.only_row), 0)
$$;

-- The vouchers in a range of stock ids that can be sold: nobody has them, and they are valid on the day asked about.
--
-- Whoever asks about many chunks calls this for each: a join over them all would be planned for tables as large as they
-- are, and read them whole to find one voucher.
CREATE OR REPLACE FUNCTION free_stock(p_first bigint, p_last bigint, p_valid_on date)
RETURNS TABLE (stock_id bigint, expiry date)
LANGUAGE plpgsql STABLE ROWS 250 COST 1000
-- The range of the one index beside the range of the other, whatever the tables' sizes were when this was planned. On
-- tables that were empty then, a nested loop is chosen, which compares each voucher of a chunk with each that was sold.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_nestloop = off
SET enable_mergejoin = on
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT s.stock_id, s.expiry
      FROM stock AS s
     WHERE s.stock_id BETWEEN p_first AND p_last
       AND (s.expiry IS NULL OR s.expiry >= p_valid_on)
       AND NOT EXISTS (
            -- The range again: with it, any way of joining stays within it.
            SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id AND a.stock_id BETWEEN p_first AND p_last
            );
END
$$;

-- Vouchers in a range of stock ids that can be sold: not allocated, and valid on p_valid_on.
--
-- Call it once per chunk: a join over many chunks would be planned for the size of the tables and read them whole.
CREATE OR REPLACE FUNCTION free_stock_v1(p_first bigint, p_last bigint, p_valid_on date)
RETURNS TABLE (stock_id bigint, expiry date)
LANGUAGE plpgsql STABLE ROWS 250 COST 1000
-- Forces a merge join of two index ranges, whatever the table sizes were at plan time. On tables that were empty then, the
-- planner picks a nested loop that compares each voucher of the chunk with each sold one.
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
            -- Repeats the range so that every join method stays within it.
            SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id AND a.stock_id BETWEEN p_first AND p_last
            );
END
$$;

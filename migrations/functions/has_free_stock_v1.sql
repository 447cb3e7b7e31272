-- Whether a range of stock ids has a voucher that can be sold. Stops at the first one.
CREATE OR REPLACE FUNCTION has_free_stock_v1(p_first bigint, p_last bigint, p_valid_on date)
RETURNS boolean
LANGUAGE plpgsql STABLE COST 1000
-- Planner settings as in free_stock_v1; callers may have merge joins disabled.
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
    RETURN EXISTS (
        SELECT
          FROM stock AS s
         WHERE s.stock_id BETWEEN p_first AND p_last
           AND (s.expiry IS NULL OR s.expiry >= p_valid_on)
           AND NOT EXISTS (
                SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id AND a.stock_id BETWEEN p_first AND p_last
                )
    );
END
$$;

-- Free vouchers of chunks, whatever their expiry: one row per chunk that has any, in the order of p_chunks, with the stock ids
-- ascending.
--
-- Two arrays per chunk: one row per voucher would cost the server and the client more than finding the vouchers.
CREATE OR REPLACE FUNCTION list_free_stock_v1(p_chunks bigint[], p_firsts bigint[], p_lasts bigint[])
RETURNS TABLE (chunk_id bigint, stock_ids bigint[], expiries date[])
LANGUAGE plpgsql STABLE ROWS 16 COST 10000
-- Planner settings as in free_stock_v1.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_nestloop = off
SET enable_mergejoin = on
SET jit = off
AS $$
DECLARE
    p_first bigint;
    p_last bigint;
BEGIN
    FOR place IN 1 .. cardinality(p_chunks) LOOP
        p_first := p_firsts[place];
        p_last := p_lasts[place];
        SELECT array_agg(s.stock_id), array_agg(s.expiry)
          INTO stock_ids, expiries
          FROM stock AS s
         WHERE s.stock_id BETWEEN p_first AND p_last
           AND NOT EXISTS (
                SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id AND a.stock_id BETWEEN p_first AND p_last
                );
        IF stock_ids IS NOT NULL THEN
            chunk_id := p_chunks[place];
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

-- When the first voucher expires of the chunk that a node would claim next: one that could be claimed, is not loaded, and
-- has something to sell. No row: there is none.
CREATE OR REPLACE FUNCTION next_to_claim(
    p_node text,
    p_product text,
    p_denomination bigint,
    p_valid_on date,
    p_loaded bigint[]
)
RETURNS TABLE (first_expiry date)
LANGUAGE plpgsql STABLE ROWS 1 COST 1000
-- As in take_chunks: a plan that sorts looks into each chunk of the SKU before it says which is the first.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT c.first_expiry
      FROM chunks AS c
      LEFT JOIN nodes AS n ON n.node = c.node
     WHERE c.product_id = p_product
       AND c.denomination = p_denomination
       AND NOT c.emptied
       AND c.purchase_id IS NULL
       AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
       AND NOT c.chunk_id = ANY (p_loaded)
       AND (c.node IS NULL OR c.node = p_node OR n.lease_until < clock_timestamp())
       AND has_free_stock(c.first_stock_id, c.last_stock_id, p_valid_on)
     ORDER BY c.first_expiry NULLS LAST, c.chunk_id
     LIMIT 1;
END
$$;

-- When the first voucher expires of the chunk that a node would claim next of a SKU: one that could be claimed, is not
-- loaded, and has something to sell. Requests come as they do to take_chunks; one that has no row has no such chunk.
CREATE OR REPLACE FUNCTION next_to_claim(
    p_node text,
    p_products text[],
    p_denominations bigint[],
    p_valid_on date[],
    p_loaded bigint[],
    p_loaded_to integer[]
)
RETURNS TABLE (request integer, first_expiry date)
LANGUAGE plpgsql STABLE ROWS 16 COST 1000
-- As in take_chunks: a plan that sorts looks into each chunk of the SKU before it says which is the first.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_product text;
    v_denomination bigint;
    v_valid_on date;
    v_loaded bigint[];
    v_loaded_to integer := 0;
BEGIN
    FOR place IN 1 .. cardinality(p_products) LOOP
        v_product := p_products[place];
        v_denomination := p_denominations[place];
        v_valid_on := p_valid_on[place];
        v_loaded := p_loaded[v_loaded_to + 1 : p_loaded_to[place]];
        v_loaded_to := p_loaded_to[place];
        SELECT place, c.first_expiry
          INTO request, first_expiry
          FROM chunks AS c
          LEFT JOIN nodes AS n ON n.node = c.node
         WHERE c.product_id = v_product
           AND c.denomination = v_denomination
           AND NOT c.emptied
           AND c.purchase_id IS NULL
           AND (c.last_expiry IS NULL OR c.last_expiry >= v_valid_on)
           AND NOT c.chunk_id = ANY (v_loaded)
           AND (c.node IS NULL OR c.node = p_node OR n.lease_until < clock_timestamp())
           AND has_free_stock(c.first_stock_id, c.last_stock_id, v_valid_on)
         ORDER BY c.first_expiry NULLS LAST, c.chunk_id
         LIMIT 1;
        IF FOUND THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

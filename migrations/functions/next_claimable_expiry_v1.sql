-- First expiry of the chunk that a node would claim next for a SKU: claimable, not loaded yet, and with free vouchers.
-- Takes requests in the same arrays as claim_chunks_v1; a request without such a chunk returns no row.
CREATE OR REPLACE FUNCTION next_claimable_expiry_v1(
    p_node text,
    p_products text[],
    p_denominations bigint[],
    p_valid_on date[],
    p_loaded bigint[],
    p_loaded_to integer[]
)
RETURNS TABLE (request integer, first_expiry date)
LANGUAGE plpgsql STABLE ROWS 16 COST 1000
-- Planner settings as in claim_chunks_v1: a plan that sorts would inspect every chunk of the SKU to find the first one.
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
    v_epoch bigint := quarantine_epoch_v1();
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
           AND c.reservation_id IS NULL
           AND c.cleared_epoch = v_epoch
           AND (c.last_expiry IS NULL OR c.last_expiry >= v_valid_on)
           AND NOT c.chunk_id = ANY (v_loaded)
           AND (c.node IS NULL OR c.node = p_node
                OR n.incarnation <> c.incarnation OR NOT is_lease_live_v1(n.lease_until, n.renewed_at))
           AND has_free_stock_v1(c.first_stock_id, c.last_stock_id, v_valid_on)
         ORDER BY c.first_expiry NULLS LAST, c.chunk_id
         LIMIT 1;
        IF FOUND THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

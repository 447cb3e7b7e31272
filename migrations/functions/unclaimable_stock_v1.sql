-- Sellable stock of a SKU that a node cannot claim now: 'reserved' waits for the orders of the SKU, 'owned' belongs to
-- another node, null means none. Stock reserved for an open purchase belongs to that purchase's order and does not count.
CREATE OR REPLACE FUNCTION unclaimable_stock_v1(p_node text, p_product text, p_denomination bigint, p_valid_on date)
RETURNS text
LANGUAGE plpgsql STABLE COST 1000
-- Planner settings as in claim_chunks_v1.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    -- ORDER BY matches the SKU's index, so the planner reads that index and no other.
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.reservation_id IS NOT NULL
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND CASE WHEN EXISTS (SELECT FROM purchases AS p WHERE p.purchase_id = c.reservation_id AND NOT p.ended) THEN false
                 ELSE has_free_stock_v1(c.first_stock_id, c.last_stock_id, p_valid_on)
            END
      ORDER BY c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'reserved';
    END IF;
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.reservation_id IS NULL
        AND c.node <> p_node
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND has_free_stock_v1(c.first_stock_id, c.last_stock_id, p_valid_on)
      ORDER BY c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'owned';
    END IF;
    RETURN NULL;
END
$$;

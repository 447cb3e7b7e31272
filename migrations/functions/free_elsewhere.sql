-- Where there is something of a SKU to sell that a node cannot claim now: 'kept' for whoever waits for it, 'owned' by
-- another node; null: nowhere. What is kept for the order of a purchase that goes on is that order's.
CREATE OR REPLACE FUNCTION free_elsewhere(p_node text, p_product text, p_denomination bigint, p_valid_on date)
RETURNS text
LANGUAGE plpgsql STABLE COST 1000
-- As in take_chunks.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    -- The order is that of the SKU's index, so that this one is read and no other.
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.purchase_id IS NOT NULL
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND CASE WHEN EXISTS (SELECT FROM purchases AS p WHERE p.purchase_id = c.purchase_id AND NOT p.ended) THEN false
                 ELSE has_free_stock(c.first_stock_id, c.last_stock_id, p_valid_on)
            END
      ORDER BY c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'kept';
    END IF;
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.purchase_id IS NULL
        AND c.node <> p_node
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND has_free_stock(c.first_stock_id, c.last_stock_id, p_valid_on)
      ORDER BY c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'owned';
    END IF;
    RETURN NULL;
END
$$;

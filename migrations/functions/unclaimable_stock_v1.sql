-- Sellable stock of a SKU that a node has not loaded and could not claim: 'reserved' waits for the orders of the SKU, 'owned' is
-- what other nodes own or have released since, 'quarantined' is what an operator has to release, null means none. Stock reserved
-- for an open purchase belongs to that purchase's order and does not count.
--
-- Counts every chunk that the node has not loaded, of any owner: a chunk that its owner releases between two statements of a claim
-- would be missed otherwise, and the SKU taken for sold out.
CREATE OR REPLACE FUNCTION unclaimable_stock_v1(p_product text, p_denomination bigint, p_valid_on date, p_loaded bigint[])
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
DECLARE
    v_epoch bigint := quarantine_epoch_v1();
BEGIN
    -- ORDER BY matches the SKU's index, so the planner reads that index and no other.
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.reservation_id IS NOT NULL
        AND c.cleared_epoch = v_epoch
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
        AND c.cleared_epoch = v_epoch
        AND NOT c.chunk_id = ANY (p_loaded)
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND has_free_stock_v1(c.first_stock_id, c.last_stock_id, p_valid_on)
      ORDER BY c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'owned';
    END IF;
    PERFORM
       FROM chunks AS c
      WHERE c.product_id = p_product
        AND c.denomination = p_denomination
        AND NOT c.emptied
        AND c.cleared_epoch < v_epoch
        AND (c.last_expiry IS NULL OR c.last_expiry >= p_valid_on)
        AND has_free_stock_v1(c.first_stock_id, c.last_stock_id, p_valid_on)
      ORDER BY c.cleared_epoch, c.first_expiry NULLS LAST, c.chunk_id
      LIMIT 1;
    IF FOUND THEN
        RETURN 'quarantined';
    END IF;
    RETURN NULL;
END
$$;

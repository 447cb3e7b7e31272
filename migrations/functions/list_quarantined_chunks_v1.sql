-- Up to p_limit quarantined chunks, for an epoch of quarantine_epoch_v1, except those of the SKUs in p_kept_products and
-- p_kept_denominations. Visits one index entry of each SKU and of each chunk that it returns, whatever the number of chunks.
CREATE OR REPLACE FUNCTION list_quarantined_chunks_v1(
    p_epoch bigint,
    p_kept_products text[],
    p_kept_denominations bigint[],
    p_limit bigint
)
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE ROWS 1000 COST 10000
-- Index scans that end early, whatever the table sizes were at plan time.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
    v_sku record;
    v_product text := '';
    v_denomination bigint := 0;
    v_limit bigint := p_limit;
    v_count bigint;
BEGIN
    LOOP
        -- The chunk of the next SKU that was cleared first.
        SELECT c.product_id, c.denomination, c.cleared_epoch
          INTO v_sku
          FROM chunks AS c
         WHERE NOT c.emptied
           AND (c.product_id, c.denomination) > (v_product, v_denomination)
         ORDER BY c.product_id, c.denomination, c.cleared_epoch
         LIMIT 1;
        EXIT WHEN NOT FOUND;
        v_product := v_sku.product_id;
        v_denomination := v_sku.denomination;
        CONTINUE WHEN v_sku.cleared_epoch >= p_epoch
                   OR (v_product, v_denomination) IN (SELECT * FROM unnest(p_kept_products, p_kept_denominations));
        RETURN QUERY
        SELECT c.chunk_id
          FROM chunks AS c
         WHERE c.product_id = v_product
           AND c.denomination = v_denomination
           AND NOT c.emptied
           AND c.cleared_epoch < p_epoch
         ORDER BY c.cleared_epoch, c.first_expiry NULLS LAST, c.chunk_id
         LIMIT v_limit;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_limit := v_limit - v_count;
        EXIT WHEN v_limit = 0;
    END LOOP;
END
$$;

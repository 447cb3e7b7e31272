-- Claims chunks of SKUs for one incarnation of a node: chunks without an owner, chunks of ended incarnations, and chunks whose
-- owner's lease has expired; with p_takeover also chunks of live nodes, whose commits then reject what they sell of them. Earliest
-- expiry first. Skips chunks that another transaction has locked, and SKUs for which another node has waited longer.
--
-- Each request is one element of the arrays; `request` returns its number (from 1). It ends when its chunks have room for p_quantities
-- vouchers, sold ones included, or at p_limit chunks. While no other node is live, it claims p_alone vouchers at least: nobody else can
-- sell them, and claims are rarer. p_loaded concatenates the chunks that each request has loaded already; p_loaded_to holds the end of
-- each request's part.
--
-- Read the free vouchers of the chunks in a later statement: only that one sees what the previous owner committed before it
-- lost the chunk.
CREATE OR REPLACE FUNCTION claim_chunks_v1(
    p_node text,
    p_incarnation bigint,
    p_products text[],
    p_denominations bigint[],
    p_valid_on date[],
    p_quantities bigint[],
    p_alone bigint,
    p_limit bigint,
    p_loaded bigint[],
    p_loaded_to integer[],
    p_takeover boolean,
    p_demand_validity interval
)
RETURNS TABLE (request integer, chunk_id bigint, first_stock_id bigint, last_stock_id bigint)
LANGUAGE plpgsql ROWS 16 COST 1000
-- Reads chunks in index order up to the limit, whatever the table sizes were at plan time.
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
    v_quantity bigint;
    v_epoch bigint := quarantine_epoch_v1();
    v_minimum bigint := 0;
    -- A cursor fetches, and locks, one chunk at a time; a loop over the query itself would lock ten ahead.
    v_chunks CURSOR FOR
        SELECT c.chunk_id, c.first_stock_id, c.last_stock_id
          FROM chunks AS c
          LEFT JOIN nodes AS n ON n.node = c.node
         WHERE c.product_id = v_product
           AND c.denomination = v_denomination
           AND NOT c.emptied
           AND c.reservation_id IS NULL
           AND c.cleared_epoch = v_epoch
           AND (c.last_expiry IS NULL OR c.last_expiry >= v_valid_on)
           AND NOT c.chunk_id = ANY (v_loaded)
           AND (c.node IS NULL OR c.node = p_node OR p_takeover
                OR n.incarnation <> c.incarnation OR NOT is_lease_live_v1(n.lease_until, n.renewed_at))
           AND EXISTS (SELECT FROM nodes AS me WHERE me.node = p_node AND me.incarnation = p_incarnation)
         ORDER BY c.first_expiry NULLS LAST, c.chunk_id
         LIMIT p_limit
           FOR NO KEY UPDATE OF c SKIP LOCKED;
BEGIN
    IF NOT EXISTS (
       SELECT FROM nodes AS n WHERE n.node <> p_node AND is_lease_live_v1(n.lease_until, n.renewed_at)
    ) THEN
        v_minimum := p_alone;
    END IF;
    FOR place IN 1 .. cardinality(p_products) LOOP
        request := place;
        v_product := p_products[place];
        v_denomination := p_denominations[place];
        v_valid_on := p_valid_on[place];
        v_quantity := GREATEST(p_quantities[place], v_minimum);
        v_loaded := p_loaded[v_loaded_to + 1 : p_loaded_to[place]];
        v_loaded_to := p_loaded_to[place];
        CONTINUE WHEN is_other_node_first_v1(p_node, v_product, v_denomination, p_demand_validity);
        FOR v_chunk IN v_chunks LOOP
            chunk_id := v_chunk.chunk_id;
            first_stock_id := v_chunk.first_stock_id;
            last_stock_id := v_chunk.last_stock_id;
            -- One UPDATE per chunk: the planner may turn a join with the locked rows into a scan of the table.
            UPDATE chunks AS c
               SET node = p_node, incarnation = p_incarnation
             WHERE c.chunk_id = claim_chunks_v1.chunk_id;
            RETURN NEXT;
            v_quantity := v_quantity - (last_stock_id - first_stock_id + 1);
            EXIT WHEN v_quantity <= 0;
        END LOOP;
    END LOOP;
END
$$;

-- Whether another node demands a SKU for longer than this node, which may not demand it at all. Its claims come first. A demand
-- renewed more than 10 seconds ahead of the clock does not count: the clock was set back since.
CREATE OR REPLACE FUNCTION is_other_node_first_v1(p_node text, p_product text, p_denomination bigint, p_validity interval)
RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT
          FROM stock_demands AS d
         WHERE d.product_id = p_product
           AND d.denomination = p_denomination
           AND d.node <> p_node
           AND d.renewed_at BETWEEN clock_timestamp() - p_validity AND clock_timestamp() + interval '10 seconds'
           AND NOT EXISTS (
                SELECT
                  FROM stock_demands AS own
                 WHERE own.product_id = p_product
                   AND own.denomination = p_denomination
                   AND own.node = p_node
                   AND own.renewed_at BETWEEN clock_timestamp() - p_validity AND clock_timestamp() + interval '10 seconds'
                   AND (own.demanded_at, own.node) < (d.demanded_at, d.node)
                )
    )
$$;

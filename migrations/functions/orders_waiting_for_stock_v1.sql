-- Orders that wait for vouchers of a SKU, oldest first, after p_after. Incoming stock is reserved for them before it goes on
-- sale.
--
-- The partial index on waiting orders is in this order, so p_limit = 1 stops at the first match.
CREATE OR REPLACE FUNCTION orders_waiting_for_stock_v1(p_product text, p_denomination bigint, p_after uuid, p_limit integer)
RETURNS TABLE (partner_id uuid, order_id uuid)
LANGUAGE plpgsql STABLE ROWS 1 COST 1000
-- Plans must stay index probes, whatever the table sizes were at plan time.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_sort = off
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT o.partner_id, o.order_id
      FROM orders AS o
     WHERE o.pending_reason = 'VENDOR'
       AND NOT o.closed
       AND o.order_id > COALESCE(p_after, '00000000-0000-0000-0000-000000000000'::uuid)
       AND EXISTS (
            SELECT
              FROM jsonb_array_elements(o.lines::jsonb) AS l
             WHERE l ->> 'p' = p_product
               AND (l ->> 'd')::bigint = p_denomination
               AND (l ->> 'q')::integer > (l ->> 'a')::integer + COALESCE((l ->> 'f')::integer, 0)
            )
     ORDER BY o.order_id
     LIMIT p_limit;
END
$$;

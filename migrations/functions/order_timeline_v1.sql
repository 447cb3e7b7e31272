-- The timeline of an order. The column is null while the order stands as it was placed, at created_at.
CREATE OR REPLACE FUNCTION order_timeline_v1(p_order orders)
RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT COALESCE(
            p_order.timeline,
            jsonb_build_array(jsonb_build_object(
                'status', p_order.status, 'at', p_order.created_at, 'by', 'partner', 'reason', NULL
            ))
           )
$$;

-- Demands of the orders that wait already. The lock keeps a concurrent change of an order from being overtaken; a commit that
-- changes a waiting order waits until this statement ends.
INSERT INTO order_demands (product_id, denomination, order_id, partner_id, accepted_at)
SELECT DISTINCT l ->> 'p', (l ->> 'd')::bigint, o.order_id, o.partner_id, o.created_at
  FROM (SELECT * FROM orders WHERE pending_reason = 'VENDOR' AND NOT closed FOR SHARE) AS o
 CROSS JOIN LATERAL jsonb_array_elements(o.lines::jsonb) AS l
 WHERE (l ->> 'q')::integer > (l ->> 'a')::integer + COALESCE((l ->> 'f')::integer, 0)
ON CONFLICT DO NOTHING;

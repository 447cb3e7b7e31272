-- Inserts chunks $1 to $2 (from 1). Orders consume the vouchers with the lowest numbers, so the first chunks are empty.
INSERT INTO chunks (chunk_id, product_id, denomination, first_stock_id, last_stock_id, emptied)
OVERRIDING SYSTEM VALUE
SELECT plan.first_chunk + number - 1,
       'grown-' || lpad(((number - 1) % plan.skus)::text, 5, '0'),
       2500,
       plan.first_stock + (number - 1) * plan.chunk,
       plan.first_stock + LEAST(number * plan.chunk, plan.orders + plan.vouchers) - 1,
       number * plan.chunk <= plan.orders
  FROM plan
 CROSS JOIN generate_series($1::bigint, $2::bigint) AS number

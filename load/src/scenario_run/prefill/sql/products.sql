-- Inserts products $1 to $2 (from 1), each with one SKU.
INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations, expiry_policy,
                      redemption, route, approval, returnable, min_validity_days, low_stock_at, discontinued)
SELECT 'grown-' || lpad((sku - 1)::text, 5, '0'), 'Prefilled product', 'grown', 'retail', 'manual', 'USD', '{US}',
       '{2500}', '{"type": "NONE", "value": null}', '{"terms": "", "instructions": ""}', 'stock', 'rule', false, 0, 20,
       false
  FROM generate_series($1::bigint, $2::bigint) AS sku

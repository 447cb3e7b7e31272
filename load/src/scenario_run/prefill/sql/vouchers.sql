-- Inserts vouchers $1 to $2 (from 1): stock rows, and codes whose ciphertext has the usual length but cannot be decrypted.
WITH numbered AS MATERIALIZED (
    SELECT plan.*,
           number,
           (number - 1) / plan.chunk AS chunk_index,
           sha256(convert_to('grown code ' || number, 'UTF8')) AS digest
      FROM plan
     CROSS JOIN generate_series($1::bigint, $2::bigint) AS number
), put_codes AS (
    INSERT INTO codes (code_id, product_id, denomination, blind_index, code_index, key_id, nonce, ciphertext)
    SELECT first_code + number - 1, 'grown-' || lpad((chunk_index % skus)::text, 5, '0'), 2500, digest, digest, key_id,
           substring(digest FROM 1 FOR 12), digest || substring(digest FROM 1 FOR 11)
      FROM numbered
)
INSERT INTO stock (stock_id, chunk_id, code_id)
SELECT first_stock + number - 1, first_chunk + chunk_index, first_code + number - 1
  FROM numbered

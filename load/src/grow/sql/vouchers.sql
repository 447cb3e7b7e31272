-- Vouchers $1 to $2, counted from 1: their codes, which nobody can read, as wide as real ones; and their stock rows.
WITH there AS MATERIALIZED (
    SELECT plan.*,
           number,
           (number - 1) / plan.chunk AS place,
           sha256(convert_to('grown code ' || number, 'UTF8')) AS digest
      FROM plan
     CROSS JOIN generate_series($1::bigint, $2::bigint) AS number
), put_codes AS (
    INSERT INTO codes (code_id, product_id, denomination, blind_index, key_id, nonce, ciphertext)
    SELECT first_code + number - 1, 'grown-' || lpad((place % skus)::text, 5, '0'), 2500, digest, key_id,
           substring(digest FROM 1 FOR 12), digest || substring(digest FROM 1 FOR 11)
      FROM there
)
INSERT INTO stock (stock_id, chunk_id, code_id)
SELECT first_stock + number - 1, first_chunk + place, first_code + number - 1
  FROM there

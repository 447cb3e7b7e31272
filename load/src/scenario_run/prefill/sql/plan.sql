-- Parameters of the prefill for the statements that follow. The first ids come from the sequences, so they cannot collide
-- with existing rows.
CREATE TEMPORARY TABLE plan AS
SELECT $1::bigint AS orders,
       $2::bigint AS keys,
       $3::bigint AS vouchers,
       $4::bigint AS partners,
       $5::bigint AS skus,
       $6::bigint AS chunk,
       now() AS now,
       nextval('stock_ids') AS first_stock,
       nextval('code_ids') AS first_code,
       nextval(pg_get_serial_sequence('chunks', 'chunk_id')) AS first_chunk,
       (SELECT min(key_id) FROM data_keys WHERE purpose = 'codes') AS key_id

-- What is to be put there, for the statements that follow; numbers are taken from the sequences first, so that nobody else
-- gets them meanwhile.
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

-- Advances the sequences past all ids that the prefill uses.
SELECT setval('stock_ids', first_stock + orders + vouchers),
       setval('code_ids', first_code + orders + vouchers),
       setval(pg_get_serial_sequence('chunks', 'chunk_id'), first_chunk + (orders + vouchers) / chunk + 1)
  FROM plan

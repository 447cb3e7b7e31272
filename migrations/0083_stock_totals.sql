-- Sums over the counted chunks of a SKU, which never change. A chunk is added by the transaction that counts it.
CREATE TABLE stock_totals (
    product_id   text NOT NULL REFERENCES products,
    denomination bigint NOT NULL,
    loaded       bigint NOT NULL, -- without vouchers that came back: they are counted in their first chunk
    voided       bigint NOT NULL,
    expired      bigint NOT NULL,
    PRIMARY KEY (product_id, denomination)
);
-- Version 0.2.0 counts no chunks.
INSERT INTO stock_totals (product_id, denomination, loaded, voided, expired)
SELECT product_id, denomination, sum(last_stock_id - first_stock_id + 1 - restocked), sum(voided), sum(expired)
  FROM chunks
 WHERE voided IS NOT NULL
 GROUP BY product_id, denomination;

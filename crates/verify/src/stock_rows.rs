//! Invariants of stock rows, allocations and the chunks that they lie in, by ranges of stock ids.

use super::scan::{
    FIRST_NUMBER, LAST_NUMBER, MAX_ROWS, Scan, Steps, description, scan, to_bigint, violations,
};

pub(super) const SCAN: Scan = scan! {
    "stock",
    tables: ["stock"],
    first: [FIRST_NUMBER],
    last: [LAST_NUMBER],
    // A range ends with a chunk.
    next: r#"SELECT ARRAY[GREATEST(s.stock_id, k.last_stock_id)::text] AS "key!"
               FROM (
                     SELECT s.stock_id, s.chunk_id
                       FROM stock AS s
                      WHERE s.stock_id > ($1::text[])[1]::bigint
                      ORDER BY s.stock_id
                     OFFSET $2::bigint - 1
                      LIMIT 1
                    ) AS s
               LEFT JOIN chunks AS k ON k.chunk_id = s.chunk_id"#,
    with: "WITH s AS MATERIALIZED (
             SELECT s.*, c.code_id AS code_found, c.product_id, c.denomination,
                    EXISTS (
                     SELECT FROM stock AS o WHERE o.code_id = s.code_id AND o.stock_id < s.stock_id OFFSET 0
                    ) AS is_restocked
               FROM (
                     SELECT *
                       FROM stock AS s
                      WHERE s.stock_id > ($1::text[])[1]::bigint AND s.stock_id <= ($2::text[])[1]::bigint
                     OFFSET 0
                    ) AS s
               LEFT JOIN LATERAL (SELECT * FROM codes AS c WHERE c.code_id = s.code_id OFFSET 0) AS c ON true
         ), a AS MATERIALIZED (
             SELECT *
               FROM allocations AS a
              WHERE a.stock_id > ($1::text[])[1]::bigint AND a.stock_id <= ($2::text[])[1]::bigint
         ), k AS MATERIALIZED (
             SELECT k.*, r.chunk_id AS chunk_of_rows, r.first_row_expiry, r.last_row_expiry, r.vouchers, r.void_rows,
                    r.expired_rows, r.restocked_rows
               FROM (
                     SELECT s.chunk_id,
                            min(s.expiry) AS first_row_expiry,
                            CASE WHEN count(*) = count(s.expiry) THEN max(s.expiry) END AS last_row_expiry,
                            count(*) AS vouchers,
                            count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS void_rows,
                            count(*) FILTER (WHERE a.withdrawal_reason = 'expired') AS expired_rows,
                            count(*) FILTER (WHERE s.is_restocked) AS restocked_rows
                       FROM s
                       LEFT JOIN a USING (stock_id)
                      GROUP BY s.chunk_id
                    ) AS r
               LEFT JOIN LATERAL (SELECT * FROM chunks AS k WHERE k.chunk_id = r.chunk_id OFFSET 0) AS k ON true
         ), ",
    "stock.state": "a stock row is free, allocated, returned, void or expired, and no returned voucher was retrieved" =>
        "SELECT format('stock row %s: order %s, out as %s, returned %s', stock_id, order_id, withdrawal_reason, returned_at)
           FROM a
          WHERE num_nonnulls(order_id, withdrawal_reason) <> 1
             OR withdrawal_reason NOT IN ('void', 'expired')
             OR num_nonnulls(order_id, partner_id, voucher_id, line) NOT IN (0, 4)
             OR (order_id IS NULL AND num_nonnulls(first_retrieved_at, returned_at) > 0)
             OR num_nonnulls(first_retrieved_at, returned_at) > 1",
    "stock.expired": "only expired vouchers are out of sale as expired" =>
        "SELECT format('stock row %s is valid until %s', a.stock_id, s.expiry)
           FROM a
           LEFT JOIN s USING (stock_id)
          WHERE a.withdrawal_reason = 'expired'
            AND (s.expiry < (now() AT TIME ZONE 'UTC')::date) IS NOT TRUE",
    "stock.code": "a stock row refers to a code of its chunk's SKU" =>
        "SELECT format('stock row %s, code %s', s.stock_id, s.code_id)
           FROM s
           LEFT JOIN k ON k.chunk_of_rows = s.chunk_id
          WHERE (s.product_id, s.denomination) IS DISTINCT FROM (k.product_id, k.denomination)
             OR s.code_found IS NULL",
    "stock.chunk": "a stock row lies in the range of its chunk, ranges do not overlap, and no chunk is empty" =>
        "SELECT format('stock row %s of chunk %s', s.stock_id, s.chunk_id)
           FROM s
           LEFT JOIN k ON k.chunk_of_rows = s.chunk_id
          WHERE (s.stock_id BETWEEN k.first_stock_id AND k.last_stock_id) IS NOT TRUE",
    "stock.expiry": "a chunk has the first and the last expiry of its vouchers" =>
        "SELECT format('chunk %s: %s to %s, its rows %s to %s', chunk_id, first_expiry, last_expiry, first_row_expiry,
                       last_row_expiry)
           FROM k
          WHERE chunk_id IS NOT NULL
            AND (first_expiry, last_expiry) IS DISTINCT FROM (first_row_expiry, last_row_expiry)",
    "stock.emptied": "an emptied chunk has no free voucher" =>
        "SELECT format('chunk %s: stock row %s is free', s.chunk_id, s.stock_id)
           FROM s
           JOIN k ON k.chunk_id = s.chunk_id AND k.emptied
           LEFT JOIN a USING (stock_id)
          WHERE a.stock_id IS NULL",
    "stock.counts": "only an emptied chunk is counted, and its counts are those of its rows; a chunk has \
        as many rows as its range" =>
        "SELECT format('chunk %s: %s of %s rows, %s void, %s expired, %s restocked; counted %s, %s, %s', chunk_id, vouchers,
                       last_stock_id - first_stock_id + 1, void_rows, expired_rows, restocked_rows, voided, expired, restocked)
           FROM k
          WHERE chunk_id IS NOT NULL
            AND (
                 vouchers <> last_stock_id - first_stock_id + 1
                 OR restocked_rows NOT IN (0, vouchers)
                 OR num_nulls(voided, expired, restocked) NOT IN (0, 3)
                 OR (voided IS NOT NULL AND NOT emptied)
                 OR (voided, expired, restocked) <> (void_rows, expired_rows, restocked_rows)
                )",
    "stock.taken": "an allocation refers to an existing stock row" =>
        "SELECT format('stock row %s', a.stock_id)
           FROM a
           LEFT JOIN s USING (stock_id)
          WHERE s.stock_id IS NULL",
};

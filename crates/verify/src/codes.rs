//! Invariants of sealed codes, by ranges of their ids and of their blind indexes.

use super::scan::{
    FIRST_NUMBER, LAST_NUMBER, MAX_ROWS, Scan, Steps, description, scan, sliced_scan, to_bigint, violations,
};

pub(super) const SCAN: Scan = scan! {
    "codes",
    tables: ["codes"],
    first: [FIRST_NUMBER],
    last: [LAST_NUMBER],
    next: r#"SELECT ARRAY[c.code_id::text] AS "key!"
               FROM codes AS c
              WHERE c.code_id > ($1::text[])[1]::bigint
              ORDER BY c.code_id
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    with: "WITH c AS MATERIALIZED (
             SELECT c.code_id, c.product_id, c.denomination, c.key_id, c.import_id, s.stock_rows
               FROM (
                     SELECT *
                       FROM codes AS c
                      WHERE c.code_id > ($1::text[])[1]::bigint AND c.code_id <= ($2::text[])[1]::bigint
                     OFFSET 0
                    ) AS c
              CROSS JOIN LATERAL (
                     SELECT count(*) AS stock_rows
                       FROM stock AS s
                       LEFT JOIN LATERAL (
                             SELECT a.returned_at FROM allocations AS a WHERE a.stock_id = s.stock_id OFFSET 0
                            ) AS a ON true
                      WHERE s.code_id = c.code_id AND a.returned_at IS NULL
                     OFFSET 0
                    ) AS s
         ), ",
    "stock.once": "each code has exactly one stock row that is not returned" =>
        "SELECT format('code %s: %s stock rows', code_id, stock_rows) FROM c WHERE stock_rows <> 1",
    "stock.denomination": "stock has an existing product and a positive denomination" =>
        "SELECT format('%s/%s', x.product_id, x.denomination)
           FROM (SELECT DISTINCT product_id, denomination FROM c) AS x
          WHERE x.denomination <= 0
             OR NOT EXISTS (SELECT FROM products AS p WHERE p.product_id = x.product_id)",
    "codes.batch": "imported stock names an existing batch" =>
        "SELECT format('code %s of batch %s', c.code_id, c.import_id)
           FROM c
           LEFT JOIN stock_imports AS i USING (import_id)
          WHERE c.import_id IS NOT NULL AND i.import_id IS NULL",
    "codes.key": "each code is sealed under a data key for codes" =>
        "SELECT format('code %s under key %s', c.code_id, c.key_id)
           FROM c
           LEFT JOIN data_keys AS k ON k.key_id = c.key_id AND k.purpose = 'codes'
          WHERE k.key_id IS NULL",
};

/// Reads the unique index alone, except for codes that violate it.
pub(super) const BLIND_INDEX_SCAN: Scan = scan! {
    "blind indexes",
    tables: ["codes"],
    first: [""],
    last: ["ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"],
    next: r#"SELECT ARRAY[encode(c.blind_index, 'hex')] AS "key!"
               FROM codes AS c
              WHERE c.blind_index > decode(($1::text[])[1], 'hex')
              ORDER BY c.blind_index
             OFFSET $2::bigint - 1
              LIMIT 1"#,
    with: "WITH c AS MATERIALIZED (
             SELECT c.blind_index
               FROM codes AS c
              WHERE c.blind_index > decode(($1::text[])[1], 'hex') AND c.blind_index <= decode(($2::text[])[1], 'hex')
              GROUP BY c.blind_index
             HAVING count(*) > 1
         ), ",
    "codes.unique": "no code of a brand exists twice: blind indexes are unique" =>
        "SELECT format('codes %s', string_agg(c.code_id::text, ', ' ORDER BY c.code_id))
           FROM codes AS c
          WHERE c.blind_index IN (SELECT blind_index FROM c)
          GROUP BY c.blind_index",
};

pub(super) const NONCE_SCAN: Scan = sliced_scan! {
    "nonces",
    tables: ["codes"],
    with: "WITH repeated AS MATERIALIZED (
             SELECT c.key_id, c.nonce
               FROM codes AS c
              WHERE get_byte(c.nonce, 0) & ($2::integer - 1) = $1::integer
              GROUP BY c.key_id, c.nonce
             HAVING count(*) > 1
         ), ",
    "codes.nonce": "no data key has sealed two codes with one nonce" =>
        "SELECT format('codes %s under key %s', string_agg(c.code_id::text, ', ' ORDER BY c.code_id), c.key_id)
           FROM codes AS c
           JOIN repeated AS r USING (key_id, nonce)
          GROUP BY c.key_id, c.nonce",
};

//! Invariants of stock: chunks, stock rows, allocations and sealed codes.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "stock.once",
        "each code has exactly one stock row that is not returned",
        "SELECT format('code %s: %s stock rows', c.code_id, count(s.stock_id))
           FROM codes AS c
           LEFT JOIN (
                 SELECT s.stock_id, s.code_id
                   FROM stock AS s
                   LEFT JOIN allocations AS a ON a.stock_id = s.stock_id
                  WHERE a.returned_at IS NULL
                 ) AS s ON s.code_id = c.code_id
          GROUP BY c.code_id
         HAVING count(s.stock_id) <> 1"
    ),
    invariant!(
        "stock.state",
        "a stock row is free, allocated, returned, void or expired, and no returned voucher was retrieved",
        "SELECT format('stock row %s: order %s, out as %s, returned %s', a.stock_id, a.order_id, a.withdrawal_reason,
                       a.returned_at)
           FROM allocations AS a
          WHERE num_nonnulls(a.order_id, a.withdrawal_reason) <> 1
             OR num_nonnulls(a.order_id, a.partner_id, a.voucher_id, a.line) NOT IN (0, 4)
             OR (a.order_id IS NULL AND num_nonnulls(a.first_retrieved_at, a.returned_at) > 0)
             OR num_nonnulls(a.first_retrieved_at, a.returned_at) > 1"
    ),
    invariant!(
        "stock.expired",
        "only expired vouchers are out of sale as expired",
        "SELECT format('stock row %s is valid until %s', a.stock_id, s.expiry)
           FROM allocations AS a
           LEFT JOIN stock AS s ON s.stock_id = a.stock_id
          WHERE a.withdrawal_reason = 'expired'
            AND (s.expiry < (now() AT TIME ZONE 'UTC')::date) IS NOT TRUE"
    ),
    invariant!(
        "stock.code",
        "a stock row refers to a code of its chunk's SKU",
        "SELECT format('stock row %s, code %s', s.stock_id, s.code_id)
           FROM stock AS s
           LEFT JOIN codes AS c ON c.code_id = s.code_id
           LEFT JOIN chunks AS k ON k.chunk_id = s.chunk_id
          WHERE (c.product_id, c.denomination) IS DISTINCT FROM (k.product_id, k.denomination)
             OR c.code_id IS NULL"
    ),
    invariant!(
        "stock.chunk",
        "a stock row lies in the range of its chunk, ranges do not overlap, and no chunk is empty",
        "SELECT format('stock row %s of chunk %s', s.stock_id, s.chunk_id)
           FROM stock AS s
           LEFT JOIN chunks AS k ON k.chunk_id = s.chunk_id
          WHERE (s.stock_id BETWEEN k.first_stock_id AND k.last_stock_id) IS NOT TRUE
          UNION ALL
         SELECT format('chunk %s begins at %s, the one before ends at %s', k.chunk_id, k.first_stock_id, k.before)
           FROM (
                 SELECT chunk_id, first_stock_id, lag(last_stock_id) OVER (ORDER BY first_stock_id) AS before
                   FROM chunks
                 ) AS k
          WHERE k.before >= k.first_stock_id
          UNION ALL
         SELECT format('chunk %s has no rows', k.chunk_id)
           FROM chunks AS k
          WHERE NOT EXISTS (
                 SELECT FROM stock AS s WHERE s.chunk_id = k.chunk_id
                 )"
    ),
    invariant!(
        "stock.expiry",
        "a chunk has the first and the last expiry of its vouchers",
        "SELECT format('chunk %s: %s to %s, its rows %s to %s', k.chunk_id, k.first_expiry, k.last_expiry,
                       r.first_expiry, r.last_expiry)
           FROM chunks AS k
           JOIN (
                 SELECT s.chunk_id,
                        min(s.expiry) AS first_expiry,
                        CASE WHEN count(*) = count(s.expiry) THEN max(s.expiry) END AS last_expiry
                   FROM stock AS s
                  GROUP BY s.chunk_id
                 ) AS r ON r.chunk_id = k.chunk_id
          WHERE (k.first_expiry, k.last_expiry) IS DISTINCT FROM (r.first_expiry, r.last_expiry)"
    ),
    invariant!(
        "stock.emptied",
        "an emptied chunk has no free voucher",
        "SELECT format('chunk %s: stock row %s is free', k.chunk_id, s.stock_id)
           FROM chunks AS k
           JOIN stock AS s ON s.chunk_id = k.chunk_id
          WHERE k.emptied
            AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)"
    ),
    invariant!(
        "stock.counts",
        "only an emptied chunk is counted, and its counts are those of its rows; a chunk has as many rows as its range",
        "SELECT format('chunk %s: %s of %s rows, %s void, %s expired, %s restocked; counted %s, %s, %s', k.chunk_id, r.vouchers,
                       k.last_stock_id - k.first_stock_id + 1, r.voided, r.expired, r.restocked, k.voided, k.expired,
                       k.restocked)
           FROM chunks AS k
           LEFT JOIN (
                 SELECT s.chunk_id,
                        count(*) AS vouchers,
                        count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS voided,
                        count(*) FILTER (WHERE a.withdrawal_reason = 'expired') AS expired,
                        count(*) FILTER (WHERE s.stock_id > f.stock_id) AS restocked
                   FROM stock AS s
                   LEFT JOIN allocations AS a ON a.stock_id = s.stock_id
                   JOIN (SELECT code_id, min(stock_id) AS stock_id FROM stock GROUP BY code_id) AS f ON f.code_id = s.code_id
                  GROUP BY s.chunk_id
                 ) AS r ON r.chunk_id = k.chunk_id
          WHERE r.vouchers IS DISTINCT FROM k.last_stock_id - k.first_stock_id + 1
             OR r.restocked NOT IN (0, r.vouchers)
             OR num_nulls(k.voided, k.expired, k.restocked) NOT IN (0, 3)
             OR (k.voided IS NOT NULL AND NOT k.emptied)
             OR (k.voided IS NOT NULL AND (k.voided, k.expired, k.restocked) <> (r.voided, r.expired, r.restocked))"
    ),
    invariant!(
        "stock.owner",
        "a chunk has no owner, or an incarnation that its node has reached",
        "SELECT format('chunk %s of %s, incarnation %s', k.chunk_id, k.node, k.incarnation)
           FROM chunks AS k
           LEFT JOIN nodes AS n ON n.node = k.node
          WHERE (k.node IS NULL) <> (k.incarnation IS NULL)
             OR (k.node IS NOT NULL AND NOT COALESCE(k.incarnation <= n.incarnation, false))"
    ),
    invariant!(
        "stock.taken",
        "an allocation refers to an existing stock row",
        "SELECT format('stock row %s', a.stock_id)
           FROM allocations AS a
          WHERE NOT EXISTS (SELECT FROM stock AS s WHERE s.stock_id = a.stock_id)"
    ),
    invariant!(
        "stock.public_id",
        "the public id of a voucher names one allocation",
        "SELECT format('voucher %s: %s allocations', a.voucher_id, count(*))
           FROM allocations AS a
          WHERE a.voucher_id IS NOT NULL
          GROUP BY a.voucher_id
         HAVING count(*) > 1"
    ),
    invariant!(
        "stock.denomination",
        "stock has an existing product and a positive denomination",
        "SELECT DISTINCT format('%s/%s', x.product_id, x.denomination)
           FROM (
                 SELECT product_id, denomination FROM chunks
                  UNION ALL
                 SELECT product_id, denomination FROM codes
                 ) AS x
          WHERE x.denomination <= 0
             OR NOT EXISTS (SELECT FROM products AS p WHERE p.product_id = x.product_id)"
    ),
    invariant!(
        "codes.unique",
        "no code of a brand exists twice: blind indexes are unique",
        "SELECT format('codes %s', string_agg(c.code_id::text, ', ' ORDER BY c.code_id))
           FROM codes AS c
          GROUP BY c.blind_index
         HAVING count(*) > 1"
    ),
    invariant!(
        "codes.batch",
        "imported stock names an existing batch",
        "SELECT format('code %s of batch %s', c.code_id, c.import_id)
           FROM codes AS c
          WHERE c.import_id IS NOT NULL
            AND NOT EXISTS (SELECT FROM stock_imports AS i WHERE i.import_id = c.import_id)"
    ),
    invariant!(
        "codes.nonce",
        "no data key has sealed two codes with one nonce",
        "SELECT format('codes %s under key %s', string_agg(c.code_id::text, ', ' ORDER BY c.code_id), c.key_id)
           FROM codes AS c
          GROUP BY c.key_id, c.nonce
         HAVING count(*) > 1"
    ),
    invariant!(
        "codes.key",
        "each code is sealed under a data key for codes",
        "SELECT format('code %s under key %s', c.code_id, c.key_id)
           FROM codes AS c
           LEFT JOIN data_keys AS k ON k.key_id = c.key_id AND k.purpose = 'codes'
          WHERE k.key_id IS NULL"
    ),
    invariant!(
        "codes.data_keys",
        "if there is any code, there is a data key for codes and one for the blind index",
        "SELECT format('%s for codes, %s for the blind index', k.codes, k.blind_index)
           FROM (
                 SELECT count(*) FILTER (WHERE purpose = 'codes') AS codes,
                        count(*) FILTER (WHERE purpose = 'blind_index') AS blind_index
                   FROM data_keys
                 ) AS k
          WHERE k.blind_index > 1
             OR (LEAST(k.codes, k.blind_index) = 0 AND EXISTS (SELECT FROM codes))"
    ),
];

//! Invariants of chunks, demands of waiting orders and data keys.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "stock.chunk",
        "SELECT format('chunk %s begins at %s, the one before ends at %s', k.chunk_id, k.first_stock_id, k.before)
           FROM (
                 SELECT chunk_id, first_stock_id, lag(last_stock_id) OVER (ORDER BY first_stock_id) AS before
                   FROM chunks
                 ) AS k
          WHERE k.before >= k.first_stock_id
          UNION ALL
         SELECT format('chunk %s has no rows', k.chunk_id)
           FROM chunks AS k
           LEFT JOIN LATERAL (
                 SELECT s.stock_id
                   FROM stock AS s
                  WHERE s.stock_id BETWEEN k.first_stock_id AND k.last_stock_id AND s.chunk_id = k.chunk_id
                  LIMIT 1
                 ) AS s ON true
          WHERE s.stock_id IS NULL"
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
        "stock.totals",
        "the totals of a SKU are the sums over its counted chunks",
        "SELECT format('%s/%s: %s loaded, %s void, %s expired; its chunks %s, %s, %s', product_id, denomination, t.loaded, t.voided,
                       t.expired, k.loaded, k.voided, k.expired)
           FROM (
                 SELECT product_id, denomination, sum(last_stock_id - first_stock_id + 1 - restocked) AS loaded,
                        sum(voided) AS voided, sum(expired) AS expired
                   FROM chunks
                  WHERE voided IS NOT NULL
                  GROUP BY product_id, denomination
                ) AS k
           FULL JOIN stock_totals AS t USING (product_id, denomination)
          WHERE (k.loaded, k.voided, k.expired) IS DISTINCT FROM (t.loaded, t.voided, t.expired)"
    ),
    invariant!(
        "stock.cleared",
        "no chunk was cleared after the last quarantine, and all free stock is cleared unless stock is quarantined",
        "SELECT format('chunk %s: cleared in epoch %s of %s', k.chunk_id, k.cleared_epoch, q.epoch)
           FROM chunks AS k
          CROSS JOIN (
                 SELECT COALESCE(max(quarantine_epoch), 0) AS epoch, COALESCE(bool_or(quarantined_at IS NOT NULL), false) AS is_active
                   FROM continuity
                ) AS q
          WHERE k.cleared_epoch > q.epoch
             OR (k.cleared_epoch < q.epoch AND NOT k.emptied AND NOT q.is_active)"
    ),
    invariant!(
        "order.demands",
        "each SKU that a waiting order lacks has a demand row, by which the order is served, and no other does",
        "SELECT format('order %s, %s/%s: lacking %s, demanded %s', order_id, product_id, denomination, o.is_lacking IS NOT NULL,
                       d.is_demanded IS NOT NULL)
           FROM (
                 SELECT DISTINCT o.order_id, o.partner_id, l ->> 'p' AS product_id, (l ->> 'd')::bigint AS denomination,
                        true AS is_lacking
                   FROM orders AS o
                  CROSS JOIN LATERAL jsonb_array_elements(o.lines::jsonb) AS l
                  WHERE o.pending_reason = 'VENDOR'
                    AND NOT o.closed
                    AND (l ->> 'q')::integer > (l ->> 'a')::integer + COALESCE((l ->> 'f')::integer, 0)
                ) AS o
           FULL JOIN (SELECT *, true AS is_demanded FROM order_demands) AS d
          USING (order_id, partner_id, product_id, denomination)
          WHERE o.is_lacking IS NULL OR d.is_demanded IS NULL"
    ),
    invariant!(
        "stock.denomination",
        "SELECT DISTINCT format('%s/%s', k.product_id, k.denomination)
           FROM chunks AS k
          WHERE k.denomination <= 0
             OR NOT EXISTS (SELECT FROM products AS p WHERE p.product_id = k.product_id)"
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

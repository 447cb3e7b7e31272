//! Stock levels: voucher counts per SKU by state.

use sqlx::PgPool;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::stock::level::StockLevel;

use super::to_bigint;
use crate::stock::Stock;

impl Stock {
    /// Lists the levels of up to `limit` SKUs after `after` in SKU order, optionally of one product.
    #[boxed]
    pub async fn list_levels(
        &self,
        product_id: Option<String>,
        after: Option<(String, i64)>,
        limit: usize,
    ) -> Result<Vec<StockLevel>, StoreError> {
        self.0
            .run(move |pool| async move { levels(&pool, product_id, after, limit).await })
            .await
    }
}

/// Adds the totals of counted chunks to counts of the others. A chunk without sales costs an index probe, so
/// the cost follows the number of chunks that are not counted, and the sales of those. A returned voucher has
/// two stock rows and counts once: the second rows are subtracted. They fill chunks of their own, so the
/// first row of a chunk shows whether all are second rows ([`super::counts`]).
///
/// Not checked at compile time, because checked statements are prepared persistently: the plan depends on the
/// filter values and on the current table sizes.
async fn levels(
    pool: &PgPool,
    product_id: Option<String>,
    after: Option<(String, i64)>,
    limit: usize,
) -> Result<Vec<StockLevel>, sqlx::Error> {
    let (after_product, after_denomination) = after.unzip();
    sqlx::query_as(
        "WITH RECURSIVE uncounted AS (
            -- SKUs with chunks that are not counted, in their order and as many as the page needs: an index probe for each.
            (
             SELECT c.product_id, c.denomination
               FROM chunks AS c
              WHERE c.voided IS NULL
                AND ($1::text IS NULL OR c.product_id = $1)
                AND ($2::text IS NULL OR (c.product_id, c.denomination) > ($2, $3))
              ORDER BY c.product_id, c.denomination
              LIMIT 1
            )
             UNION ALL
            SELECT n.product_id, n.denomination
              FROM uncounted AS u
             CROSS JOIN LATERAL (
                   SELECT c.product_id, c.denomination
                     FROM chunks AS c
                    WHERE c.voided IS NULL
                      AND ($1::text IS NULL OR c.product_id = $1)
                      AND (c.product_id, c.denomination) > (u.product_id, u.denomination)
                    ORDER BY c.product_id, c.denomination
                    LIMIT 1
                  ) AS n
         ), page AS MATERIALIZED (
            SELECT DISTINCT s.product_id, s.denomination
              FROM (
                    (SELECT u.product_id, u.denomination FROM uncounted AS u LIMIT $4)
                     UNION ALL
                    (SELECT t.product_id, t.denomination
                       FROM stock_totals AS t
                      WHERE ($1::text IS NULL OR t.product_id = $1)
                        AND ($2::text IS NULL OR (t.product_id, t.denomination) > ($2, $3))
                      ORDER BY t.product_id, t.denomination
                      LIMIT $4)
                   ) AS s
             ORDER BY s.product_id, s.denomination
             LIMIT $4
         ), c AS MATERIALIZED (
            -- First the page's chunks: the planner would else count those of all SKUs.
            SELECT c.*, c.last_stock_id - c.first_stock_id + 1 AS vouchers,
                   c.cleared_epoch < (SELECT quarantine_epoch_v1()) AS is_quarantined
              FROM page AS p
              JOIN chunks AS c ON c.product_id = p.product_id AND c.denomination = p.denomination
             WHERE c.voided IS NULL
         ), today AS MATERIALIZED (
            SELECT (now() AT TIME ZONE 'UTC')::date AS day
         )
         SELECT n.product_id,
                n.denomination,
                sum(n.loaded)::bigint AS loaded,
                COALESCE(sum(n.free) FILTER (WHERE NOT n.is_quarantined), 0)::bigint AS free,
                COALESCE(sum(n.free) FILTER (WHERE n.is_quarantined), 0)::bigint AS quarantined,
                sum(n.loaded - n.free - n.voided - n.expired)::bigint AS sold,
                sum(n.voided)::bigint AS void,
                sum(n.expired)::bigint AS expired,
                min(n.next_expiry) FILTER (WHERE NOT n.is_quarantined) AS next_expiry
           FROM (
                SELECT t.product_id, t.denomination, false AS is_quarantined, t.loaded, 0 AS free, t.voided, t.expired,
                       NULL::date AS next_expiry
                  FROM page AS p
                  JOIN stock_totals AS t ON t.product_id = p.product_id AND t.denomination = p.denomination
                 UNION ALL
                SELECT c.product_id, c.denomination, c.is_quarantined,
                       c.vouchers - CASE WHEN r.is_restock THEN c.vouchers ELSE 0 END,
                       c.vouchers - a.allocated - f.expired,
                       a.voided,
                       a.expired + f.expired,
                       CASE WHEN a.allocated = 0 AND c.first_expiry >= t.day THEN c.first_expiry ELSE f.next_expiry END
                  FROM c
                 CROSS JOIN today AS t
                 CROSS JOIN LATERAL (
                        SELECT count(*) AS allocated,
                               count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS voided,
                               count(*) FILTER (WHERE a.withdrawal_reason = 'expired') AS expired
                          FROM allocations AS a
                         WHERE a.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                       ) AS a
                 CROSS JOIN LATERAL (
                        SELECT EXISTS (
                               SELECT
                                 FROM stock AS s
                                CROSS JOIN LATERAL (
                                       SELECT earlier.stock_id FROM stock AS earlier WHERE earlier.code_id = s.code_id OFFSET 0
                                      ) AS earlier
                                WHERE s.stock_id = c.first_stock_id
                                  AND earlier.stock_id < s.stock_id
                               ) AS is_restock
                       ) AS r
                 CROSS JOIN LATERAL (
                        -- Free vouchers, one by one: only of a chunk that is partly sold or partly expired.
                        SELECT count(*) FILTER (WHERE s.expiry < t.day) AS expired,
                               min(s.expiry) FILTER (WHERE s.expiry >= t.day) AS next_expiry
                          FROM stock AS s
                          LEFT JOIN allocations AS x
                            ON x.stock_id = s.stock_id
                           AND x.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                         WHERE s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                           AND x.stock_id IS NULL
                           AND a.allocated < c.vouchers
                           AND (c.first_expiry < t.day OR (c.first_expiry IS NOT NULL AND a.allocated > 0))
                       ) AS f
               ) AS n
          GROUP BY n.product_id, n.denomination
          ORDER BY n.product_id, n.denomination",
    )
    .bind(product_id)
    .bind(after_product)
    .bind(after_denomination)
    .bind(to_bigint(limit))
    .persistent(false)
    .fetch_all(pool)
    .await
}

//! Stock levels: voucher counts per SKU by state.

use sqlx::PgPool;
use vouchsafe_domain::stock::level::StockLevel;

use super::to_bigint;
use crate::stock::Stock;

impl Stock {
    /// Lists the levels of up to `limit` SKUs after `after` in SKU order, optionally of one product.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_levels(
        &self,
        product_id: Option<String>,
        after: Option<(String, i64)>,
        limit: usize,
    ) -> Result<Vec<StockLevel>, sqlx::Error> {
        self.0
            .run(move |pool| async move { levels(&pool, product_id, after, limit).await })
            .await
    }
}

/// Selects the SKUs of the page first and then counts chunk by chunk, so only the stock and allocation rows of these SKUs are
/// read. A returned voucher has a new stock row and counts by that one alone. Not checked at compile time, because checked statements are prepared persistently: the plan depends on the filter values and
/// on the current table sizes.
async fn levels(
    pool: &PgPool,
    product_id: Option<String>,
    after: Option<(String, i64)>,
    limit: usize,
) -> Result<Vec<StockLevel>, sqlx::Error> {
    let (after_product, after_denomination) = after.unzip();
    sqlx::query_as(
        "WITH page AS MATERIALIZED (
            SELECT DISTINCT c.product_id, c.denomination
              FROM chunks AS c
             WHERE ($1::text IS NULL OR c.product_id = $1)
               AND ($2::text IS NULL OR (c.product_id, c.denomination) > ($2, $3))
             ORDER BY c.product_id, c.denomination
             LIMIT $4
         ), today AS MATERIALIZED (
            SELECT (now() AT TIME ZONE 'UTC')::date AS day
         )
         SELECT p.product_id,
                p.denomination,
                sum(n.loaded)::bigint AS loaded,
                sum(n.free)::bigint AS free,
                sum(n.sold)::bigint AS sold,
                sum(n.void)::bigint AS void,
                sum(n.expired)::bigint AS expired,
                min(n.next_expiry) AS next_expiry
           FROM page AS p
          CROSS JOIN today AS t
           JOIN chunks AS c ON c.product_id = p.product_id AND c.denomination = p.denomination
          CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE a.returned_at IS NULL) AS loaded,
                       count(*) FILTER (WHERE a.stock_id IS NULL AND (s.expiry IS NULL OR s.expiry >= t.day)) AS free,
                       count(*) FILTER (WHERE a.order_id IS NOT NULL AND a.returned_at IS NULL) AS sold,
                       count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS void,
                       count(*) FILTER (
                           WHERE a.withdrawal_reason = 'expired' OR (a.stock_id IS NULL AND s.expiry < t.day)
                       ) AS expired,
                       min(s.expiry) FILTER (WHERE a.stock_id IS NULL AND s.expiry >= t.day) AS next_expiry
                  FROM stock AS s
                  LEFT JOIN allocations AS a
                    ON a.stock_id = s.stock_id
                   AND a.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                 WHERE s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
               ) AS n
          GROUP BY p.product_id, p.denomination
          ORDER BY p.product_id, p.denomination",
    )
    .bind(product_id)
    .bind(after_product)
    .bind(after_denomination)
    .bind(to_bigint(limit))
    .persistent(false)
    .fetch_all(pool)
    .await
}

//! Available vouchers by the month in which they expire.

use sqlx::PgPool;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::stock::level::ExpiringStock;

use crate::stock::Stock;

impl Stock {
    /// Counts the available vouchers by month of expiry, optionally of one product; those that never expire
    /// come last.
    #[boxed]
    pub async fn count_by_expiry(
        &self,
        product_id: Option<String>,
    ) -> Result<Vec<ExpiringStock>, StoreError> {
        self.0
            .run(move |pool| async move { count(&pool, product_id).await })
            .await
    }
}

/// A chunk whose vouchers expire in one month costs a range of the index of allocations; only one that spans
/// several months, or has expired vouchers, is counted voucher by voucher. Imports sort by expiry, so few
/// chunks do.
///
/// Not checked at compile time, because checked statements are prepared persistently: the plan depends on the
/// filter value.
async fn count(pool: &PgPool, product_id: Option<String>) -> Result<Vec<ExpiringStock>, sqlx::Error> {
    sqlx::query_as(
        "SELECT n.month, sum(n.vouchers)::bigint AS vouchers
           FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS t
          CROSS JOIN LATERAL (
                SELECT c.*,
                       c.first_expiry IS NULL
                       OR (c.first_expiry >= t.day
                           AND date_trunc('month', c.first_expiry) = date_trunc('month', c.last_expiry)) IS TRUE AS is_of_one_month
                  FROM chunks AS c
                 WHERE NOT c.emptied
                   AND c.cleared_epoch = (SELECT quarantine_epoch_v1())
                   AND ($1::text IS NULL OR c.product_id = $1)
               ) AS c
          CROSS JOIN LATERAL (
                SELECT date_trunc('month', c.first_expiry)::date AS month,
                       c.last_stock_id - c.first_stock_id + 1 - count(*) AS vouchers
                  FROM allocations AS a
                 WHERE a.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                   AND c.is_of_one_month
                HAVING c.is_of_one_month
                 UNION ALL
                SELECT date_trunc('month', s.expiry)::date, count(*)
                  FROM stock AS s
                 WHERE NOT c.is_of_one_month
                   AND s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                   AND (s.expiry >= t.day OR s.expiry IS NULL)
                   AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)
                 GROUP BY 1
               ) AS n
          WHERE n.vouchers > 0
          GROUP BY n.month
          ORDER BY n.month NULLS LAST",
    )
    .bind(product_id)
    .persistent(false)
    .fetch_all(pool)
    .await
}

//! Number of free vouchers per SKU, counted from committed rows up to a cap.

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{Product, ProductId, Sku};
use vouchsafe_domain::stock::FreeVouchers;

use super::stock::Stock;

impl Stock {
    /// Counts the free vouchers of these products.
    #[boxed]
    pub async fn count_free(&self, products: &[&Product]) -> Result<FreeVouchers, StoreError> {
        let products = products.iter();
        let columns = products.map(|product| {
            let cap = i64::from(product.low_stock_at.max(1));
            (
                product.product_id.clone(),
                (i32::from(product.min_validity_days), cap),
            )
        });
        let (product_ids, (min_days, caps)): (Vec<_>, (Vec<_>, Vec<_>)) = columns.unzip();
        // Starts with the chunks that expire last: those have the most unsold vouchers, so the count reaches
        // its cap soonest.
        let counts = sqlx::query!(
            r#"SELECT q.product_id AS "product_id!: ProductId", d.denomination AS "denomination: Amount", f.free AS "free!"
               FROM (
                    SELECT u.product_id, (now() AT TIME ZONE 'UTC')::date + u.min_days AS valid_on, u.cap
                      FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS u (product_id, min_days, cap)
                    ) AS q
              CROSS JOIN LATERAL (
                    SELECT DISTINCT c.denomination
                      FROM chunks AS c
                     WHERE c.product_id = q.product_id AND NOT c.emptied
                    ) AS d
              CROSS JOIN LATERAL (
                    SELECT count(*) AS free
                      FROM (
                        SELECT
                          FROM chunks AS c
                         CROSS JOIN LATERAL free_stock_v1(c.first_stock_id, c.last_stock_id, q.valid_on)
                         WHERE c.product_id = q.product_id
                           AND c.denomination = d.denomination
                           AND NOT c.emptied
                           AND c.reservation_id IS NULL
                           AND c.cleared_epoch = (SELECT quarantine_epoch_v1())
                           AND (c.last_expiry IS NULL OR c.last_expiry >= q.valid_on)
                         ORDER BY c.first_expiry DESC NULLS FIRST
                         LIMIT q.cap
                      ) AS free
                    ) AS f"#,
            product_ids as _,
            &min_days,
            &caps,
        )
        .map(|row| {
            let sku = Sku {
                product_id: row.product_id,
                denomination: row.denomination,
            };
            (sku, u32::try_from(row.free).unwrap_or(u32::MAX))
        });
        Ok(self.0.fetch_all(counts).await?.into_iter().collect())
    }
}

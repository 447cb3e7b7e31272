//! Number of free vouchers per SKU, counted from committed rows up to a cap.

use sqlx::PgPool;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{Product, ProductId, Sku};
use vouchsafe_domain::stock::FreeVouchers;

use super::stock::Stock;

struct ProductQuery {
    product_id: String,
    min_validity_days: i32,
    cap: i64,
}

impl Stock {
    /// Counts the free vouchers of these products.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn count_free(&self, products: &[&Product]) -> Result<FreeVouchers, sqlx::Error> {
        let queries: Vec<ProductQuery> = products.iter().map(|product| ProductQuery::of(product)).collect();
        self.0
            .run(move |pool| async move { count(&pool, queries).await })
            .await
    }
}

impl ProductQuery {
    fn of(product: &Product) -> Self {
        Self {
            product_id: product.product_id.as_str().to_owned(),
            min_validity_days: i32::from(product.min_validity_days),
            cap: i64::from(product.low_stock_at.max(1)),
        }
    }
}

async fn count(pool: &PgPool, queries: Vec<ProductQuery>) -> Result<FreeVouchers, sqlx::Error> {
    let mut columns: (Vec<String>, Vec<i32>, Vec<i64>) = Default::default();
    for query in queries {
        columns.0.push(query.product_id);
        columns.1.push(query.min_validity_days);
        columns.2.push(query.cap);
    }
    // Starts with the chunks that expire last: those have the most unsold vouchers, so the count reaches its cap soonest.
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT q.product_id, d.denomination, f.free
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
                       AND (c.last_expiry IS NULL OR c.last_expiry >= q.valid_on)
                     ORDER BY c.first_expiry DESC NULLS FIRST
                     LIMIT q.cap
                  ) AS free
                ) AS f",
    )
    .bind(columns.0)
    .bind(columns.1)
    .bind(columns.2)
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|(product_id, denomination, free)| parse_row(&product_id, denomination, free))
        .collect()
}

fn parse_row(product_id: &str, denomination: i64, free: i64) -> Result<(Sku, u32), sqlx::Error> {
    let product_id: ProductId = product_id
        .parse()
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let sku = Sku {
        product_id,
        denomination: Amount::from_minor(denomination),
    };
    Ok((sku, u32::try_from(free).unwrap_or(u32::MAX)))
}

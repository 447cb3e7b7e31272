//! Sales of the last seven days per SKU, from the counts that stock levels had over time.
//!
//! Nothing counts sold vouchers again: the job that measures the stock stores the number of sold vouchers of
//! each SKU, at most once an hour and only if it has changed. The sales of a week are the difference between
//! now and then, exact to the hour.

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::stock::level::{SoldBaseline, StockLevel};

use crate::stock::Stock;

impl Stock {
    /// Stores the numbers of sold vouchers that have changed within the last hour or later.
    #[boxed]
    pub async fn record_sold(&self, levels: &[StockLevel]) -> Result<(), StoreError> {
        let (products, denominations) = skus(levels);
        let sold: Vec<i64> = levels.iter().map(|level| level.sold).collect();
        self.0
            .run(move |pool| async move { record(&pool, &products, &denominations, &sold).await })
            .await
    }

    /// For each of the levels, the number of vouchers that were sold a week ago, or when the SKU was first
    /// measured; `None` before that.
    #[boxed]
    pub async fn list_sold_baselines(
        &self,
        levels: &[StockLevel],
    ) -> Result<Vec<Option<SoldBaseline>>, StoreError> {
        let (products, denominations) = skus(levels);
        self.0
            .run(move |pool| async move { baselines(&pool, &products, &denominations).await })
            .await
    }

    /// Deletes counts that no week begins with any more.
    #[boxed]
    pub async fn purge_sold(&self) -> Result<(), StoreError> {
        self.0.run(|pool| async move { purge(&pool).await }).await
    }
}

fn skus(levels: &[StockLevel]) -> (Vec<String>, Vec<i64>) {
    let skus = levels.iter().map(|level| &level.sku);
    skus.map(|sku| (sku.product_id.to_string(), sku.denomination.minor()))
        .unzip()
}

/// Another node may store the same hour: both rows are true.
async fn record(
    pool: &PgPool,
    products: &[String],
    denominations: &[i64],
    sold: &[i64],
) -> Result<(), sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO stock_sold (product_id, denomination, at, sold)
         SELECT l.product_id, l.denomination, now(), l.sold
           FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS l (product_id, denomination, sold)
           LEFT JOIN LATERAL (
                SELECT s.at, s.sold
                  FROM stock_sold AS s
                 WHERE s.product_id = l.product_id AND s.denomination = l.denomination
                 ORDER BY s.at DESC
                 LIMIT 1) AS newest ON true
          WHERE newest.at IS NULL
             OR (newest.sold <> l.sold AND newest.at <= now() - interval '1 hour')
         ON CONFLICT DO NOTHING",
        products,
        denominations,
        sold,
    );
    inserted.execute(pool).await.map(drop)
}

async fn baselines(
    pool: &PgPool,
    products: &[String],
    denominations: &[i64],
) -> Result<Vec<Option<SoldBaseline>>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT COALESCE(week.at, first.at) AS "at: OffsetDateTime", COALESCE(week.sold, first.sold) AS sold
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS l (product_id, denomination, position)
             LEFT JOIN LATERAL (
                  SELECT s.at, s.sold
                    FROM stock_sold AS s
                   WHERE s.product_id = l.product_id
                     AND s.denomination = l.denomination
                     AND s.at <= now() - interval '7 days'
                   ORDER BY s.at DESC
                   LIMIT 1) AS week ON true
             LEFT JOIN LATERAL (
                  SELECT s.at, s.sold
                    FROM stock_sold AS s
                   WHERE s.product_id = l.product_id AND s.denomination = l.denomination
                   ORDER BY s.at
                   LIMIT 1) AS first ON true
            ORDER BY l.position"#,
        products,
        denominations,
    );
    let baseline = rows.map(|row| row.at.zip(row.sold).map(|(at, sold)| SoldBaseline { at, sold }));
    baseline.fetch_all(pool).await
}

/// Keeps the newest row of each SKU that is a week old.
async fn purge(pool: &PgPool) -> Result<(), sqlx::Error> {
    let purged = sqlx::query!(
        "DELETE FROM stock_sold AS s
          WHERE s.at < now() - interval '7 days'
            AND EXISTS (
                SELECT
                  FROM stock_sold AS later
                 WHERE later.product_id = s.product_id
                   AND later.denomination = s.denomination
                   AND later.at > s.at
                   AND later.at <= now() - interval '7 days')",
    );
    purged.execute(pool).await.map(drop)
}

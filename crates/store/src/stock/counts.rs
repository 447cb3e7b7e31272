//! Totals of emptied chunks per SKU, which stock levels read instead of counting what was ever sold.
//!
//! The commit writes no counter: an update of the chunk's row would make the lanes that sell from it wait for
//! each other. A background job counts each chunk once, after it was emptied. The transaction that stores the
//! counts of a chunk adds them to the totals, so a chunk is in the totals exactly if it has counts.

use sqlx::PgPool;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;

use crate::stock::Stock;

/// Chunks per transaction, about 50,000 rows.
const MAX_CHUNKS: usize = 100;

impl Stock {
    /// Counts a batch of emptied chunks and returns whether there may be more. Concurrent calls count
    /// different chunks.
    ///
    /// # Errors
    /// The next call repeats the work.
    #[boxed]
    pub async fn count_emptied_chunks(&self) -> Result<bool, StoreError> {
        let counted = self.0.run(|pool| async move { count_batch(&pool).await }).await?;
        Ok(counted == to_bigint(MAX_CHUNKS))
    }
}

/// Skips locked chunks: a later batch counts them. Locks totals in the order of their SKUs. An import stores
/// new codes only and a return only old ones, so the first voucher of a chunk tells whether all came back.
async fn count_batch(pool: &PgPool) -> Result<i64, sqlx::Error> {
    let counted = sqlx::query_scalar!(
        r#"WITH emptied AS MATERIALIZED (
            SELECT c.chunk_id, c.first_stock_id, c.last_stock_id
              FROM chunks AS c
             WHERE c.emptied
               AND c.voided IS NULL
             ORDER BY c.chunk_id
             LIMIT $1
               FOR NO KEY UPDATE SKIP LOCKED
         ), counted AS MATERIALIZED (
            SELECT e.chunk_id, n.voided, n.expired,
                   CASE WHEN r.is_restock THEN e.last_stock_id - e.first_stock_id + 1 ELSE 0 END AS restocked
              FROM emptied AS e
             CROSS JOIN LATERAL (
                    SELECT count(*) FILTER (WHERE a.withdrawal_reason = 'void') AS voided,
                           count(*) FILTER (WHERE a.withdrawal_reason = 'expired') AS expired
                      FROM allocations AS a
                     WHERE a.stock_id BETWEEN e.first_stock_id AND e.last_stock_id
                   ) AS n
             CROSS JOIN LATERAL (
                    -- OFFSET 0: before the first ANALYZE the planner would else expect many rows of a code and scan the table.
                    SELECT EXISTS (
                           SELECT
                             FROM stock AS s
                            CROSS JOIN LATERAL (
                                   SELECT earlier.stock_id FROM stock AS earlier WHERE earlier.code_id = s.code_id OFFSET 0
                                  ) AS earlier
                            WHERE s.stock_id = e.first_stock_id
                              AND earlier.stock_id < s.stock_id
                           ) AS is_restock
                   ) AS r
         ), stored AS (
            UPDATE chunks AS c
               SET voided = n.voided, expired = n.expired, restocked = n.restocked
              FROM counted AS n
             WHERE c.chunk_id = n.chunk_id
            RETURNING c.product_id, c.denomination, c.last_stock_id - c.first_stock_id + 1 - c.restocked AS loaded, c.voided,
                      c.expired
         ), added AS (
            INSERT INTO stock_totals AS t (product_id, denomination, loaded, voided, expired)
            SELECT s.product_id, s.denomination, sum(s.loaded), sum(s.voided), sum(s.expired)
              FROM stored AS s
             GROUP BY s.product_id, s.denomination
             ORDER BY s.product_id, s.denomination
            ON CONFLICT (product_id, denomination) DO UPDATE
               SET loaded = t.loaded + EXCLUDED.loaded,
                   voided = t.voided + EXCLUDED.voided,
                   expired = t.expired + EXCLUDED.expired
         )
         SELECT count(*) AS "chunks!" FROM stored"#,
        to_bigint(MAX_CHUNKS),
    );
    counted.fetch_one(pool).await
}

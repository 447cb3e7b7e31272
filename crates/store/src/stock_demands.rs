//! Demands for stock that other nodes own: the nodes poll them and release what they do not need.

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};
use vouchsafe_domain::stock::{DEMAND_VALIDITY, StockDemand, StockRequest, TAKEOVER_DELAY};

use super::node_identity::NodeIdentity;

/// How long a demand counts after its renewal.
pub(super) fn demand_validity() -> PgInterval {
    interval(DEMAND_VALIDITY)
}

fn interval(duration: std::time::Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}

/// Renews a node's demand. Returns whether the node may take over what it waits for: it has waited long
/// enough, and longer than the other nodes that demand the SKU.
pub(super) async fn renew(
    pool: &PgPool,
    node: &NodeIdentity,
    request: &StockRequest,
) -> Result<bool, sqlx::Error> {
    let may_take_over = sqlx::query_scalar!(
        r#"INSERT INTO stock_demands AS d (product_id, denomination, node, quantity, demanded_at, renewed_at)
           VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
           ON CONFLICT (product_id, denomination, node) DO UPDATE
              SET quantity = EXCLUDED.quantity,
                  demanded_at = CASE WHEN d.renewed_at < EXCLUDED.renewed_at - $5::interval THEN EXCLUDED.demanded_at
                                     ELSE LEAST(d.demanded_at, EXCLUDED.demanded_at) -- the clock may have been set back
                                END,
                  renewed_at = EXCLUDED.renewed_at
           RETURNING demanded_at <= renewed_at - $6::interval
                     AND NOT is_other_node_first_v1(node, product_id, denomination, $5) AS "may_take_over!""#,
        request.sku.product_id.as_str(),
        request.sku.denomination.minor(),
        node.name,
        i64::try_from(request.demanded).unwrap_or(i64::MAX),
        demand_validity(),
        interval(TAKEOVER_DELAY),
    );
    may_take_over.fetch_one(pool).await
}

/// Lists the demands of other nodes for SKUs of which this node owns stock, except those behind its own
/// demand.
pub(super) async fn list(pool: &PgPool, node: &NodeIdentity) -> Result<Vec<StockDemand>, sqlx::Error> {
    // Asked five times a second, and mostly there is none: the statement below may be planned to read the
    // node's chunks first.
    let is_any = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM stock_demands AS d WHERE d.node <> $1) AS "is_any!""#,
        node.name
    );
    if !is_any.fetch_one(pool).await? {
        return Ok(Vec::new());
    }
    let demands = sqlx::query!(
        r#"SELECT d.product_id AS "product_id: ProductId", d.denomination AS "denomination: Amount", d.quantity
             FROM stock_demands AS d
            WHERE d.node <> $1
              AND d.renewed_at >= clock_timestamp() - $3::interval
              AND d.renewed_at <= clock_timestamp() + interval '10 seconds'
              AND is_other_node_first_v1($1, d.product_id, d.denomination, $3)
              AND EXISTS (
                  SELECT
                    FROM chunks AS c
                   WHERE c.product_id = d.product_id
                     AND c.denomination = d.denomination
                     AND NOT c.emptied
                     AND c.reservation_id IS NULL
                     AND c.node = $1
                     AND c.incarnation = $2
                  )"#,
        node.name,
        node.incarnation,
        demand_validity(),
    );
    let demands = demands.fetch_all(pool).await?.into_iter().map(|row| StockDemand {
        sku: Sku {
            product_id: row.product_id,
            denomination: row.denomination,
        },
        quantity: usize::try_from(row.quantity).unwrap_or_default(),
    });
    Ok(demands.collect())
}

/// Releases the chunks of a SKU that this node owns, except `kept` and those that a commit has locked.
pub(super) async fn release(
    pool: &PgPool,
    node: &NodeIdentity,
    sku: &Sku,
    kept: &[i64],
) -> Result<(), sqlx::Error> {
    let released = sqlx::query!(
        "UPDATE chunks
            SET node = NULL, incarnation = NULL
          WHERE chunk_id IN (
                SELECT c.chunk_id
                  FROM chunks AS c
                 WHERE c.product_id = $1
                   AND c.denomination = $2
                   AND NOT c.emptied
                   AND c.reservation_id IS NULL
                   AND c.node = $3
                   AND c.incarnation = $4
                   AND NOT c.chunk_id = ANY ($5)
                   FOR NO KEY UPDATE SKIP LOCKED
                )",
        sku.product_id.as_str(),
        sku.denomination.minor(),
        node.name,
        node.incarnation,
        kept,
    );
    released.execute(pool).await.map(drop)
}

/// Ends a node's demands for some SKUs.
pub(super) async fn end(pool: &PgPool, node: &NodeIdentity, skus: &[&Sku]) -> Result<(), sqlx::Error> {
    let products: Vec<&str> = skus.iter().map(|sku| sku.product_id.as_str()).collect();
    let denominations: Vec<i64> = skus.iter().map(|sku| sku.denomination.minor()).collect();
    let ended = sqlx::query!(
        "DELETE FROM stock_demands AS d
          USING unnest($2::text[], $3::bigint[]) AS s (product_id, denomination)
          WHERE d.product_id = s.product_id AND d.denomination = s.denomination AND d.node = $1",
        node.name,
        &products as &[&str],
        &denominations,
    );
    ended.execute(pool).await.map(drop)
}

/// Deletes demands that ended long ago, or seem to be renewed in the future because the database's clock was
/// set back.
pub(super) async fn purge_ended(pool: &PgPool) -> Result<(), sqlx::Error> {
    let deleted = sqlx::query!(
        "DELETE FROM stock_demands
          WHERE renewed_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute'"
    );
    deleted.execute(pool).await.map(drop)
}

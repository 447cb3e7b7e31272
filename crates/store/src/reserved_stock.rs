//! Reserved stock: chunks that no shelf claims, reserved for a purchase's order or for the orders that wait
//! for the SKU.
//!
//! `chunks.reservation_id` holds the reservation. The id of an open purchase reserves for that purchase's
//! order; any other id reserves for waiting orders, oldest first, until the stock is allocated or released.

use uuid::Uuid;
use vouchsafe_actors::ports::vendors::ReservedStock;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};

use vouchsafe_database::database::Database;

/// Stock that is reserved for a purchase or for waiting orders.
#[derive(Debug, Clone)]
pub struct Reservations(pub(super) Database);

impl Reservations {
    /// Ends the reservation of what remains of a purchase: reserves it for the orders that wait for the SKU,
    /// or releases it if there are none. Returns the SKU if anything remained. Locks the chunks in the order
    /// of their ids, as commits do.
    #[boxed]
    pub async fn release_remainder(&self, purchase_id: Uuid) -> Result<Option<Sku>, StoreError> {
        let statement = sqlx::query_as!(
            Sku,
            r#"WITH next_reservation AS MATERIALIZED (
                SELECT gen_random_uuid() AS reservation_id
                  FROM purchases AS p
                 WHERE p.purchase_id = $1
                   AND EXISTS (
                       SELECT
                         FROM order_demands AS d
                        WHERE d.product_id = p.product_id AND d.denomination = p.denomination
                       )
             ), remainder AS MATERIALIZED (
                SELECT c.chunk_id
                  FROM chunks AS c
                 WHERE c.reservation_id = $1
                 ORDER BY c.chunk_id
                   FOR NO KEY UPDATE
             )
             UPDATE chunks AS c
                SET reservation_id = (SELECT n.reservation_id FROM next_reservation AS n)
              WHERE c.chunk_id = ANY (ARRAY(SELECT r.chunk_id FROM remainder AS r))
             RETURNING c.product_id AS "product_id: ProductId", c.denomination AS "denomination: Amount""#,
            purchase_id,
        );
        self.0.fetch_optional(statement).await
    }

    /// Lists about `limit` reservations for waiting orders, oldest first: each SKU has an equal share, and at
    /// least one reservation.
    #[boxed]
    pub async fn list(&self, limit: usize) -> Result<Vec<ReservedStock>, StoreError> {
        let statement = sqlx::query!(
            r#"WITH reservations AS MATERIALIZED (
                SELECT c.product_id, c.denomination, c.reservation_id, min(c.chunk_id) AS chunk_id,
                       row_number() OVER (PARTITION BY c.product_id, c.denomination ORDER BY min(c.chunk_id)) AS position
                  FROM chunks AS c
                 WHERE c.reservation_id IS NOT NULL
                   AND c.cleared_epoch = (SELECT quarantine_epoch_v1())
                   AND NOT EXISTS (
                       SELECT
                         FROM purchases AS p
                        WHERE p.purchase_id = c.reservation_id AND NOT p.ended
                       )
                 GROUP BY c.product_id, c.denomination, c.reservation_id
             )
             SELECT r.product_id AS "product_id: ProductId", r.denomination AS "denomination: Amount",
                    array_agg(r.reservation_id ORDER BY r.chunk_id) AS "reservation_ids!"
               FROM reservations AS r
              WHERE r.position <= GREATEST($1 / (SELECT count(*) FROM reservations AS f WHERE f.position = 1), 1)
              GROUP BY r.product_id, r.denomination
              ORDER BY min(r.chunk_id)"#,
            to_bigint(limit),
        )
        .map(|row| ReservedStock {
            sku: Sku {
                product_id: row.product_id,
                denomination: row.denomination,
            },
            reservation_ids: row.reservation_ids,
        });
        self.0.fetch_all(statement).await
    }

    /// Releases reservations: any shelf may claim the stock. Locks the chunks in the order of their ids, as
    /// commits do.
    #[boxed]
    pub async fn release(&self, reservation_ids: Vec<Uuid>) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "WITH released AS MATERIALIZED (
                SELECT c.chunk_id
                  FROM chunks AS c
                 WHERE c.reservation_id = ANY ($1)
                 ORDER BY c.chunk_id
                   FOR NO KEY UPDATE
             )
             UPDATE chunks AS c
                SET reservation_id = NULL
              WHERE c.chunk_id = ANY (ARRAY(SELECT r.chunk_id FROM released AS r))",
            &reservation_ids,
        );
        self.0.execute(statement).await
    }
}

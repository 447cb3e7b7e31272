//! Reserved stock: chunks that no shelf claims, reserved for a purchase's order or for the orders that wait for the SKU.
//!
//! `chunks.reservation_id` holds the reservation. The id of an open purchase reserves for that purchase's order; any other id
//! reserves for waiting orders, oldest first, until the stock is allocated or released.

use uuid::Uuid;
use vouchsafe_actors::ports::vendors::ReservedStock;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};

use super::audit::to_bigint;
use super::database::Database;

/// Stock that is reserved for a purchase or for waiting orders.
#[derive(Debug, Clone)]
pub struct Reservations(pub(super) Database);

impl Reservations {
    /// Ends the reservation of what remains of a purchase: reserves it for the orders that wait for the SKU, or releases it if
    /// there are none. Returns the SKU if anything remained.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn release_remainder(&self, purchase_id: Uuid) -> Result<Option<Sku>, sqlx::Error> {
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
             )
             UPDATE chunks AS c
                SET reservation_id = (SELECT n.reservation_id FROM next_reservation AS n)
              WHERE c.reservation_id = $1
             RETURNING c.product_id AS "product_id: ProductId", c.denomination AS "denomination: Amount""#,
            purchase_id,
        );
        self.0.fetch_optional(statement).await
    }

    /// Lists up to `limit` reservations for waiting orders, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(&self, limit: usize) -> Result<Vec<ReservedStock>, sqlx::Error> {
        let statement = sqlx::query!(
            r#"SELECT c.reservation_id AS "reservation_id!", c.product_id AS "product_id: ProductId",
                    c.denomination AS "denomination: Amount"
               FROM chunks AS c
              WHERE c.reservation_id IS NOT NULL
                AND NOT EXISTS (
                    SELECT
                      FROM purchases AS p
                     WHERE p.purchase_id = c.reservation_id AND NOT p.ended
                    )
              GROUP BY c.reservation_id, c.product_id, c.denomination
              ORDER BY min(c.chunk_id)
              LIMIT $1"#,
            to_bigint(limit),
        )
        .map(|row| ReservedStock {
            reservation_id: row.reservation_id,
            sku: Sku {
                product_id: row.product_id,
                denomination: row.denomination,
            },
        });
        self.0.fetch_all(statement).await
    }

    /// Releases a reservation: any shelf may claim the stock.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn release(&self, reservation_id: Uuid) -> Result<(), sqlx::Error> {
        let statement = sqlx::query!(
            "UPDATE chunks SET reservation_id = NULL WHERE reservation_id = $1",
            reservation_id,
        );
        self.0.execute(statement).await
    }
}

//! Reserved stock: chunks that no shelf claims, reserved for a purchase's order or for the orders that wait for the SKU.
//!
//! `chunks.reservation_id` holds the reservation. The id of an open purchase reserves for that purchase's order; any other id
//! reserves for waiting orders, oldest first, until the stock is allocated or released.

use uuid::Uuid;
use vouchsafe_actors::ports::vendors::ReservedStock;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::Sku;

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
        let released: Option<(String, i64)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "WITH next_reservation AS MATERIALIZED (
                        SELECT gen_random_uuid() AS reservation_id
                          FROM purchases AS p
                         WHERE p.purchase_id = $1
                           AND EXISTS (SELECT FROM orders_waiting_for_stock_v1(p.product_id, p.denomination, NULL, 1))
                     )
                     UPDATE chunks AS c
                        SET reservation_id = (SELECT n.reservation_id FROM next_reservation AS n)
                      WHERE c.reservation_id = $1
                     RETURNING c.product_id, c.denomination",
                )
                .bind(purchase_id)
                .fetch_optional(&pool)
                .await
            })
            .await?;
        released
            .map(|(product_id, face)| parse_sku(&product_id, face))
            .transpose()
    }

    /// Lists up to `limit` reservations for waiting orders, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(&self, limit: usize) -> Result<Vec<ReservedStock>, sqlx::Error> {
        let found: Vec<(Uuid, String, i64)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT c.reservation_id, c.product_id, c.denomination
                       FROM chunks AS c
                      WHERE c.reservation_id IS NOT NULL
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS p
                             WHERE p.purchase_id = c.reservation_id AND NOT p.ended
                            )
                      GROUP BY c.reservation_id, c.product_id, c.denomination
                      ORDER BY min(c.chunk_id)
                      LIMIT $1",
                )
                .bind(to_bigint(limit))
                .fetch_all(&pool)
                .await
            })
            .await?;
        let reserved = |(reservation_id, product_id, face): (Uuid, String, i64)| {
            let sku = parse_sku(&product_id, face)?;
            Ok(ReservedStock { reservation_id, sku })
        };
        found.into_iter().map(reserved).collect()
    }

    /// Finds the oldest order after `after` that waits for vouchers of a SKU.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_oldest_waiting_order(
        &self,
        sku: Sku,
        after: Option<OrderId>,
    ) -> Result<Option<(PartnerId, OrderId)>, sqlx::Error> {
        let first: Option<(Uuid, Uuid)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as("SELECT w.partner_id, w.order_id FROM orders_waiting_for_stock_v1($1, $2, $3, 1) AS w")
                    .bind(sku.product_id.as_str())
                    .bind(sku.denomination.minor())
                    .bind(after.map(OrderId::as_uuid))
                    .fetch_optional(&pool)
                    .await
            })
            .await?;
        let ids = |(partner, order)| (PartnerId::from_uuid(partner), OrderId::from_uuid(order));
        Ok(first.map(ids))
    }

    /// Releases a reservation: any shelf may claim the stock.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn release(&self, reservation_id: Uuid) -> Result<(), sqlx::Error> {
        self.0
            .run(move |pool| async move {
                sqlx::query("UPDATE chunks SET reservation_id = NULL WHERE reservation_id = $1")
                    .bind(reservation_id)
                    .execute(&pool)
                    .await
                    .map(drop)
            })
            .await
    }
}

pub(super) fn parse_sku(product_id: &str, denomination: i64) -> Result<Sku, sqlx::Error> {
    let product_id = product_id.parse();
    Ok(Sku {
        product_id: product_id.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        denomination: Amount::from_minor(denomination),
    })
}

//! Stock that is kept for orders: for that of its purchase, or for whoever waits for its SKU. No shelf claims it.
//!
//! Rule: what is kept under the id of a purchase that goes on is for its order; what is kept under any other id is for those
//! who wait, oldest first, and is found here until it was given out or released.

use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::procurement::KeptStock;

use super::PgStore;
use super::audit::rows;

impl PgStore {
    /// What is left of a purchase is for its order no more: for those who wait for the SKU, if anybody does, else for any
    /// shelf. Gives the SKU if there was anything.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn pass_on(&self, purchase_id: Uuid) -> Result<Option<Sku>, sqlx::Error> {
        let passed: Option<(String, i64)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "WITH heir AS MATERIALIZED (
                        SELECT gen_random_uuid() AS kept_id
                          FROM purchases AS p
                         WHERE p.purchase_id = $1
                           AND EXISTS (SELECT FROM waiting_for(p.product_id, p.denomination, NULL, 1))
                     )
                     UPDATE chunks AS c
                        SET purchase_id = (SELECT h.kept_id FROM heir AS h)
                      WHERE c.purchase_id = $1
                     RETURNING c.product_id, c.denomination",
                )
                .bind(purchase_id)
                .fetch_optional(&pool)
                .await
            })
            .await?;
        passed
            .map(|(product_id, face)| sku_of(&product_id, face))
            .transpose()
    }

    /// Up to `limit` ids under which stock is kept for whoever waits, what came first first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn kept_stock(&self, limit: usize) -> Result<Vec<KeptStock>, sqlx::Error> {
        let found: Vec<(Uuid, String, i64)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT c.purchase_id, c.product_id, c.denomination
                       FROM chunks AS c
                      WHERE c.purchase_id IS NOT NULL
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS p
                             WHERE p.purchase_id = c.purchase_id AND NOT p.ended
                            )
                      GROUP BY c.purchase_id, c.product_id, c.denomination
                      ORDER BY min(c.chunk_id)
                      LIMIT $1",
                )
                .bind(rows(limit))
                .fetch_all(&pool)
                .await
            })
            .await?;
        let kept = |(kept_id, product_id, face): (Uuid, String, i64)| {
            let sku = sku_of(&product_id, face)?;
            Ok(KeptStock { kept_id, sku })
        };
        found.into_iter().map(kept).collect()
    }

    /// The oldest order that waits for vouchers of a SKU, of those after `after`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn first_in_line(
        &self,
        sku: Sku,
        after: Option<OrderId>,
    ) -> Result<Option<(PartnerId, OrderId)>, sqlx::Error> {
        let first: Option<(Uuid, Uuid)> = self
            .run(move |pool| async move {
                sqlx::query_as("SELECT w.partner_id, w.order_id FROM waiting_for($1, $2, $3, 1) AS w")
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

    /// What is kept under this id is kept for nobody any more: any shelf may claim it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn release(&self, kept_id: Uuid) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query("UPDATE chunks SET purchase_id = NULL WHERE purchase_id = $1")
                .bind(kept_id)
                .execute(&pool)
                .await
                .map(drop)
        })
        .await
    }
}

/// The SKU of these columns.
pub(super) fn sku_of(product_id: &str, denomination: i64) -> Result<Sku, sqlx::Error> {
    let product_id = product_id.parse();
    Ok(Sku {
        product_id: product_id.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        denomination: Amount::from_minor(denomination),
    })
}

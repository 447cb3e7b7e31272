//! Purchases from vendors, one per order line.
//!
//! A purchase is stored before its request is sent and its request never changes: a retry under the same idempotency key repeats
//! the same request.

pub(super) mod answers;
mod claims;
pub(super) mod view;

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::ports::vendors::WaitingOrder;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::product::ExpiryPolicy;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};

use super::audit::to_bigint;
use super::database::Database;

/// A purchase to be created for an order line.
#[derive(Debug, Clone)]
pub struct NewPurchase {
    /// Index of the order line, from 0.
    pub line: u16,
    pub vendor: String,
    pub request: BuyRequest,
}

/// A purchase with its request to the vendor.
#[derive(Debug, Clone)]
pub struct Purchase {
    pub vendor: String,
    /// Request with its idempotency key.
    pub request: BuyRequest,
}

#[derive(sqlx::FromRow)]
struct PurchaseRow {
    purchase_id: Uuid,
    vendor: String,
    product_id: String,
    denomination: i64,
    currency: String,
    quantity: i32,
    expiry_policy: Json<ExpiryPolicy>,
    requested_at: OffsetDateTime,
}

/// Purchases of vouchers from vendors.
#[derive(Debug, Clone)]
pub struct Purchases(pub(super) Database);

impl Purchases {
    /// Lists up to `limit` orders after `after` that wait for a vendor and have no open purchase, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_orders_awaiting_vendor(
        &self,
        after: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<WaitingOrder>, sqlx::Error> {
        let found: Vec<(Uuid, Uuid, bool)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT o.partner_id, o.order_id,
                            EXISTS (
                            SELECT
                              FROM purchases AS p
                             WHERE p.partner_id = o.partner_id AND p.order_id = o.order_id
                            )
                       FROM orders AS o
                      WHERE o.pending_reason = 'VENDOR'
                        AND NOT o.closed
                        AND ($2::uuid IS NULL OR o.order_id > $2)
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS p
                             WHERE p.partner_id = o.partner_id AND p.order_id = o.order_id AND NOT p.ended
                            )
                      ORDER BY o.order_id
                      LIMIT $1",
                )
                .bind(to_bigint(limit))
                .bind(after.map(OrderId::as_uuid))
                .fetch_all(&pool)
                .await
            })
            .await?;
        let waiting = found
            .into_iter()
            .map(|(partner_id, order_id, bought)| WaitingOrder {
                partner_id: PartnerId::from_uuid(partner_id),
                order_id: OrderId::from_uuid(order_id),
                was_purchased: bought,
            });
        Ok(waiting.collect())
    }

    /// Creates purchases for an order. A line that has a purchase keeps it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn create(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        purchases: Vec<NewPurchase>,
    ) -> Result<(), sqlx::Error> {
        self.0.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            for NewPurchase { line, vendor, request } in purchases {
                sqlx::query(
                    "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination,
                                            currency, quantity, expiry_policy, requested_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
                     ON CONFLICT (partner_id, order_id, line) DO NOTHING",
                )
                .bind(request.key.0)
                .bind(partner_id.as_uuid())
                .bind(order_id.as_uuid())
                .bind(line.cast_signed())
                .bind(vendor)
                .bind(request.product_id.as_str())
                .bind(request.denomination.amount.minor())
                .bind(request.denomination.currency.as_str())
                .bind(request.quantity.cast_signed())
                .bind(Json(&request.expiry_policy))
                .bind(request.requested_at)
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        })
        .await
    }

    /// Finds a purchase with its request.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or the purchase does not exist.
    pub async fn find(&self, purchase_id: Uuid) -> Result<Purchase, sqlx::Error> {
        let row: PurchaseRow = self
            .0
            .run(move |pool| async move {
                sqlx::query_as("SELECT * FROM purchases WHERE purchase_id = $1")
                    .bind(purchase_id)
                    .fetch_one(&pool)
                    .await
            })
            .await?;
        Purchase::try_from(row)
    }

    /// Lists the open purchases of an order with their line indexes.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_open(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Vec<(u16, Uuid)>, sqlx::Error> {
        let found: Vec<(i16, Uuid)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT p.line, p.purchase_id
                       FROM purchases AS p
                      WHERE p.partner_id = $1 AND p.order_id = $2 AND NOT p.ended
                      ORDER BY p.line",
                )
                .bind(partner_id.as_uuid())
                .bind(order_id.as_uuid())
                .fetch_all(&pool)
                .await
            })
            .await?;
        let found = found.into_iter();
        Ok(found
            .map(|(line, purchase_id)| (line.cast_unsigned(), purchase_id))
            .collect())
    }
}

impl TryFrom<PurchaseRow> for Purchase {
    type Error = sqlx::Error;

    fn try_from(row: PurchaseRow) -> Result<Self, sqlx::Error> {
        let invalid = |column: &str| {
            sqlx::Error::Decode(format!("purchase {} has an invalid {column}", row.purchase_id).into())
        };
        let currency = row.currency.parse().map_err(|_| invalid("currency"))?;
        let denomination: Money = Amount::from_minor(row.denomination).of(currency);
        Ok(Self {
            request: BuyRequest {
                key: PurchaseKey(row.purchase_id),
                product_id: row.product_id.parse().map_err(|_| invalid("product"))?,
                denomination,
                quantity: u32::try_from(row.quantity).map_err(|_| invalid("quantity"))?,
                requested_at: row.requested_at,
                expiry_policy: row.expiry_policy.0,
            },
            vendor: row.vendor,
        })
    }
}

//! Purchases: what is bought for the lines of orders, from the wish to the last word of the vendor.
//!
//! Rule: a purchase is here before its vendor hears of it, and stays as it was written down: what was asked for under a key
//! is asked for in the same words again.

mod claims;
pub(super) mod shown;
pub(super) mod words;

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::money::{Amount, Money};
use vouchsafe_actors::domain::product::ExpiryPolicy;
use vouchsafe_actors::procurement::WaitingOrder;

use super::PgStore;
use super::audit::rows;
use crate::vendor::{BuyRequest, PurchaseKey};

/// What is to be bought for a line of an order.
#[derive(Debug, Clone)]
pub struct NewPurchase {
    /// For which line, from 0.
    pub line: u16,
    pub vendor: String,
    pub request: BuyRequest,
}

/// A purchase as its vendor is asked about it.
#[derive(Debug, Clone)]
pub struct Purchase {
    pub vendor: String,
    /// What, under its key.
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

impl PgStore {
    /// Up to `limit` orders after `after` that wait for a vendor and for which nothing is being bought, oldest first: not yet,
    /// or not any more.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn orders_for_vendors(
        &self,
        after: Option<OrderId>,
        limit: usize,
    ) -> Result<Vec<WaitingOrder>, sqlx::Error> {
        let found: Vec<(Uuid, Uuid, bool)> = self
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
                .bind(rows(limit))
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
                bought,
            });
        Ok(waiting.collect())
    }

    /// Writes down what is to be bought for an order; a line that has its purchase keeps it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn open_purchases(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        purchases: Vec<NewPurchase>,
    ) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
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

    /// A purchase as its vendor is asked about it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or there is no such purchase.
    pub async fn find_purchase(&self, purchase_id: Uuid) -> Result<Purchase, sqlx::Error> {
        let row: PurchaseRow = self
            .run(move |pool| async move {
                sqlx::query_as("SELECT * FROM purchases WHERE purchase_id = $1")
                    .bind(purchase_id)
                    .fetch_one(&pool)
                    .await
            })
            .await?;
        Purchase::try_from(row)
    }

    /// The purchases of an order that go on, by the line that each is for.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn open_purchases_of(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Vec<(u16, Uuid)>, sqlx::Error> {
        let found: Vec<(i16, Uuid)> = self
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
        let impossible = |what: &str| {
            sqlx::Error::Decode(format!("purchase {} has an impossible {what}", row.purchase_id).into())
        };
        let currency = row.currency.parse().map_err(|_| impossible("currency"))?;
        let denomination: Money = Amount::from_minor(row.denomination).of(currency);
        Ok(Self {
            request: BuyRequest {
                key: PurchaseKey(row.purchase_id),
                product_id: row.product_id.parse().map_err(|_| impossible("product"))?,
                denomination,
                quantity: u32::try_from(row.quantity).map_err(|_| impossible("quantity"))?,
                requested_at: row.requested_at,
                expiry_policy: row.expiry_policy.0,
            },
            vendor: row.vendor,
        })
    }
}

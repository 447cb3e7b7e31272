//! Purchases: what is bought for the lines of orders, from the wish to the last word of the vendor.
//!
//! Rule: a purchase is here before its vendor hears of it, and is asked about by one node at a time, under its claim; a
//! claim that its node does not give back ends by itself.

use sqlx::types::Json;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::money::{Amount, Money};
use vouchsafe_actors::domain::product::ExpiryPolicy;

use super::PgStore;
use super::audit::rows;
use crate::vendor::{BuyRequest, PurchaseKey};

/// How long a node may ask about a purchase before another one does. Longer than a vendor is waited for. Seconds.
const CLAIM_S: i32 = 120;

/// An order that waits for a vendor.
#[derive(Debug, Clone, Copy)]
pub struct WaitingOrder {
    /// Whose.
    pub partner_id: PartnerId,
    /// Which.
    pub order_id: OrderId,
    /// Whether something was bought for it, and nothing more comes of that.
    pub bought: bool,
}

/// What is to be bought for a line of an order.
#[derive(Debug, Clone)]
pub struct NewPurchase {
    /// For which line, from 0.
    pub line: u16,
    /// From whom.
    pub vendor: String,
    /// What.
    pub request: BuyRequest,
}

/// A purchase that is due.
#[derive(Debug, Clone)]
pub struct Purchase {
    /// Whose order it is for.
    pub partner_id: PartnerId,
    /// Which.
    pub order_id: OrderId,
    /// For which line, from 0.
    pub line: u16,
    /// What, under its key.
    pub request: BuyRequest,
    /// Whether the vendor may have heard of it.
    pub asked: bool,
}

/// What became of asking about a purchase.
#[derive(Debug, Clone)]
pub struct Noted {
    /// Which.
    pub key: PurchaseKey,
    /// Nothing more comes of it.
    pub ended: bool,
    /// When it is asked about again.
    pub after: Duration,
    /// Why it is not all bought. No code: it never quotes the vendor.
    pub last_word: Option<String>,
}

#[derive(sqlx::FromRow)]
struct PurchaseRow {
    purchase_id: Uuid,
    partner_id: Uuid,
    order_id: Uuid,
    line: i16,
    product_id: String,
    denomination: i64,
    currency: String,
    quantity: i32,
    expiry_policy: Json<ExpiryPolicy>,
    requested_at: OffsetDateTime,
    asked_before: bool,
}

impl PgStore {
    /// Up to `limit` orders that wait for a vendor and for which nothing is being bought, oldest first: not yet, or not any
    /// more.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn orders_for_vendors(&self, limit: usize) -> Result<Vec<WaitingOrder>, sqlx::Error> {
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
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS p
                             WHERE p.partner_id = o.partner_id AND p.order_id = o.order_id AND NOT p.ended
                            )
                      ORDER BY o.order_id
                      LIMIT $1",
                )
                .bind(rows(limit))
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

    /// What was bought under a purchase and not delivered is kept for nobody any more: any shelf may claim it. Says
    /// whether there was anything.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn release_bought(&self, key: PurchaseKey) -> Result<bool, sqlx::Error> {
        self.run(move |pool| async move {
            let released = sqlx::query("UPDATE chunks SET purchase_id = NULL WHERE purchase_id = $1")
                .bind(key.0)
                .execute(&pool)
                .await?;
            Ok(released.rows_affected() > 0)
        })
        .await
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

    /// Claims up to `limit` purchases of a vendor that are due; from here on the vendor may have heard of them.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn claim_purchases(
        &self,
        node: String,
        vendor: String,
        limit: usize,
    ) -> Result<Vec<Purchase>, sqlx::Error> {
        let found: Vec<PurchaseRow> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "WITH due AS MATERIALIZED (
                        SELECT p.purchase_id, p.asked
                          FROM purchases AS p
                         WHERE p.vendor = $1
                           AND NOT p.ended
                           AND p.next_at <= clock_timestamp()
                           AND (p.claimed_until IS NULL OR p.claimed_until < clock_timestamp())
                         ORDER BY p.next_at
                         LIMIT $2
                           FOR UPDATE SKIP LOCKED
                     )
                     UPDATE purchases AS p
                        SET asked = true,
                            claimed_by = $4,
                            claimed_until = clock_timestamp() + make_interval(secs => $3)
                       FROM due AS d
                      WHERE p.purchase_id = d.purchase_id
                     RETURNING p.*, d.asked AS asked_before",
                )
                .bind(vendor)
                .bind(rows(limit))
                .bind(f64::from(CLAIM_S))
                .bind(node)
                .fetch_all(&pool)
                .await
            })
            .await?;
        found.into_iter().map(Purchase::try_from).collect()
    }

    /// Gives back what an earlier start of this node has claimed.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn free_purchases(&self, node: String) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query("UPDATE purchases SET claimed_until = NULL WHERE NOT ended AND claimed_by = $1")
                .bind(node)
                .execute(&pool)
                .await
                .map(drop)
        })
        .await
    }

    /// How many vouchers of a purchase are in stock, or were.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn count_bought(&self, key: PurchaseKey) -> Result<u32, sqlx::Error> {
        let count: i64 = self
            .run(move |pool| async move {
                sqlx::query_scalar("SELECT count(*) FROM codes WHERE purchase_id = $1")
                    .bind(key.0)
                    .fetch_one(&pool)
                    .await
            })
            .await?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Notes what came of asking, and gives the claim back.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn note_purchase(&self, noted: Noted) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE purchases
                    SET ended = $2,
                        next_at = clock_timestamp() + make_interval(secs => $3),
                        last_word = $4,
                        claimed_until = NULL
                  WHERE purchase_id = $1",
            )
            .bind(noted.key.0)
            .bind(noted.ended)
            .bind(noted.after.as_seconds_f64())
            .bind(noted.last_word)
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
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
            partner_id: PartnerId::from_uuid(row.partner_id),
            order_id: OrderId::from_uuid(row.order_id),
            line: u16::try_from(row.line).map_err(|_| impossible("line"))?,
            request: BuyRequest {
                key: PurchaseKey(row.purchase_id),
                product_id: row.product_id.parse().map_err(|_| impossible("product"))?,
                denomination,
                quantity: u32::try_from(row.quantity).map_err(|_| impossible("quantity"))?,
                requested_at: row.requested_at,
                expiry_policy: row.expiry_policy.0,
            },
            asked: row.asked_before,
        })
    }
}

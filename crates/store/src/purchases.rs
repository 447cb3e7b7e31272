//! Purchases from vendors, one per order line.
//!
//! A purchase is stored before its request is sent and its request never changes: a retry under the same
//! idempotency key repeats the same request.

pub(super) mod answers;
mod claims;
pub(super) mod view;
mod writes;

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};

pub use self::writes::PurchaseWrites;
use self::writes::WritePurchases;
use vouchsafe_database::batcher::{Batcher, BatcherKind};
use vouchsafe_database::database::Database;

/// Selects [`Purchase`]s with the rest of a statement.
macro_rules! select_purchases {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            r#"SELECT purchase_id AS "key: PurchaseKey", vendor, product_id AS "product_id: ProductId",
                    denomination AS "denomination: Amount", currency AS "currency: Currency", quantity,
                    expiry_policy AS "expiry_policy: Json<ExpiryPolicy>", requested_at
               FROM purchases "# + $rest,
            $($argument),+
        )
        .map(|row| Purchase {
            vendor: row.vendor,
            request: BuyRequest {
                key: row.key,
                product_id: row.product_id,
                denomination: row.denomination.of(row.currency),
                quantity: row.quantity.cast_unsigned(),
                requested_at: row.requested_at,
                expiry_policy: row.expiry_policy.0,
            },
        })
    };
}

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

/// Purchases of vouchers from vendors.
#[derive(Debug, Clone)]
pub struct Purchases(pub(super) Database);

impl Purchases {
    /// Starts a worker that writes the steps of many purchases in one transaction. It ends with the last
    /// clone of the result.
    #[must_use]
    pub fn start_writes(&self, node: String) -> PurchaseWrites {
        PurchaseWrites(Batcher::start(
            &self.0,
            &WritePurchases { node },
            BatcherKind::Write,
        ))
    }

    /// Finds a purchase with its request.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or the purchase does not exist.
    #[boxed]
    pub async fn find(&self, purchase_id: Uuid) -> Result<Purchase, StoreError> {
        let statement = select_purchases!("WHERE purchase_id = $1", purchase_id);
        self.0
            .fetch_optional(statement)
            .await?
            .ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Lists up to `limit` requests that a vendor was sent and has not declined, requested between these
    /// times, after the one with this time and id.
    #[boxed]
    pub async fn list_sent(
        &self,
        vendor: String,
        from: OffsetDateTime,
        to: OffsetDateTime,
        after: Option<(OffsetDateTime, Uuid)>,
        limit: usize,
    ) -> Result<Vec<BuyRequest>, StoreError> {
        let (after_time, after_id) = after.unzip();
        let statement = select_purchases!(
            "WHERE vendor = $1
               AND sent
               AND last_response IS DISTINCT FROM 'NOT_SOLD'
               AND requested_at >= $2
               AND requested_at < $3
               AND ($4::timestamptz IS NULL OR (requested_at, purchase_id) > ($4, $5::uuid))
             ORDER BY requested_at, purchase_id
             LIMIT $6",
            vendor,
            from,
            to,
            after_time,
            after_id,
            to_bigint(limit),
        );
        let purchases = self.0.fetch_all(statement).await?.into_iter();
        Ok(purchases.map(|purchase| purchase.request).collect())
    }

    /// Lists the open purchases of an order with their line indexes.
    #[boxed]
    pub async fn list_open(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
    ) -> Result<Vec<(u16, Uuid)>, StoreError> {
        let statement = sqlx::query!(
            "SELECT p.line, p.purchase_id
               FROM purchases AS p
              WHERE p.partner_id = $1 AND p.order_id = $2 AND NOT p.ended
              ORDER BY p.line",
            partner_id as _,
            order_id as _,
        )
        .map(|row| (row.line.cast_unsigned(), row.purchase_id));
        self.0.fetch_all(statement).await
    }
}

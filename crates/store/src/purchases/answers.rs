//! Last vendor response of a purchase: result, reason, number of sold vouchers and quarantined vouchers.
//!
//! No text here quotes a vendor, because its responses may contain codes.

use std::time::Duration;

use vouchsafe_domain::product::Sku;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::purchase::view::LastAnswer;

use crate::purchases::Purchases;
use crate::reserved_stock::parse_sku;

/// Result of a request to the vendor, to be stored with the purchase.
#[derive(Debug, Clone)]
pub struct PurchaseUpdate {
    pub key: PurchaseKey,
    pub last_response: LastAnswer,
    /// Why vouchers are missing. Never quotes the vendor, whose text may contain a code.
    pub last_message: Option<String>,
    /// Number of vouchers sold so far, if the response contained it.
    pub sold: Option<u32>,
    /// Vendor references of vouchers whose codes were sold before; they are not stored.
    pub quarantined: Vec<String>,
}

impl Purchases {
    /// Lists the vendor references of the vouchers stored for a purchase.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_bought_references(&self, key: PurchaseKey) -> Result<Vec<String>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                sqlx::query_scalar(
                    "SELECT vendor_reference
                   FROM codes
                  WHERE purchase_id = $1 AND vendor_reference IS NOT NULL",
                )
                .bind(key.0)
                .fetch_all(&pool)
                .await
            })
            .await
    }

    /// Stores the result of a request, unless the purchase was ended meanwhile.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn record_update(&self, update: PurchaseUpdate) -> Result<(), sqlx::Error> {
        self.0
            .run(move |pool| async move {
                sqlx::query(
                    "UPDATE purchases
                    SET last_response = $2,
                        last_response_at = clock_timestamp(),
                        last_message = $3,
                        sold = COALESCE($4, sold),
                        quarantined = CASE WHEN $4 IS NULL THEN quarantined ELSE $5 END
                  WHERE purchase_id = $1 AND NOT ended",
                )
                .bind(update.key.0)
                .bind(update.last_response.as_str())
                .bind(update.last_message)
                .bind(update.sold.map(u32::cast_signed))
                .bind(update.quarantined)
                .execute(&pool)
                .await
                .map(drop)
            })
            .await
    }

    /// Lists the SKUs that their vendor reported as out of stock within the last `age`. Ignores reports from before the last change
    /// of the vendor or product, and from before a later sale.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_out_of_stock_skus(&self, age: Duration) -> Result<Vec<Sku>, sqlx::Error> {
        let found: Vec<(String, i64)> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT DISTINCT p.product_id, p.denomination
                       FROM purchases AS p
                       JOIN products AS d
                         ON d.product_id = p.product_id AND d.vendor = p.vendor AND d.updated_at < p.last_response_at
                       JOIN vendors AS v ON v.vendor_id = p.vendor AND v.updated_at < p.last_response_at
                      WHERE p.last_response = 'OUT_OF_STOCK'
                        AND p.last_response_at > clock_timestamp() - make_interval(secs => $1)
                        AND NOT EXISTS (
                            SELECT
                              FROM purchases AS s
                             WHERE s.product_id = p.product_id
                               AND s.denomination = p.denomination
                               AND s.sold > 0
                               AND s.last_response_at > p.last_response_at
                            )",
                )
                .bind(age.as_secs_f64())
                .fetch_all(&pool)
                .await
            })
            .await?;
        let skus = found.into_iter();
        skus.map(|(product_id, face)| parse_sku(&product_id, face))
            .collect()
    }
}

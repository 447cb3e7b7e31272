//! Last vendor response of a purchase: result, reason, number of sold vouchers and quarantined vouchers.
//!
//! No text here quotes a vendor, because its responses may contain codes.

use std::time::Duration;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::purchase::view::LastResponse;

use crate::purchases::Purchases;

/// Result of a request to the vendor, to be stored with the purchase.
#[derive(Debug, Clone)]
pub struct PurchaseUpdate {
    pub key: PurchaseKey,
    pub last_response: LastResponse,
    /// Why vouchers are missing. Never quotes the vendor, whose text may contain a code.
    pub last_message: Option<String>,
    /// Number of vouchers sold so far, if the response contained it.
    pub sold: Option<u32>,
    /// Vendor references of vouchers whose codes were sold before; they are not stored.
    pub quarantined: Vec<String>,
}

impl Purchases {
    /// Lists the vendor references of the vouchers stored for a purchase.
    #[boxed]
    pub async fn list_bought_references(&self, key: PurchaseKey) -> Result<Vec<String>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT vendor_reference AS "vendor_reference!"
               FROM codes
              WHERE purchase_id = $1 AND vendor_reference IS NOT NULL"#,
            key as _,
        )
        .map(|row| row.vendor_reference);
        self.0.fetch_all(statement).await
    }

    /// Lists the SKUs that their vendor reported as out of stock within the last `age`. Ignores reports from
    /// before the last change of the vendor or product, and from before a later sale.
    #[boxed]
    pub async fn list_out_of_stock_skus(&self, age: Duration) -> Result<Vec<Sku>, StoreError> {
        let statement = sqlx::query_as!(
            Sku,
            r#"SELECT DISTINCT p.product_id AS "product_id: ProductId", p.denomination AS "denomination: Amount"
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
                    )"#,
            age.as_secs_f64(),
        );
        self.0.fetch_all(statement).await
    }
}

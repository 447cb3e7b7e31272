//! Vouchers of both sides of a comparison, and their terms as a drift stores them.

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row as _};
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::{OwnVoucher, VendorEntry, VoucherTerms};

/// A voucher that we bought, and the order that it was bought for.
pub(super) struct HeldVoucher {
    pub(super) position: i64,
    pub(super) code_id: i64,
    pub(super) order: (PartnerId, OrderId),
    pub(super) voucher: OwnVoucher,
}

/// A record of the vendor, and the order that the voucher was bought for if it is known.
pub(super) struct RecordedVoucher {
    pub(super) order: Option<(PartnerId, OrderId)>,
    pub(super) entry: VendorEntry,
}

/// Terms of a voucher, as columns and as the JSON of a drift.
#[derive(Debug, Serialize, Deserialize, FromRow)]
pub(super) struct StoredTerms {
    purchase_id: Option<PurchaseKey>,
    product_id: ProductId,
    denomination: Amount,
    currency: Currency,
}

impl FromRow<'_, PgRow> for HeldVoucher {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            position: row.try_get("position")?,
            code_id: row.try_get("code_id")?,
            order: (row.try_get("partner_id")?, row.try_get("order_id")?),
            voucher: OwnVoucher {
                reference: row.try_get("reference")?,
                terms: StoredTerms::from_row(row)?.into(),
                due: row.try_get("due")?,
            },
        })
    }
}

impl FromRow<'_, PgRow> for RecordedVoucher {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let partner_id: Option<PartnerId> = row.try_get("partner_id")?;
        Ok(Self {
            order: partner_id.zip(row.try_get("order_id")?),
            entry: VendorEntry {
                reference: row.try_get("reference")?,
                terms: StoredTerms::from_row(row)?.into(),
                repeated: row.try_get("repeated")?,
            },
        })
    }
}

impl From<&VoucherTerms> for StoredTerms {
    fn from(terms: &VoucherTerms) -> Self {
        Self {
            purchase_id: terms.purchase,
            product_id: terms.product_id.clone(),
            denomination: terms.denomination.amount,
            currency: terms.denomination.currency,
        }
    }
}

impl From<StoredTerms> for VoucherTerms {
    fn from(stored: StoredTerms) -> Self {
        Self {
            purchase: stored.purchase_id,
            product_id: stored.product_id,
            denomination: stored.denomination.of(stored.currency),
        }
    }
}

//! Rows of both sides of a comparison.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::{OwnVoucher, VendorEntry, VoucherTerms};

/// A voucher that we bought.
#[derive(Debug, FromRow)]
pub(super) struct OwnVoucherRow {
    pub(super) position: i64,
    pub(super) reference: String,
    pub(super) code_id: i64,
    pub(super) purchase_id: Uuid,
    pub(super) product_id: String,
    pub(super) denomination: i64,
    pub(super) currency: String,
    pub(super) partner_id: Uuid,
    pub(super) order_id: Uuid,
    pub(super) due: bool,
}

/// A record of the vendor, with the order that the voucher was bought for if it is known.
#[derive(Debug, FromRow)]
pub(super) struct VendorEntryRow {
    pub(super) reference: String,
    pub(super) purchase_id: Option<Uuid>,
    pub(super) product_id: String,
    pub(super) denomination: i64,
    pub(super) currency: String,
    pub(super) repeated: bool,
    pub(super) partner_id: Option<Uuid>,
    pub(super) order_id: Option<Uuid>,
}

/// Terms of a voucher, as a drift stores them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VoucherTermsRow {
    purchase_id: Option<Uuid>,
    product_id: String,
    denomination: i64,
    currency: String,
}

impl OwnVoucherRow {
    pub(super) fn parse(&self) -> Result<OwnVoucher, sqlx::Error> {
        Ok(OwnVoucher {
            reference: self.reference.clone(),
            terms: self.terms().parse(&self.reference)?,
            due: self.due,
        })
    }

    pub(super) fn terms(&self) -> VoucherTermsRow {
        VoucherTermsRow {
            purchase_id: Some(self.purchase_id),
            product_id: self.product_id.clone(),
            denomination: self.denomination,
            currency: self.currency.clone(),
        }
    }
}

impl VendorEntryRow {
    pub(super) fn parse(&self) -> Result<VendorEntry, sqlx::Error> {
        Ok(VendorEntry {
            reference: self.reference.clone(),
            terms: self.terms().parse(&self.reference)?,
            repeated: self.repeated,
        })
    }

    pub(super) fn terms(&self) -> VoucherTermsRow {
        VoucherTermsRow {
            purchase_id: self.purchase_id,
            product_id: self.product_id.clone(),
            denomination: self.denomination,
            currency: self.currency.clone(),
        }
    }
}

impl VoucherTermsRow {
    pub(super) fn parse(&self, reference: &str) -> Result<VoucherTerms, sqlx::Error> {
        let invalid = |column: &str| {
            sqlx::Error::Decode(format!("vendor voucher {reference} has an invalid {column}").into())
        };
        let currency = self.currency.parse().map_err(|_| invalid("currency"))?;
        Ok(VoucherTerms {
            purchase: self.purchase_id.map(PurchaseKey),
            product_id: self.product_id.parse().map_err(|_| invalid("product"))?,
            denomination: Amount::from_minor(self.denomination).of(currency),
        })
    }
}

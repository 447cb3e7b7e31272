//! Rows of both sides, as a comparison reads them.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;
use vouchsafe_actors::domain::money::Amount;

use crate::reconciliation::{OwnVoucher, VendorEntry, VoucherTerms};
use crate::procurement::PurchaseKey;

/// One of ours.
#[derive(Debug, FromRow)]
pub(super) struct HeldRow {
    pub(super) place: i64,
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

/// One of the vendor's, with the order that it was bought for, where that is known.
#[derive(Debug, FromRow)]
pub(super) struct RecordedRow {
    pub(super) reference: String,
    pub(super) purchase_id: Option<Uuid>,
    pub(super) product_id: String,
    pub(super) denomination: i64,
    pub(super) currency: String,
    pub(super) repeated: bool,
    pub(super) partner_id: Option<Uuid>,
    pub(super) order_id: Option<Uuid>,
}

/// What a side says of a voucher, as a drift keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SaidRow {
    purchase_id: Option<Uuid>,
    product_id: String,
    denomination: i64,
    currency: String,
}

impl HeldRow {
    /// What the merge compares.
    pub(super) fn read(&self) -> Result<OwnVoucher, sqlx::Error> {
        Ok(OwnVoucher {
            reference: self.reference.clone(),
            terms: self.said().read(&self.reference)?,
            due: self.due,
        })
    }

    /// What we say of it.
    pub(super) fn said(&self) -> SaidRow {
        SaidRow {
            purchase_id: Some(self.purchase_id),
            product_id: self.product_id.clone(),
            denomination: self.denomination,
            currency: self.currency.clone(),
        }
    }
}

impl RecordedRow {
    /// What the merge compares.
    pub(super) fn read(&self) -> Result<VendorEntry, sqlx::Error> {
        Ok(VendorEntry {
            reference: self.reference.clone(),
            terms: self.said().read(&self.reference)?,
            repeated: self.repeated,
        })
    }

    /// What the vendor says of it.
    pub(super) fn said(&self) -> SaidRow {
        SaidRow {
            purchase_id: self.purchase_id,
            product_id: self.product_id.clone(),
            denomination: self.denomination,
            currency: self.currency.clone(),
        }
    }
}

impl SaidRow {
    /// What is said, in our types.
    pub(super) fn read(&self, reference: &str) -> Result<VoucherTerms, sqlx::Error> {
        let impossible = |column: &str| {
            sqlx::Error::Decode(format!("voucher {reference} of a vendor has an impossible {column}").into())
        };
        let currency = self.currency.parse().map_err(|_| impossible("currency"))?;
        Ok(VoucherTerms {
            purchase: self.purchase_id.map(PurchaseKey),
            product_id: self.product_id.parse().map_err(|_| impossible("product"))?,
            denomination: Amount::from_minor(self.denomination).of(currency),
        })
    }
}

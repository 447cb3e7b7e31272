//! Purchased vouchers and vendor records.
//!
//! Only [`VoucherCode`] contains a code; a reference is the vendor's id of a voucher and may be shown.

use std::time::Duration;

use time::{Date, OffsetDateTime};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::purchase::{PurchaseKey, VendorReference};
use vouchsafe_domain::reconciliation::{RecordLine, VoucherTerms};
use vouchsafe_security::vault::code::VoucherCode;

/// A voucher sold by a vendor, validated against the request.
#[derive(Debug)]
pub struct VendorVoucher {
    /// Stable across responses, and unique within one.
    pub reference: VendorReference,
    /// Code, PIN, serial and URL.
    pub code: VoucherCode,
    /// The last valid day, by the vendor or by the product's policy; `None` if it never expires.
    pub expiry: Option<Date>,
    pub product_id: ProductId,
    /// Face value.
    pub denomination: Money,
    /// What the vendor charges; never negative.
    pub price: Money,
}

/// What happens to the requested vouchers that were not sold yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// There are none.
    None,
    /// They may follow: poll, not before this time if the vendor states one.
    Pending(Option<Duration>),
    Final,
}

/// Everything sold under a key so far, in the vendor's order.
#[derive(Debug)]
pub struct PurchaseResult {
    /// Includes those of earlier responses, under the same references.
    pub vouchers: Vec<VendorVoucher>,
    pub shortfall: Shortfall,
}

/// A sale in the vendor's records, for reconciliation. Contains no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorRecord {
    pub reference: VendorReference,
    pub key: PurchaseKey,
    pub product_id: ProductId,
    /// Face value.
    pub denomination: Money,
    pub sold_at: OffsetDateTime,
}

impl VendorRecord {
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.denomination.currency
    }
}

impl From<VendorRecord> for RecordLine {
    fn from(record: VendorRecord) -> Self {
        Self {
            reference: record.reference,
            terms: VoucherTerms {
                purchase: Some(record.key),
                product_id: record.product_id,
                denomination: record.denomination,
            },
            sold_at: record.sold_at,
        }
    }
}

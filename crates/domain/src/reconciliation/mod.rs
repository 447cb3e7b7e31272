//! Reconciliation of our vouchers with a vendor's records.
//!
//! A voucher is identified by its vendor's reference, which is permanent and not secret. Codes are neither
//! requested nor compared: no type here can hold one.

pub mod allocations;
pub mod day;
pub mod drift;
pub mod merge;
pub mod partner_day;
pub mod result;

use time::OffsetDateTime;

use crate::labels::labels;
use crate::money::Money;
use crate::product::ProductId;
use crate::purchase::{PurchaseKey, VendorReference};

/// What one side records about a voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherTerms {
    /// The purchase key; `None` if the side does not record it.
    pub purchase: Option<PurchaseKey>,
    pub product_id: ProductId,
    /// Face value.
    pub denomination: Money,
}

/// A voucher that we bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVoucher {
    /// The vendor's id of the voucher.
    pub reference: String,
    pub terms: VoucherTerms,
    /// Whether the records of the day must contain it: bought in the day's span, and in no other day's
    /// records.
    pub due: bool,
}

/// A voucher in the vendor's records of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorEntry {
    /// The vendor's id of the voucher.
    pub reference: String,
    pub terms: VoucherTerms,
    /// Whether the records of an earlier day contain it, too.
    pub repeated: bool,
}

/// A line of the vendor's records, as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    /// The vendor's id of the voucher.
    pub reference: VendorReference,
    pub terms: VoucherTerms,
    pub sold_at: OffsetDateTime,
}

labels! {
    /// Kind of a drift.
    pub enum DriftKind: "SCREAMING_SNAKE_CASE",
        "Kind of a drift: `MISSING` (the vendor has no record of our voucher), `UNKNOWN` (we have no voucher for \
         the record), `DIFFERS` (the two differ) or `REPEATED` (the vendor also recorded the voucher on an earlier day)." {
        /// We have it, the vendor's records do not.
        Missing,
        /// The vendor's records contain it, we do not have it.
        Unknown,
        /// Both have it, with different terms.
        Differs,
        /// The vendor's records of an earlier day contain it, too.
        Repeated,
    }
}

impl DriftKind {
    /// Whether only one side has the voucher: it counts as unmatched, otherwise as drifted.
    #[must_use]
    pub const fn is_one_sided(self) -> bool {
        matches!(self, Self::Missing | Self::Unknown)
    }
}

impl VoucherTerms {
    /// The fields that differ. A field that one side does not record is no difference.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let other_purchase = self
            .purchase
            .zip(other.purchase)
            .is_some_and(|(own, other)| own != other);
        let differ = [
            ("purchase_id", other_purchase),
            ("product_id", self.product_id != other.product_id),
            (
                "denomination",
                self.denomination.amount != other.denomination.amount,
            ),
            (
                "currency",
                self.denomination.currency != other.denomination.currency,
            ),
        ];
        differ
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }
}

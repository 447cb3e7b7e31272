//! Are our books and a vendor's the same? What either side says of a voucher, and what comes of comparing.
//!
//! Rule: a voucher is named by its vendor's reference, which names one voucher for ever and is no secret. A code is
//! neither asked for nor compared: no type here could hold one.

pub mod day;
pub(crate) mod job;
pub mod merge;
pub(crate) mod code_leak;

use time::OffsetDateTime;
use vouchsafe_actors::domain::money::Money;
use vouchsafe_actors::domain::product::ProductId;

use crate::procurement::{PurchaseKey, VendorRecord, VendorReference};

/// What a side says of a voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherTerms {
    /// Under which key it was bought; `None` where the side does not say.
    pub purchase: Option<PurchaseKey>,
    pub product_id: ProductId,
    /// At which face value.
    pub denomination: Money,
}

/// A voucher that we have bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVoucher {
    /// The vendor's name of it.
    pub reference: String,
    /// What we say of it.
    pub terms: VoucherTerms,
    /// Whether the books of the day must have it: it was bought then, and no other day's books have it.
    pub due: bool,
}

/// A voucher in the books of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorEntry {
    /// The vendor's name of it.
    pub reference: String,
    /// What the vendor says of it.
    pub terms: VoucherTerms,
    /// Whether the books of an earlier day have it, too.
    pub repeated: bool,
}

/// A line of a vendor's books, as it comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    /// The vendor's name of the voucher.
    pub reference: VendorReference,
    /// What it says of it.
    pub terms: VoucherTerms,
    /// When it was sold.
    pub sold_at: OffsetDateTime,
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

/// How both sides do not say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriftKind {
    /// We have it, the vendor's books do not.
    Missing,
    /// The vendor's books have it, we do not.
    Unknown,
    /// Both have it, and say different things of it.
    Differs,
    /// The vendor's books have it on an earlier day, too.
    Repeated,
}

impl DriftKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Unknown, Self::Differs, Self::Repeated];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "MISSING",
            Self::Unknown => "UNKNOWN",
            Self::Differs => "DIFFERS",
            Self::Repeated => "REPEATED",
        }
    }

    /// Whether one side alone has the voucher: it counts as unmatched, and otherwise as drifted.
    #[must_use]
    pub const fn is_one_sided(self) -> bool {
        matches!(self, Self::Missing | Self::Unknown)
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_label(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl VoucherTerms {
    /// In which fields another side says something else. What a side does not say is no difference.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let other_purchase = self
            .purchase
            .zip(other.purchase)
            .is_some_and(|(one, other)| one != other);
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

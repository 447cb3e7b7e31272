//! Merge join of two streams sorted by reference: our vouchers and the vendor's records.
//!
//! | Ours | Vendor's | Result |
//! |---|---|---|
//! | present | equal | matched |
//! | present | differs | [`DriftKind::Differs`] |
//! | present | present, also on an earlier day | [`DriftKind::Repeated`] |
//! | present, due | absent | [`DriftKind::Missing`] |
//! | present, not due | absent | none: it belongs to another day |
//! | absent | present | [`DriftKind::Unknown`] |
//!
//! Pure and stateless: both streams ascend by the bytes of the reference, and the caller holds one entry of
//! each. A record matches one of our vouchers; a second voucher with the same reference has no match.

use std::cmp::Ordering;

use super::{DriftKind, OwnVoucher, VendorEntry};

/// The streams that a step advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ours,
    /// The vendor's.
    Theirs,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Matched,
    Drift(DriftKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeStep {
    pub side: Side,
    /// `None` if the voucher belongs to another day.
    pub comparison: Option<Comparison>,
}

/// Counts of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Equal on both sides.
    pub matched: i64,
    /// Present on both sides, with differences.
    pub drifted: i64,
    /// Present on one side only.
    pub unmatched: i64,
}

/// The next step; `None` at the end of both streams.
#[must_use]
pub fn merge_step(ours: Option<&OwnVoucher>, theirs: Option<&VendorEntry>) -> Option<MergeStep> {
    let side = match (ours, theirs) {
        (None, None) => return None,
        (Some(_), None) => Side::Ours,
        (None, Some(_)) => Side::Theirs,
        (Some(ours), Some(theirs)) => match ours.reference.cmp(&theirs.reference) {
            Ordering::Less => Side::Ours,
            Ordering::Greater => Side::Theirs,
            Ordering::Equal => Side::Both,
        },
    };
    let comparison = match (side, ours, theirs) {
        (Side::Both, Some(ours), Some(theirs)) => Some(compare(ours, theirs)),
        (Side::Ours, Some(ours), _) => ours.due.then_some(Comparison::Drift(DriftKind::Missing)),
        _ => Some(Comparison::Drift(DriftKind::Unknown)),
    };
    Some(MergeStep { side, comparison })
}

fn compare(ours: &OwnVoucher, theirs: &VendorEntry) -> Comparison {
    if theirs.repeated {
        Comparison::Drift(DriftKind::Repeated)
    } else if ours.terms.differences(&theirs.terms).is_empty() {
        Comparison::Matched
    } else {
        Comparison::Drift(DriftKind::Differs)
    }
}

impl Tally {
    pub const fn count(&mut self, comparison: Comparison) {
        match comparison {
            Comparison::Matched => self.matched += 1,
            Comparison::Drift(kind) if kind.is_one_sided() => self.unmatched += 1,
            Comparison::Drift(_) => self.drifted += 1,
        }
    }

    /// The number of compared vouchers.
    #[must_use]
    pub const fn compared(&self) -> i64 {
        self.matched + self.drifted + self.unmatched
    }
}

#[cfg(test)]
mod tests;

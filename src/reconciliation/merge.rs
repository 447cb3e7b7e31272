//! What does the next pair of two sorted streams tell, ours and the vendor's? A merge by reference, one step at a time.
//!
//! | Ours | The vendor's | Found |
//! |---|---|---|
//! | has it | has the same | matched |
//! | has it | says something else of it | [`Kind::Differs`] |
//! | has it | has it on an earlier day, too | [`Kind::Repeated`] |
//! | has it, and it was due | has it not | [`Kind::Missing`] |
//! | has it, and it was not due | has it not | nothing: it belongs to another day |
//! | has it not | has it | [`Kind::Unknown`] |
//!
//! Rule: plain data, no memory: both streams ascend by the bytes of the reference, and whoever walks them holds one entry
//! of each. A record is a pair to one voucher of ours; a second one of the same name has none.

use std::cmp::Ordering;

use super::{OwnVoucher, DriftKind, VendorEntry};

/// What a step goes past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ours,
    /// One of the vendor's.
    Theirs,
    Both,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both say the same.
    Matched,
    Drift(DriftKind),
}

/// One step of the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeStep {
    /// What it goes past.
    pub side: Side,
    /// What was found; `None` where it belongs to another day.
    pub comparison: Option<Comparison>,
}

/// How many were compared, and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Both say the same.
    pub matched: i64,
    /// Both have it, and do not agree.
    pub drifted: i64,
    /// One side alone has it.
    pub unmatched: i64,
}

/// The step from where both streams stand; `None` at the end of both.
#[must_use]
pub fn merge_step(ours: Option<&OwnVoucher>, theirs: Option<&VendorEntry>) -> Option<MergeStep> {
    let takes = match (ours, theirs) {
        (None, None) => return None,
        (Some(_), None) => Side::Ours,
        (None, Some(_)) => Side::Theirs,
        (Some(ours), Some(theirs)) => match ours.reference.cmp(&theirs.reference) {
            Ordering::Less => Side::Ours,
            Ordering::Greater => Side::Theirs,
            Ordering::Equal => Side::Both,
        },
    };
    let found = match (takes, ours, theirs) {
        (Side::Both, Some(ours), Some(theirs)) => Some(compare(ours, theirs)),
        (Side::Ours, Some(ours), _) => ours.due.then_some(Comparison::Drift(DriftKind::Missing)),
        _ => Some(Comparison::Drift(DriftKind::Unknown)),
    };
    Some(MergeStep { side: takes, comparison: found })
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
    /// Counts a finding.
    pub const fn count(&mut self, found: Comparison) {
        match found {
            Comparison::Matched => self.matched += 1,
            Comparison::Drift(kind) if kind.is_one_sided() => self.unmatched += 1,
            Comparison::Drift(_) => self.drifted += 1,
        }
    }

    /// How many were compared.
    #[must_use]
    pub const fn compared(&self) -> i64 {
        self.matched + self.drifted + self.unmatched
    }
}

#[cfg(test)]
mod tests;

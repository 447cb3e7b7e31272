//! Among which codes a code occurs once, and whether their case counts.

use crate::identifier;
use crate::labels::labels;

labels! {
    /// Whether codes of a brand that differ only in case are one code.
    #[derive(Default)]
    pub enum CodeCase: "lowercase",
        "Whether codes that differ only in case are two codes (`exact`) or one (`ignored`). Products of one brand have the same." {
        #[default]
        Exact,
        Ignored,
    }
}

/// The codes among which a code occurs once, and how they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeScope<'a> {
    pub brand: &'a str,
    pub case: CodeCase,
}

impl<'a> CodeScope<'a> {
    /// The codes of a brand where the case counts.
    #[must_use]
    pub const fn exact(brand: &'a str) -> Self {
        Self {
            brand,
            case: CodeCase::Exact,
        }
    }

    /// The brand without regard to case and spelling.
    #[must_use]
    pub fn brand_key(self) -> String {
        identifier::normalize_stored(self.brand).to_lowercase()
    }
}

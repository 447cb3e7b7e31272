//! Operator token: stored as a hash, compared in constant time.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// SHA-256 of the operator token. It has no `==`, and `Debug` prints `***`.
#[derive(Clone)]
pub struct OperatorToken([u8; 32]);

impl OperatorToken {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, presented: &[u8]) -> bool {
        let presented: [u8; 32] = Sha256::digest(presented).into();
        self.0.ct_eq(&presented).into()
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorToken(***)")
    }
}

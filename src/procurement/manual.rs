//! What does a vendor sell that is fulfilled by hand? Nothing by itself: every purchase waits for an operator, who brings
//! the vouchers in.

use super::{PurchaseResult, Shortfall};

/// Nothing yet, and the rest may come.
pub(super) const fn pending() -> PurchaseResult {
    PurchaseResult {
        vouchers: Vec::new(),
        shortfall: Shortfall::Pending(None),
    }
}

//! What does a vendor sell that is fulfilled by hand? Nothing by itself: every purchase waits for an operator, who brings
//! the vouchers in.

use super::{Bought, Rest};

/// Nothing yet, and the rest may come.
pub(super) const fn waiting() -> Bought {
    Bought {
        vouchers: Vec::new(),
        rest: Rest::ToCome(None),
    }
}

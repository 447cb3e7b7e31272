//! Failures of vendor calls, by what is known about the purchase.
//!
//! Only a conclusive response of the vendor counts as certain; anything that may have been sold is
//! [`VendorFailure::Unknown`]. No text quotes the vendor's response, which may contain a code.

use std::time::Duration;

use time::Date;
use vouchsafe_security::vault::code::InvalidCode;
use vouchsafe_wire::operator::stock::spreadsheet::Damage;

use super::limits::{MAX_RECORD_PAGES, MAX_RECORDS_PAGE, MAX_RESPONSE_BYTES};

/// What is known after a call that returned no vouchers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VendorFailure {
    /// Nothing was sold under this key, and nothing will be.
    #[error("nothing was bought: {0}")]
    NotBought(FailureReason),
    /// The vendor is out of stock: nothing was sold under this key, and nothing will be.
    #[error("nothing was bought: the vendor is out of stock")]
    OutOfStock,
    /// This call bought nothing; a retry under the same key may.
    #[error("nothing was bought yet: {reason}")]
    RetryLater {
        reason: FailureReason,
        /// Minimum time to wait, if known.
        retry_after: Option<Duration>,
    },
    /// The vendor knows no purchase under this key. An earlier call may still be in flight, so buy under the
    /// same key.
    #[error("the vendor has no purchase under this key")]
    PurchaseNotFound,
    /// Vouchers may have been sold: poll, and never buy under another key.
    #[error("the outcome of the purchase is unknown: {reason}")]
    Unknown {
        reason: FailureReason,
        /// Minimum time to wait, if known.
        retry_after: Option<Duration>,
    },
    /// The response is invalid and was discarded; the vendor may have sold vouchers.
    #[error("invalid vendor response: {0}")]
    InvalidResponse(#[from] InvalidResponse),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason {
    /// The vendor does not sell the product.
    #[error("the vendor does not sell the product")]
    NotSold,
    /// The vendor refused the purchase with this status.
    #[error("the vendor refused the purchase with status {0}")]
    Refused(u16),
    /// The vendor rejected the credential.
    #[error("the vendor rejected the credential with status {0}; correct it with `vouchsafe vendor put`")]
    Credential(u16),
    /// The vendor rate-limits requests.
    #[error("the vendor's rate limit is reached")]
    Busy,
    /// The circuit breaker is open.
    #[error("the vendor failed repeatedly; its circuit is open")]
    CircuitOpen,
    /// No connection was established.
    #[error("the vendor cannot be reached")]
    Unreachable,
    #[error("the vendor did not respond in time")]
    TimedOut,
    #[error("the connection to the vendor was lost")]
    ConnectionLost,
    /// A 5xx or 408 status.
    #[error("the vendor failed with status {0}")]
    ServerError(u16),
    /// A status outside the vendor protocol.
    #[error("unexpected status {0}, not part of the vendor protocol; check the vendor's url")]
    UnexpectedStatus(u16),
}

/// Why a response is invalid. Vouchers and records are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResponse {
    #[error("it has more than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
    /// It does not follow the vendor protocol.
    #[error("{field} does not follow the vendor protocol")]
    Schema {
        /// The first invalid field.
        field: String,
    },
    #[error("it describes another purchase")]
    OtherPurchase,
    /// The vendor reports another request under this key.
    #[error("the vendor holds another request under this key")]
    KeyReused,
    /// More vouchers than requested.
    #[error("it has {got} vouchers, but {asked} were requested")]
    TooMany { asked: u32, got: usize },
    #[error("voucher {index} has another product or denomination")]
    OtherSku { index: usize },
    #[error("voucher {index} expired on {on}")]
    Expired {
        index: usize,
        /// Its last valid day.
        on: Date,
    },
    #[error("voucher {index} has a negative price")]
    NegativePrice { index: usize },
    #[error("voucher {index} repeats the reference of an earlier one")]
    RepeatedReference { index: usize },
    #[error("voucher {index} repeats the code of an earlier one")]
    RepeatedCode { index: usize },
    /// The code is invalid.
    #[error("voucher {index}: {error}")]
    Code { index: usize, error: InvalidCode },
    /// The vendor has put its codes through a spreadsheet.
    #[error("voucher {index}: the code or PIN is {damage}, as a spreadsheet writes it")]
    Damaged { index: usize, damage: Damage },
    /// References are shown to people, codes are not.
    #[error("voucher {index} uses its code as reference")]
    ReferenceIsCode { index: usize },
    #[error("a page has more than {MAX_RECORDS_PAGE} records")]
    PageTooLong,
    #[error("the records of the day have more than {MAX_RECORD_PAGES} pages")]
    TooManyPages,
    #[error("a page of records links to itself")]
    CursorLoop,
    #[error("record {index} belongs to another day")]
    OtherDay {
        /// Index within its page.
        index: usize,
    },
}

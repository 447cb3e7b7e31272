//! Why did a vendor sell nothing, and what is known of it?
//!
//! Rule: only the vendor's own word is certain. What may have been sold is [`Failure::Unknown`]. No text here quotes the
//! vendor: what it says may hold a code.

use std::time::Duration;

use time::Date;

use super::http::{MAX_RESPONSE_BYTES, MAX_RECORD_PAGES, MAX_RECORDS_PAGE};
use crate::vault::code::InvalidCode;

/// What is known after a call that brought no vouchers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VendorFailure {
    /// Nothing was sold under this key, and nothing will be.
    #[error("nothing was bought: {0}")]
    NotBought(FailureReason),
    /// The vendor is out of stock: nothing was sold under this key, and nothing will be.
    #[error("nothing was bought: the vendor is out of stock")]
    OutOfStock,
    /// This call bought nothing; buying again under the same key may.
    #[error("nothing was bought for now: {reason}")]
    RetryLater {
        reason: FailureReason,
        /// How long to wait at least, where that is known.
        retry_after: Option<Duration>,
    },
    /// The vendor knows no purchase under this key. An earlier call may still be on its way, so buy under the same key.
    #[error("the vendor has no purchase under this key")]
    PurchaseNotFound,
    /// Something may have been sold: poll, and never buy under another key.
    #[error("it is not known what was bought: {reason}")]
    Unknown {
        reason: FailureReason,
        /// How long to wait at least, where that is known.
        retry_after: Option<Duration>,
    },
    /// The answer was refused. Nothing of it was taken; the vendor may have sold something.
    #[error("the vendor's answer was refused: {0}")]
    InvalidResponse(#[from] InvalidResponse),
}

/// What a vendor did, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason {
    /// It sells nothing of this.
    #[error("the vendor sells nothing of it")]
    NotSold,
    /// It refused the purchase, with this status.
    #[error("the vendor refused the purchase with status {0}")]
    Refused(u16),
    /// It does not accept the credential.
    #[error(
        "the vendor refused the credential with status {0}; put the right one with `vouchsafe vendor put`"
    )]
    Credential(u16),
    /// It was asked too often.
    #[error("the vendor asks for a pause")]
    Busy,
    /// It failed too often of late and is left alone.
    #[error("the vendor failed too often of late and is left alone for a while")]
    CircuitOpen,
    /// No connection came to stand.
    #[error("the vendor cannot be reached")]
    Unreachable,
    /// It took too long.
    #[error("the vendor took too long")]
    TimedOut,
    /// The connection was lost.
    #[error("the connection to the vendor was lost")]
    ConnectionLost,
    /// It failed, with this status.
    #[error("the vendor failed with status {0}")]
    ServerError(u16),
    /// What answered does not speak the vendor protocol.
    #[error("status {0} that is no word of the vendor protocol: is the vendor's url right?")]
    UnexpectedStatus(u16),
}

/// What was wrong with an answer. Vouchers and records are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResponse {
    /// It does not end.
    #[error("it has more than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
    /// It is not what the protocol says.
    #[error("{field} is not as the vendor protocol says")]
    Schema {
        /// The first field that is wrong.
        field: String,
    },
    /// It is about another purchase.
    #[error("it is about another purchase")]
    OtherPurchase,
    /// The vendor says that the key belongs to another request.
    #[error("the vendor holds another request under this key")]
    KeyReused,
    /// More vouchers than were asked for.
    #[error("it has {got} vouchers, {asked} were asked for")]
    TooMany {
        /// How many were asked for.
        asked: u32,
        got: usize,
    },
    /// A voucher of another product, denomination or currency.
    #[error("voucher {index} is of another product or denomination")]
    OtherSku {
        index: usize,
    },
    /// A voucher that can no longer be redeemed.
    #[error("voucher {index} expired on {on}")]
    Expired {
        index: usize,
        /// Its last valid day.
        on: Date,
    },
    /// A voucher that the vendor would pay for.
    #[error("voucher {index} has a negative price")]
    NegativePrice {
        index: usize,
    },
    /// Two vouchers with one reference.
    #[error("voucher {index} repeats the reference of another one")]
    RepeatedReference {
        index: usize,
    },
    /// Two vouchers with one code and PIN.
    #[error("voucher {index} repeats the code of another one")]
    RepeatedCode {
        index: usize,
    },
    /// A voucher whose code will not do.
    #[error("voucher {index}: {error}")]
    Code {
        index: usize,
        error: InvalidCode,
    },
    /// A reference is shown to people; a code is not.
    #[error("voucher {index} has its code for a reference")]
    ReferenceIsCode {
        index: usize,
    },
    /// More records than a page may have.
    #[error("a page has more than {MAX_RECORDS_PAGE} records")]
    PageTooLong,
    /// The records of a day do not end.
    #[error("the records of the day have more than {MAX_RECORD_PAGES} pages")]
    TooManyPages,
    /// A page leads back to itself.
    #[error("a page of records leads back to itself")]
    CursorLoop,
    /// A record of another day than was asked for.
    #[error("record {index} is of another day")]
    OtherDay {
        /// Which of its page.
        index: usize,
    },
}

//! What is a vendor's answer worth? What operators are told of it, and what becomes of the rest. Pure.

use vouchsafe_actors::procurement::PurchaseRemainder;

use crate::store::{LastAnswer, PurchaseUpdate};
use crate::procurement::{Shortfall, PurchaseResult, VendorFailure, PurchaseKey};

/// What is noted of an answer, and what becomes of the rest. `quarantined` names those of its vouchers that were sold before.
pub(super) fn map_response(
    key: PurchaseKey,
    answer: Result<PurchaseResult, VendorFailure>,
    quarantined: Vec<String>,
) -> (PurchaseUpdate, PurchaseRemainder) {
    let (answer, last_word, sold, rest) = match answer {
        Ok(PurchaseResult { vouchers, shortfall: rest }) => {
            let (answer, last_word, rest) = match rest {
                Shortfall::None => (LastAnswer::Sold, None, PurchaseRemainder::Done),
                Shortfall::Pending(after) => (LastAnswer::Waiting, None, PurchaseRemainder::Pending(after)),
                Shortfall::Final => (
                    LastAnswer::NoMore,
                    Some("the vendor has no more of it"),
                    PurchaseRemainder::Done,
                ),
            };
            let repeated = quarantined.len();
            let repeated = (repeated > 0).then(|| {
                format!("{repeated} codes were sold before and are not taken; claim them from the vendor")
            });
            let last_word = repeated.or(last_word.map(ToOwned::to_owned));
            (answer, last_word, Some(vouchers.len()), rest)
        }
        Err(failure) => {
            let (answer, rest) = map_failure(&failure);
            (answer, Some(failure.to_string()), None, rest)
        }
    };
    let said = PurchaseUpdate {
        key,
        answer,
        last_word,
        sold: sold.map(|sold| u32::try_from(sold).unwrap_or(u32::MAX)),
        quarantined,
    };
    (said, rest)
}

const fn map_failure(failure: &VendorFailure) -> (LastAnswer, PurchaseRemainder) {
    match failure {
        VendorFailure::NotBought(_) => (LastAnswer::NotSold, PurchaseRemainder::Done),
        VendorFailure::OutOfStock => (LastAnswer::OutOfStock, PurchaseRemainder::Done),
        VendorFailure::RetryLater { retry_after: after, .. } => (LastAnswer::NotNow, PurchaseRemainder::Pending(*after)),
        VendorFailure::PurchaseNotFound => (LastAnswer::NotNow, PurchaseRemainder::Pending(None)),
        VendorFailure::Unknown { retry_after: after, .. } => (LastAnswer::Unknown, PurchaseRemainder::Pending(*after)),
        VendorFailure::InvalidResponse(_) => (LastAnswer::Refused, PurchaseRemainder::Pending(None)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::procurement::{InvalidResponse, FailureReason};

    #[test]
    fn only_the_vendors_own_word_ends_a_purchase() {
        let bought = |rest| {
            Ok(PurchaseResult {
                vouchers: Vec::new(),
                shortfall: rest,
            })
        };
        let (why, after) = (FailureReason::TimedOut, Some(Duration::from_secs(7)));
        let schema = InvalidResponse::Schema {
            field: "vouchers".to_owned(),
        };
        let table = [
            (bought(Shortfall::None), LastAnswer::Sold, PurchaseRemainder::Done),
            (
                bought(Shortfall::Pending(after)),
                LastAnswer::Waiting,
                PurchaseRemainder::Pending(after),
            ),
            (bought(Shortfall::Final), LastAnswer::NoMore, PurchaseRemainder::Done),
            (
                Err(VendorFailure::NotBought(FailureReason::NotSold)),
                LastAnswer::NotSold,
                PurchaseRemainder::Done,
            ),
            (Err(VendorFailure::OutOfStock), LastAnswer::OutOfStock, PurchaseRemainder::Done),
            (
                Err(VendorFailure::RetryLater { reason: why, retry_after: after }),
                LastAnswer::NotNow,
                PurchaseRemainder::Pending(after),
            ),
            (Err(VendorFailure::PurchaseNotFound), LastAnswer::NotNow, PurchaseRemainder::Pending(None)),
            (
                Err(VendorFailure::Unknown { reason: why, retry_after: after }),
                LastAnswer::Unknown,
                PurchaseRemainder::Pending(after),
            ),
            (
                Err(VendorFailure::InvalidResponse(schema)),
                LastAnswer::Refused,
                PurchaseRemainder::Pending(None),
            ),
        ];
        for (answer, word, rest) in table {
            let (said, became) = map_response(PurchaseKey(Uuid::nil()), answer, Vec::new());
            assert_eq!((said.answer, became), (word, rest));
        }
    }
}

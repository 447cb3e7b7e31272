//! Mapping of vendor responses to purchase updates for operators and to the engine's remainder. Pure.

use vouchsafe_actors::ports::vendors::PurchaseRemainder;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::purchase::view::LastResponse;
use vouchsafe_store::PurchaseUpdate;

use crate::{PurchaseResult, Shortfall, VendorFailure};

/// The update to store and the engine's remainder. `quarantined` are the references of vouchers whose codes
/// were sold before.
pub(super) fn map_response(
    key: PurchaseKey,
    response: Result<PurchaseResult, VendorFailure>,
    quarantined: Vec<String>,
) -> (PurchaseUpdate, PurchaseRemainder) {
    let (answer, message, sold, remainder) = match response {
        Ok(PurchaseResult { vouchers, shortfall }) => {
            let (answer, message, remainder) = match shortfall {
                Shortfall::None => (LastResponse::Sold, None, PurchaseRemainder::Done),
                Shortfall::Pending(after) => (LastResponse::Waiting, None, PurchaseRemainder::Pending(after)),
                Shortfall::Final => (
                    LastResponse::NoMore,
                    Some("the vendor will not deliver the remainder"),
                    PurchaseRemainder::Done,
                ),
            };
            let repeated = quarantined.len();
            let repeated = (repeated > 0).then(|| {
                format!("{repeated} codes were sold before and were quarantined; claim them from the vendor")
            });
            let message = repeated.or(message.map(ToOwned::to_owned));
            (answer, message, Some(vouchers.len()), remainder)
        }
        Err(failure) => {
            let (answer, remainder) = map_failure(&failure);
            (answer, Some(failure.to_string()), None, remainder)
        }
    };
    let update = PurchaseUpdate {
        key,
        last_response: answer,
        last_message: message,
        sold: sold.map(|sold| u32::try_from(sold).unwrap_or(u32::MAX)),
        quarantined,
    };
    (update, remainder)
}

const fn map_failure(failure: &VendorFailure) -> (LastResponse, PurchaseRemainder) {
    match failure {
        VendorFailure::NotBought(_) => (LastResponse::NotSold, PurchaseRemainder::Done),
        VendorFailure::OutOfStock => (LastResponse::OutOfStock, PurchaseRemainder::Done),
        VendorFailure::RetryLater {
            retry_after: after, ..
        } => (LastResponse::NotNow, PurchaseRemainder::Pending(*after)),
        VendorFailure::PurchaseNotFound => (LastResponse::NotNow, PurchaseRemainder::Pending(None)),
        VendorFailure::Unknown {
            retry_after: after, ..
        } => (LastResponse::Unknown, PurchaseRemainder::Pending(*after)),
        VendorFailure::InvalidResponse(_) => (LastResponse::Refused, PurchaseRemainder::Pending(None)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::{FailureReason, InvalidResponse};

    #[test]
    fn purchase_ends_only_by_a_conclusive_vendor_response() {
        let bought = |shortfall| {
            Ok(PurchaseResult {
                vouchers: Vec::new(),
                shortfall,
            })
        };
        let (reason, after) = (FailureReason::TimedOut, Some(Duration::from_secs(7)));
        let schema_error = InvalidResponse::Schema {
            field: "vouchers".to_owned(),
        };
        let table = [
            (
                bought(Shortfall::None),
                LastResponse::Sold,
                PurchaseRemainder::Done,
            ),
            (
                bought(Shortfall::Pending(after)),
                LastResponse::Waiting,
                PurchaseRemainder::Pending(after),
            ),
            (
                bought(Shortfall::Final),
                LastResponse::NoMore,
                PurchaseRemainder::Done,
            ),
            (
                Err(VendorFailure::NotBought(FailureReason::NotSold)),
                LastResponse::NotSold,
                PurchaseRemainder::Done,
            ),
            (
                Err(VendorFailure::OutOfStock),
                LastResponse::OutOfStock,
                PurchaseRemainder::Done,
            ),
            (
                Err(VendorFailure::RetryLater {
                    reason,
                    retry_after: after,
                }),
                LastResponse::NotNow,
                PurchaseRemainder::Pending(after),
            ),
            (
                Err(VendorFailure::PurchaseNotFound),
                LastResponse::NotNow,
                PurchaseRemainder::Pending(None),
            ),
            (
                Err(VendorFailure::Unknown {
                    reason,
                    retry_after: after,
                }),
                LastResponse::Unknown,
                PurchaseRemainder::Pending(after),
            ),
            (
                Err(VendorFailure::InvalidResponse(schema_error)),
                LastResponse::Refused,
                PurchaseRemainder::Pending(None),
            ),
        ];
        for (response, answer, remainder) in table {
            let (update, mapped) = map_response(PurchaseKey(Uuid::nil()), response, Vec::new());
            assert_eq!((update.last_response, mapped), (answer, remainder));
        }
    }
}

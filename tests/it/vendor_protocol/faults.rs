//! Faults of the vendor simulator and the outcome that the adapter reports for each.

use std::time::Duration;

use vouchsafe_procurement::{FailureReason, InvalidResponse, Shortfall, VendorFailure};

use super::CallOutcome;

pub(super) fn invalid_response(response: InvalidResponse) -> CallOutcome {
    Err(response.into())
}

pub(super) fn unknown_outcome(reason: FailureReason) -> CallOutcome {
    Err(VendorFailure::Unknown {
        reason,
        retry_after: None,
    })
}

/// Per product: outcome of the purchase, of a poll and of a repeated purchase, and the number of vendor
/// records.
pub(super) fn fault_table() -> Vec<(&'static str, CallOutcome, CallOutcome, CallOutcome, usize)> {
    let all = || Ok((5, Shortfall::None));
    let same = |product_id, outcome: CallOutcome, sold| {
        (product_id, outcome.clone(), outcome.clone(), outcome, sold)
    };
    let busy = VendorFailure::RetryLater {
        reason: FailureReason::Busy,
        retry_after: Some(Duration::from_secs(1)),
    };
    let schema = InvalidResponse::Schema {
        field: "vouchers[0]".to_owned(),
    };
    let expired = InvalidResponse::Expired {
        index: 0,
        on: time::macros::date!(2001 - 01 - 01),
    };
    vec![
        same("game-us", all(), 5),
        same("sim-slow", all(), 5),
        (
            "sim-drop",
            unknown_outcome(FailureReason::ConnectionLost),
            all(),
            all(),
            5,
        ),
        (
            "sim-down",
            unknown_outcome(FailureReason::ServerError(503)),
            Err(VendorFailure::PurchaseNotFound),
            all(),
            5,
        ),
        (
            "sim-busy",
            Err(busy),
            Err(VendorFailure::PurchaseNotFound),
            all(),
            5,
        ),
        (
            "sim-out-of-stock",
            Err(VendorFailure::OutOfStock),
            Err(VendorFailure::PurchaseNotFound),
            Err(VendorFailure::OutOfStock),
            0,
        ),
        same("sim-part", Ok((2, Shortfall::Final)), 2),
        ("sim-pending", Ok((2, Shortfall::Pending(None))), all(), all(), 5),
        same(
            "sim-same-code",
            invalid_response(InvalidResponse::RepeatedCode { index: 1 }),
            5,
        ),
        same(
            "sim-too-many",
            invalid_response(InvalidResponse::TooMany { asked: 5, got: 6 }),
            6,
        ),
        same(
            "sim-other-sku",
            invalid_response(InvalidResponse::OtherSku { index: 0 }),
            5,
        ),
        same("sim-expired", invalid_response(expired), 5),
        same(
            "sim-negative-price",
            invalid_response(InvalidResponse::NegativePrice { index: 0 }),
            5,
        ),
        same("sim-wrong-schema", invalid_response(schema), 5),
        same("sim-huge", invalid_response(InvalidResponse::TooLarge), 5),
        same("sim-record-dropped", all(), 4),
        same("sim-record-added", all(), 6),
        same("sim-record-altered", all(), 5),
    ]
}

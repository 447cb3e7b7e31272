//! Interpretation of HTTP statuses: whether a call bought something.
//!
//! Only an error body of the protocol is conclusive. A status that a proxy could have sent is conclusive only
//! if it implies that the request was not forwarded.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use crate::{FailureReason, InvalidResponse, VendorFailure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Buy,
    Poll,
}

impl CallKind {
    /// The failure of a call that had no effect. A poll without a response leaves the purchase's outcome
    /// unknown.
    pub(super) const fn not_now(self, reason: FailureReason, retry_after: Option<Duration>) -> VendorFailure {
        match self {
            Self::Buy => VendorFailure::RetryLater { reason, retry_after },
            Self::Poll => VendorFailure::Unknown { reason, retry_after },
        }
    }
}

/// Error codes of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCode {
    OutOfStock,
    PurchaseNotFound,
    KeyReused,
    Other,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    error: ErrorFields<'a>,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
}

/// The code of an error body of the protocol.
pub(super) fn parse_error_code(body: &[u8]) -> Option<ErrorCode> {
    let body: ErrorBody<'_> = serde_json::from_slice(body).ok()?;
    Some(match &*body.error.code {
        "OUT_OF_STOCK" => ErrorCode::OutOfStock,
        "PURCHASE_NOT_FOUND" => ErrorCode::PurchaseNotFound,
        "IDEMPOTENCY_KEY_REUSED" => ErrorCode::KeyReused,
        _ => ErrorCode::Other,
    })
}

/// What is known after a response without a 2xx.
pub(super) fn failure_for_status(
    call: CallKind,
    status: u16,
    code: Option<ErrorCode>,
    retry_after: Option<Duration>,
) -> VendorFailure {
    let unknown = |reason| VendorFailure::Unknown { reason, retry_after };
    match (status, code) {
        (401 | 403, _) => call.not_now(FailureReason::Credential(status), retry_after),
        (429, _) => call.not_now(FailureReason::Busy, retry_after),
        (408 | 500..=599, _) => unknown(FailureReason::ServerError(status)),
        (404, Some(ErrorCode::PurchaseNotFound)) if call == CallKind::Poll => VendorFailure::PurchaseNotFound,
        (409, Some(ErrorCode::KeyReused)) => InvalidResponse::KeyReused.into(),
        (422, Some(ErrorCode::OutOfStock)) if call == CallKind::Buy => VendorFailure::OutOfStock,
        (409, _) => unknown(FailureReason::Refused(status)),
        (402, Some(_)) => call.not_now(FailureReason::Refused(status), retry_after),
        (400 | 422, Some(_)) if call == CallKind::Buy => {
            VendorFailure::NotBought(FailureReason::Refused(status))
        }
        (400 | 422, Some(_)) => unknown(FailureReason::Refused(status)),
        _ => unknown(FailureReason::UnexpectedStatus(status)),
    }
}

/// The reason if the failure counts for the circuit breaker: unreachable, no timely response, or a server
/// error. A refusal does not count.
pub(super) const fn outage_reason(failure: &VendorFailure) -> Option<FailureReason> {
    match failure {
        VendorFailure::RetryLater { reason, .. } | VendorFailure::Unknown { reason, .. } => match reason {
            FailureReason::Unreachable
            | FailureReason::TimedOut
            | FailureReason::ConnectionLost
            | FailureReason::ServerError(_) => Some(*reason),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `docs/vendor-protocol.md`: status, code, and the outcome for a purchase and for a poll.
    #[test]
    fn status_maps_to_the_documented_failure() {
        let retry_after = Some(Duration::from_secs(7));
        let unknown = |reason| VendorFailure::Unknown { reason, retry_after };
        let not_now = |reason| VendorFailure::RetryLater { reason, retry_after };
        let refused = |status| VendorFailure::NotBought(FailureReason::Refused(status));
        for (status, code, buy, poll) in [
            (
                300,
                None,
                unknown(FailureReason::UnexpectedStatus(300)),
                unknown(FailureReason::UnexpectedStatus(300)),
            ),
            (
                302,
                Some(ErrorCode::Other),
                unknown(FailureReason::UnexpectedStatus(302)),
                unknown(FailureReason::UnexpectedStatus(302)),
            ),
            (
                400,
                Some(ErrorCode::Other),
                refused(400),
                unknown(FailureReason::Refused(400)),
            ),
            (
                400,
                None,
                unknown(FailureReason::UnexpectedStatus(400)),
                unknown(FailureReason::UnexpectedStatus(400)),
            ),
            (
                401,
                None,
                not_now(FailureReason::Credential(401)),
                unknown(FailureReason::Credential(401)),
            ),
            (
                402,
                Some(ErrorCode::Other),
                not_now(FailureReason::Refused(402)),
                unknown(FailureReason::Refused(402)),
            ),
            (
                402,
                None,
                unknown(FailureReason::UnexpectedStatus(402)),
                unknown(FailureReason::UnexpectedStatus(402)),
            ),
            (
                403,
                Some(ErrorCode::Other),
                not_now(FailureReason::Credential(403)),
                unknown(FailureReason::Credential(403)),
            ),
            (
                404,
                Some(ErrorCode::PurchaseNotFound),
                unknown(FailureReason::UnexpectedStatus(404)),
                VendorFailure::PurchaseNotFound,
            ),
            (
                404,
                Some(ErrorCode::Other),
                unknown(FailureReason::UnexpectedStatus(404)),
                unknown(FailureReason::UnexpectedStatus(404)),
            ),
            (
                404,
                None,
                unknown(FailureReason::UnexpectedStatus(404)),
                unknown(FailureReason::UnexpectedStatus(404)),
            ),
            (
                408,
                None,
                unknown(FailureReason::ServerError(408)),
                unknown(FailureReason::ServerError(408)),
            ),
            (
                409,
                Some(ErrorCode::KeyReused),
                InvalidResponse::KeyReused.into(),
                InvalidResponse::KeyReused.into(),
            ),
            (
                409,
                Some(ErrorCode::Other),
                unknown(FailureReason::Refused(409)),
                unknown(FailureReason::Refused(409)),
            ),
            (
                409,
                None,
                unknown(FailureReason::Refused(409)),
                unknown(FailureReason::Refused(409)),
            ),
            (
                410,
                Some(ErrorCode::Other),
                unknown(FailureReason::UnexpectedStatus(410)),
                unknown(FailureReason::UnexpectedStatus(410)),
            ),
            (
                413,
                None,
                unknown(FailureReason::UnexpectedStatus(413)),
                unknown(FailureReason::UnexpectedStatus(413)),
            ),
            (
                422,
                Some(ErrorCode::OutOfStock),
                VendorFailure::OutOfStock,
                unknown(FailureReason::Refused(422)),
            ),
            (
                422,
                Some(ErrorCode::Other),
                refused(422),
                unknown(FailureReason::Refused(422)),
            ),
            (
                429,
                None,
                not_now(FailureReason::Busy),
                unknown(FailureReason::Busy),
            ),
            (
                500,
                Some(ErrorCode::OutOfStock),
                unknown(FailureReason::ServerError(500)),
                unknown(FailureReason::ServerError(500)),
            ),
            (
                502,
                None,
                unknown(FailureReason::ServerError(502)),
                unknown(FailureReason::ServerError(502)),
            ),
            (
                503,
                Some(ErrorCode::Other),
                unknown(FailureReason::ServerError(503)),
                unknown(FailureReason::ServerError(503)),
            ),
            (
                600,
                None,
                unknown(FailureReason::UnexpectedStatus(600)),
                unknown(FailureReason::UnexpectedStatus(600)),
            ),
        ] {
            assert_eq!(
                failure_for_status(CallKind::Buy, status, code, retry_after),
                buy,
                "{status} {code:?}"
            );
            assert_eq!(
                failure_for_status(CallKind::Poll, status, code, retry_after),
                poll,
                "{status} {code:?}"
            );
        }
    }

    #[test]
    fn error_code_is_parsed_from_the_body() {
        for (body, expected) in [
            (
                r#"{"error":{"code":"OUT_OF_STOCK","message":"m"}}"#,
                Some(ErrorCode::OutOfStock),
            ),
            (
                r#"{"error":{"code":"PURCHASE_NOT_FOUND"},"more":1}"#,
                Some(ErrorCode::PurchaseNotFound),
            ),
            (
                r#"{"error":{"code":"IDEMPOTENCY_KEY_REUSED"}}"#,
                Some(ErrorCode::KeyReused),
            ),
            (r#"{"error":{"code":"SOMETHING_NEW"}}"#, Some(ErrorCode::Other)),
            (r#"{"error":"OUT_OF_STOCK"}"#, None),
            (r#"{"error":{"code":5}}"#, None),
            ("<html>not found</html>", None),
            ("", None),
        ] {
            assert_eq!(parse_error_code(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn refusal_is_not_an_outage() {
        let (reason, retry_after) = (FailureReason::ServerError(503), None);
        assert_eq!(
            outage_reason(&VendorFailure::Unknown { reason, retry_after }),
            Some(reason)
        );
        let reason = FailureReason::Unreachable;
        assert_eq!(
            outage_reason(&VendorFailure::RetryLater { reason, retry_after }),
            Some(reason)
        );
        for failure in [
            VendorFailure::OutOfStock,
            VendorFailure::PurchaseNotFound,
            VendorFailure::NotBought(FailureReason::Refused(422)),
            VendorFailure::RetryLater {
                reason: FailureReason::Busy,
                retry_after,
            },
            VendorFailure::Unknown {
                reason: FailureReason::UnexpectedStatus(404),
                retry_after,
            },
            InvalidResponse::TooLarge.into(),
        ] {
            assert_eq!(outage_reason(&failure), None, "{failure:?}");
        }
    }
}

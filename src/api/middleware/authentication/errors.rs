//! Responses to failed authentications.

use vouchsafe_security::framing::{FramingError, SignedRequest};
use vouchsafe_security::headers::AuthHeaders;
use vouchsafe_security::registry::AccessError;
use vouchsafe_security::signature::{self, SignatureError};
use vouchsafe_wire::error_body::ErrorDetail;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;

pub(super) fn access_error(error: AccessError) -> ApiError {
    match error {
        AccessError::InvalidCredentials => ApiError::new(
            Code::InvalidCredentials,
            "invalid credentials: send X-API-Key and X-API-Secret, each once, of one active credential of this environment",
        ),
        AccessError::IpNotAllowed { address, .. } => ApiError::new(
            Code::IpNotAllowed,
            format!("address {address} is not on the allowlist; ask the operator to add it"),
        ),
        AccessError::PartnerSuspended { .. } => partner_suspended(),
    }
}

pub(crate) fn partner_suspended() -> ApiError {
    ApiError::new(
        Code::PartnerSuspended,
        "the partner is suspended; contact the operator",
    )
}

pub(super) fn signature_error(error: SignatureError) -> ApiError {
    match error {
        SignatureError::Timestamp(error) => ApiError::new(Code::TimestampOutOfRange, error.to_string()),
        SignatureError::Framing(FramingError::Body) => ApiError::new(
            Code::MalformedRequest,
            "the body must be empty or a JSON object that begins with {",
        ),
        other => ApiError::new(Code::InvalidSignature, other.to_string()),
    }
}

/// What the service expects to be signed, for the developer of a client.
pub(super) fn signed_message_details(
    headers: &AuthHeaders<'_>,
    request: SignedRequest<'_>,
) -> Vec<ErrorDetail> {
    let Some((length, sha256)) = signature::expected_message(headers, request) else {
        return Vec::new();
    };
    let detail = |field: &str, text: String| ErrorDetail::new(field.to_owned(), text);
    vec![
        detail("signed_bytes", length.to_string()),
        detail("signed_sha256", sha256),
    ]
}

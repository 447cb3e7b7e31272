//! Responses to failed authentications.

use vouchsafe_security::framing::FramingError;
use vouchsafe_security::registry::AccessError;
use vouchsafe_security::signature::SignatureError;
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

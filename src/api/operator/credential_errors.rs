//! Errors of the routes that issue, rotate and revoke credentials.

use vouchsafe_domain::ids::CredentialId;
use vouchsafe_store::MAX_LIVE_CREDENTIALS;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;

/// The error of a second confirmation.
pub(super) fn issued_before(credential_id: CredentialId) -> ApiError {
    let message = format!(
        "an earlier confirmation has issued {credential_id}; if the response with its secret was lost, \
         revoke it and request another credential"
    );
    ApiError::new(Code::CredentialIssuedBefore, message)
}

pub(super) fn limit_reached() -> ApiError {
    let message =
        format!("the partner has {MAX_LIVE_CREDENTIALS} valid credentials, which is the limit; revoke one");
    ApiError::new(Code::CredentialLimitReached, message)
}

//! Names and tokens of operators' accounts, for the routes of accounts and of sessions.

use vouchsafe_domain::operator::OperatorName;
use vouchsafe_security::operator_token::{OperatorToken, TokenKind};
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::path_id::PathId as _;

/// Rejects the token of the settings where access of operators is granted: it would outlast the setting.
///
/// # Errors
/// `FORBIDDEN`.
pub(super) fn check_is_account(operator: &Operator) -> Result<(), ApiError> {
    if !operator.is_from_settings() {
        return Ok(());
    }
    let message = "the token of the settings belongs to no account and grants no access to operators; use \
        a token of an account, or `vouchsafe operator create NAME --admin` on the database";
    Err(ApiError::new(Code::Forbidden, message))
}

/// Generates a token.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` without random bytes.
pub(super) fn generate_token(kind: TokenKind) -> Result<OperatorToken, ApiError> {
    OperatorToken::generate(kind, getrandom::fill).map_err(|error| {
        tracing::error!(error.message = %error, "cannot read random bytes from the operating system");
        ApiError::unavailable()
    })
}

pub(super) async fn check_exists(service: &OperatorState, name: &OperatorName) -> Result<(), ApiError> {
    let found = service.store.operators.find(name.clone()).await?;
    found.map(drop).ok_or_else(OperatorName::not_found)
}

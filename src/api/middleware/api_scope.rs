//! Authorization of partner requests by the scopes of their credential.

use actix_web::guard::{Guard, fn_guard};
use actix_web::{HttpMessage as _, HttpRequest};
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_security::registry::Caller;
use vouchsafe_wire::error_body::ErrorDetail;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;

/// The scope that the route of a request requires, in its extensions; `None` if every credential may use the
/// route.
#[derive(Debug, Clone, Copy)]
struct RequiredScope(Option<ApiScope>);

/// Guard of a route that attaches its scope for [`check`] and admits every request. It comes after the guard
/// of the method. A guard, because actix boxes the service and the future of a middleware for each request.
pub(crate) fn require(scope: Option<ApiScope>) -> impl Guard {
    fn_guard(move |context| {
        context.req_data_mut().insert(RequiredScope(scope));
        true
    })
}

/// Rejects a caller whose credential lacks the scope of the route.
///
/// # Errors
/// `MISSING_SCOPE`. `INTERNAL_ERROR` on a route without [`require`].
pub(super) fn check(request: &HttpRequest, caller: &Caller) -> Result<(), ApiError> {
    let required = request.extensions().get::<RequiredScope>().copied();
    let Some(RequiredScope(required)) = required else {
        let message = "the route declares no scope; report this to the operator";
        return Err(ApiError::new(Code::InternalError, message));
    };
    match required {
        Some(scope) if !caller.has_scope(scope) => Err(missing(scope)),
        _ => Ok(()),
    }
}

fn missing(scope: ApiScope) -> ApiError {
    let scope = scope.into_str();
    let message = format!(
        "the credential lacks the scope {scope}; use another credential, or ask the operator for one with this scope"
    );
    ApiError {
        details: vec![ErrorDetail::new("scope".to_owned(), scope.to_owned())],
        ..ApiError::new(Code::MissingScope, message)
    }
}

//! Operator authentication (bearer token) and authorization (the role that each route requires).
//!
//! The token is stored as a hash and compared in constant time. A missing, repeated, malformed or wrong token gets the same
//! response. There is a single token, with the role [`Role::Admin`].

use std::future::{Ready, ready};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, ResponseError as _, web};
use vouchsafe_domain::operator::Role;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_store::AuditActor;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;
use crate::telemetry::trace;

/// Operator name of the single token, in the audit trail.
const OPERATOR_NAME: &str = "admin";

/// The authenticated operator of a request.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    name: String,
    role: Role,
}

impl Operator {
    /// Whether the operator may do more than the route requires.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.role >= role
    }

    /// The actor of a write. The route has checked the role.
    pub(crate) fn audit_actor(&self) -> AuditActor {
        AuditActor {
            operator: self.name.clone(),
            trace_id: Some(trace::current_trace_id()).filter(|id| !id.is_empty()),
        }
    }
}

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(
            request
                .extensions()
                .get::<Self>()
                .cloned()
                .ok_or_else(unauthorized),
        )
    }
}

/// Middleware that rejects requests without a valid operator token.
pub(crate) async fn authenticate<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let service = request
        .app_data::<web::Data<Service>>()
        .ok_or_else(ApiError::unavailable)?;
    if !bearer_token(request.headers())
        .is_some_and(|token| service.operator_token.matches(&OperatorTokenHash::of(token)))
    {
        let mut response = unauthorized().error_response();
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return Ok(request.into_response(response).map_into_right_body());
    }
    let operator = Operator {
        name: OPERATOR_NAME.to_owned(),
        role: Role::Admin,
    };
    request.extensions_mut().insert(operator);
    next.call(request).await.map(ServiceResponse::map_into_left_body)
}

/// Middleware of a route that rejects operators below `needed`.
pub(crate) async fn require_role<B: MessageBody>(
    needed: Role,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let role = request
        .extensions()
        .get::<Operator>()
        .map(|operator| operator.role);
    let error = match role {
        Some(role) if role >= needed => {
            let response = next.call(request).await;
            return response.map(ServiceResponse::map_into_left_body);
        }
        Some(role) => forbidden(needed, role),
        None => unauthorized(),
    };
    let response = request.into_response(error.error_response());
    Ok(response.map_into_right_body())
}

fn forbidden(needed: Role, role: Role) -> ApiError {
    let (needed, role) = (needed.into_str(), role.into_str());
    let message = format!("this requires the role {needed}; yours is {role}");
    ApiError::new(Code::Forbidden, message)
}

/// The token, if there is exactly one `Authorization` header with the scheme `Bearer`.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION);
    let (first, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = first.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

fn unauthorized() -> ApiError {
    ApiError::new(
        Code::InvalidCredentials,
        "send an operator token: Authorization: Bearer TOKEN",
    )
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn presented(values: &[&str]) -> Option<Vec<u8>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        bearer_token(&headers).map(<[u8]>::to_vec)
    }

    #[test]
    fn bearer_token_must_occur_once() {
        assert_eq!(presented(&["Bearer abc"]).as_deref(), Some(&b"abc"[..]));
        assert_eq!(presented(&["bearer abc"]).as_deref(), Some(&b"abc"[..]));
        for values in [
            &[][..],
            &["Bearer "],
            &["Bearer"],
            &["Basic abc"],
            &["abc"],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(presented(values), None, "{values:?}");
        }
    }
}

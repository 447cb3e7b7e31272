//! Operator authentication (bearer token) and authorization (roles).
//!
//! The token is stored as a hash and compared in constant time. A missing, repeated, malformed or wrong token gets the same
//! response. There is a single token, with the role [`Role::Admin`].

use std::future::{Ready, ready};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, ResponseError as _, web};
use vouchsafe_store::AuditActor;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;
use crate::telemetry::trace;

/// Operator name of the single token, in the audit trail.
const OPERATOR_NAME: &str = "admin";

/// Permissions of an operator to write; each role includes the roles before it. Any operator may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Manages the catalogue, stock, money and orders.
    Operator,
    /// Manages partners, credentials and vendors as well.
    Admin,
}

/// The authenticated operator of a request.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    name: String,
    role: Role,
}

impl Operator {
    /// Authorizes a write for an operator with at least this role.
    pub(crate) fn authorize(&self, needed: Role) -> Result<AuditActor, ApiError> {
        if self.role < needed {
            return Err(ApiError::new(Code::Forbidden, "your role does not permit this"));
        }
        Ok(AuditActor {
            operator: self.name.clone(),
            trace_id: Some(trace::current_trace_id()).filter(|id| !id.is_empty()),
        })
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
    if !bearer_token(request.headers()).is_some_and(|token| service.operator_token.matches(token)) {
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
    use vouchsafe_security::operator_token::OperatorToken;

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

    #[test]
    fn token_matches_only_itself() {
        let token = OperatorToken::new("the token of the operator");
        assert!(token.matches(b"the token of the operator"));
        for wrong in [
            "",
            "the token of the operato",
            "the token of the operator ",
            "THE TOKEN OF THE OPERATOR",
        ] {
            assert!(!token.matches(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "OperatorToken(***)");
    }

    #[test]
    fn role_includes_lower_roles() {
        let operator = |role| Operator {
            name: "o".to_owned(),
            role,
        };
        assert!(operator(Role::Admin).authorize(Role::Operator).is_ok());
        assert!(operator(Role::Operator).authorize(Role::Operator).is_ok());
        assert_eq!(
            operator(Role::Operator).authorize(Role::Admin).unwrap_err().code,
            Code::Forbidden
        );
    }
}

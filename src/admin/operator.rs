//! Which operator is it, and what may it do?
//!
//! Rule: the token is kept as a hash and compared in constant time; a missing, repeated, malformed and wrong one look
//! alike. There is one token yet, and its role is [`Role::Admin`].

use std::fmt;
use std::future::{Ready, ready};

use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, ResponseError as _, web};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::By;
use crate::trace;

/// The name of the operator behind the one token, in the trail.
const ONLY_OPERATOR: &str = "admin";

/// SHA-256 of the operator's token. It has no `==`, and its `Debug` text is `***`.
#[derive(Clone)]
pub struct OperatorToken([u8; 32]);

impl OperatorToken {
    /// The token with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Whether these bytes are the token, in constant time.
    #[must_use]
    pub fn is(&self, presented: &[u8]) -> bool {
        let presented: [u8; 32] = Sha256::digest(presented).into();
        self.0.ct_eq(&presented).into()
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorToken(***)")
    }
}

/// What an operator may do; each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look.
    Viewer,
    /// Run the business: partners, catalogue, stock, money, orders.
    Operator,
    /// Hand out access as well.
    Admin,
}

/// The operator behind a request.
#[derive(Debug, Clone)]
pub struct Operator {
    name: String,
    role: Role,
}

impl Operator {
    /// The right to write, for an operator of at least this role.
    ///
    /// # Errors
    /// `FORBIDDEN` for a lesser one.
    pub fn may(&self, needed: Role) -> Result<By, ApiError> {
        if self.role < needed {
            return Err(ApiError::new(Code::Forbidden, "your role does not allow this"));
        }
        Ok(By {
            operator: self.name.clone(),
            trace_id: Some(trace::current()).filter(|id| !id.is_empty()),
        })
    }
}

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions().get::<Self>().cloned().ok_or_else(refused))
    }
}

/// Middleware: lets operators through.
pub(super) async fn authorized(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let service = request
        .app_data::<web::Data<Service>>()
        .ok_or_else(ApiError::unavailable)?;
    if !bearer(request.headers()).is_some_and(|token| service.operator_token.is(token)) {
        let mut response = refused().error_response();
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return Err(InternalError::from_response(refused(), response).into());
    }
    let operator = Operator {
        name: ONLY_OPERATOR.to_owned(),
        role: Role::Admin,
    };
    request.extensions_mut().insert(operator);
    next.call(request).await
}

/// The token of an `Authorization` header that is there once and says `Bearer`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION);
    let (first, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = first.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

fn refused() -> ApiError {
    ApiError::new(
        Code::InvalidCredentials,
        "send Authorization: Bearer with an operator's token",
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
        bearer(&headers).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_bearer_stands_once() {
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
    fn a_token_is_itself_alone() {
        let token = OperatorToken::new("the token of the operator");
        assert!(token.is(b"the token of the operator"));
        for wrong in [
            "",
            "the token of the operato",
            "the token of the operator ",
            "THE TOKEN OF THE OPERATOR",
        ] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "OperatorToken(***)");
    }

    #[test]
    fn a_role_may_what_lesser_ones_may() {
        let operator = |role| Operator {
            name: "o".to_owned(),
            role,
        };
        assert!(operator(Role::Admin).may(Role::Operator).is_ok());
        assert!(operator(Role::Operator).may(Role::Operator).is_ok());
        assert_eq!(
            operator(Role::Viewer).may(Role::Operator).unwrap_err().code,
            Code::Forbidden
        );
        assert_eq!(
            operator(Role::Operator).may(Role::Admin).unwrap_err().code,
            Code::Forbidden
        );
    }
}

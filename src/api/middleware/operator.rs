//! Operator authentication (bearer token, or the cookie of a session) and authorization (the role that each
//! route requires).
//!
//! Tokens and sessions are stored as hashes and read from the database with each request, so revocations,
//! disabled accounts and changed roles are in force at once on every node. A missing, repeated, malformed or
//! wrong token gets the same response. Browsers add the cookie to requests of any page, so a change with a
//! session must come from a page of the console.
//!
//! Wrong tokens are security events, counted per client address and rejected with 429 above the limit of
//! failed authentications. Valid tokens are not affected: a guess locks out no operator behind the same
//! address.

mod caller;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    ACCEPT, AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpResponse, ResponseError as _, web};
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_security::operator_token::{OperatorToken, OperatorTokenHash, TokenKind};
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_sign_in::cookies::ConsoleCookie;
use vouchsafe_sign_in::next_path::NextPath;
use vouchsafe_store::Operators;
use vouchsafe_store::operators::{SessionHolder, SessionLookup, SessionUse};
use vouchsafe_wire::error_code::Code;

pub(crate) use self::caller::{Operator, audit_actor};
use super::request_origin::check_same_origin;
use super::security_events::reject;
use crate::api::error::ApiError;
use crate::service::Service;

/// The console's script sends a form.
static HX_REQUEST: HeaderName = HeaderName::from_static("hx-request");

static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Middleware that rejects requests without a valid operator token or session.
pub(crate) async fn authenticate<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    match identify(&request).await {
        Ok(operator) => {
            request.extensions_mut().insert(operator);
            next.call(request).await.map(ServiceResponse::map_into_left_body)
        }
        Err(refusal) => Ok(reject_with(request, &refusal.into())),
    }
}

/// Middleware like [`authenticate`] for pages: a browser that opens one without a session is sent to the
/// sign-in, which leads back. A form that it sends from a page of the console in a session that has ended
/// goes on with [`EndedSession`] instead of an [`Operator`], so that nothing that was typed is lost.
pub(crate) async fn authenticate_page<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let headers = request.headers();
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_page =
        accept.is_some_and(|accept| accept.contains("text/html")) || headers.contains_key(&HX_REQUEST);
    if !is_page {
        return authenticate(request, next).await;
    }
    match identify(&request).await {
        Ok(operator) => {
            request.extensions_mut().insert(operator);
            next.call(request).await.map(ServiceResponse::map_into_left_body)
        }
        Err(refusal) => {
            let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
            if matches!(refusal, Refusal::SessionEnded) && !is_read && is_from_console(&request) {
                request.extensions_mut().insert(EndedSession);
                return next.call(request).await.map(ServiceResponse::map_into_left_body);
            }
            let error = ApiError::from(refusal);
            if error.code == Code::InvalidCredentials && is_read {
                let response = redirect_to_sign_in(&request);
                return Ok(request.into_response(response).map_into_right_body());
            }
            Ok(reject_with(request, &error))
        }
    }
}

/// Marks a form whose sender has the token of a session that has ended. A request without a token needs no
/// credential: its body is not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedSession;

fn is_from_console(request: &ServiceRequest) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| check_same_origin(service, request.headers()).is_ok())
}

fn redirect_to_sign_in(request: &ServiceRequest) -> HttpResponse {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    HttpResponse::SeeOther()
        .insert_header((LOCATION, NextPath::parse_or_root(path).sign_in_url()))
        .finish()
}

fn reject_with<B>(request: ServiceRequest, error: &ApiError) -> ServiceResponse<EitherBody<B>> {
    let mut response = error.error_response();
    if error.code == Code::InvalidCredentials {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    request.into_response(response).map_into_right_body()
}

/// Why a request has no operator.
enum Refusal {
    /// Browsers that were left open are no failed sign-ins.
    SessionEnded,
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::SessionEnded => {
                let message = "the session has ended; sign in again at /sign-in";
                Self::new(Code::InvalidCredentials, message)
            }
            Refusal::Error(error) => error,
        }
    }
}

async fn identify(request: &ServiceRequest) -> Result<Operator, Refusal> {
    let service: &web::Data<Service> = request.app_data().ok_or_else(ApiError::unavailable)?;
    let operators: &web::Data<Operators> = request.app_data().ok_or_else(ApiError::unavailable)?;
    let headers = request.headers();
    let (operator, reason) = if headers.contains_key(AUTHORIZATION) {
        let operator = match bearer_token(headers) {
            Some(token) => find_operator(service, operators, token).await?,
            None => None,
        };
        (operator, SecurityEventReason::OperatorToken)
    } else if let Some(token) = find_cookie(service, ConsoleCookie::Session, headers) {
        let operator = match find_session_operator(operators, token, session_use(request)).await? {
            SessionOperator::Live(operator) => Some(operator),
            SessionOperator::Ended => return Err(Refusal::SessionEnded),
            SessionOperator::Unknown => None,
        };
        (operator, SecurityEventReason::OperatorSession)
    } else {
        return Err(unauthorized().into());
    };
    let Some(operator) = operator else {
        return Err(reject(service, request.request(), reason, NO_TOKEN).into());
    };
    if reason == SecurityEventReason::OperatorSession
        && !matches!(*request.method(), Method::GET | Method::HEAD)
    {
        check_same_origin(service, headers)?;
    }
    Ok(operator)
}

/// Browsers name what a request is for: scripts of an open page read with `empty`, operators open pages.
fn session_use(request: &ServiceRequest) -> SessionUse {
    let destination = request.headers().get(&SEC_FETCH_DEST);
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read && destination.is_some_and(|destination| destination == "empty") {
        SessionUse::ByPage
    } else {
        SessionUse::ByOperator
    }
}

/// The value of a cookie of the console; `None` where browsers have no sessions.
pub(crate) fn find_cookie<'a>(
    service: &Service,
    cookie: ConsoleCookie,
    headers: &'a HeaderMap,
) -> Option<&'a str> {
    check_sessions_permitted(service).ok()?;
    let values = headers.get_all(COOKIE).filter_map(|value| value.to_str().ok());
    cookie.find(&service.console_url, values)
}

/// Rejects a sign-in where browsers would send the session's token over plain HTTP.
///
/// # Errors
/// `FORBIDDEN`.
pub(crate) fn check_sessions_permitted(service: &Service) -> Result<(), ApiError> {
    if service.console_url.permits_sessions(service.environment) {
        return Ok(());
    }
    let message = "production has no sign-in over plain HTTP; set VOUCHSAFE_CONSOLE_URL to the https URL \
        of the operator listener,                    or VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE";
    Err(ApiError::new(Code::Forbidden, message))
}

/// What the token of a session stands for.
pub(crate) enum SessionOperator {
    Live(Operator),
    Ended,
    /// The text is no session's token.
    Unknown,
}

/// Looks up the operator of a session.
pub(crate) async fn find_session_operator(
    operators: &Operators,
    token: &str,
    session_use: SessionUse,
) -> Result<SessionOperator, ApiError> {
    let token = token.as_bytes();
    if !OperatorToken::is_well_formed(TokenKind::Session, token) {
        return Ok(SessionOperator::Unknown);
    }
    match operators
        .find_session_holder(OperatorTokenHash::of(token), session_use)
        .await?
    {
        SessionLookup::Live(SessionHolder {
            name,
            role,
            session,
            authentication,
        }) => Ok(SessionOperator::Live(Operator {
            name,
            role,
            session: Some(session),
            authentication: Some(authentication),
        })),
        SessionLookup::Ended => Ok(SessionOperator::Ended),
        SessionLookup::Unknown => Ok(SessionOperator::Unknown),
    }
}

/// The operator of a token. The token of the settings needs no database, nor does a text that is no token.
async fn find_operator(
    service: &Service,
    operators: &Operators,
    token: &[u8],
) -> Result<Option<Operator>, ApiError> {
    let hash = OperatorTokenHash::of(token);
    if service.operator_token.is_some_and(|token| token.matches(&hash)) {
        return Ok(Some(Operator {
            name: OperatorName::settings_token(),
            role: Role::Admin,
            session: None,
            authentication: None,
        }));
    }
    if !OperatorToken::is_well_formed(TokenKind::Api, token) {
        return Ok(None);
    }
    let holder = operators.authenticate(hash).await?;
    Ok(holder.map(|holder| Operator {
        name: holder.name,
        role: holder.role,
        session: holder.session,
        authentication: holder.authentication,
    }))
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
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION);
    let (first, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = first.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

pub(crate) const NO_TOKEN: &str = "the operator token is missing or wrong; send Authorization: Bearer TOKEN";

fn unauthorized() -> ApiError {
    ApiError::new(Code::InvalidCredentials, NO_TOKEN)
}

#[cfg(test)]
mod tests;

//! Sign-in pages of the console: one-time links, the account, and the sign-out.
//!
//! | Request | Result |
//! |---|---|
//! | `GET /sign-in?next=PATH` | the ways to sign in |
//! | `GET /sign-in/link?token=TOKEN` | a button "Sign in as NAME"; the link stays valid. From another site: a link to the same page |
//! | `POST /sign-in/link` | the link is used up, the session's cookie is set; leads to `next` |
//! | `GET /account` | the operator who is signed in |
//! | `POST /sign-out` | the session is ended, the cookie removed |
//!
//! A page of another site can make a browser open these paths. Nothing is looked up for it, so it can neither
//! find out whether a link is valid nor use up the failed sign-ins of the browser's address. Only a
//! well-formed token can be a guess, and counts.
//!
//! Tokens occur in the query of a link and in bodies. The request log has neither, and the pages send no
//! `Referer`.

use actix_web::body::BoxBody;
use actix_web::http::header::{HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE};
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use serde::Deserialize;
use vouchsafe_domain::operator_session::{OperatorSession, SessionAuthentication, SignInMethod};
use vouchsafe_security::operator_token::{OperatorToken, OperatorTokenHash, TokenKind};
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_sign_in::cookies::ConsoleCookie;
use vouchsafe_sign_in::next_path::NextPath;
use vouchsafe_sign_in::oidc::OidcProvider;
use vouchsafe_sign_in::pages;
use vouchsafe_store::operators::{NewSession, SessionUse};
use vouchsafe_ui::PAGE_HEADERS;
use vouchsafe_wire::error_code::Code;

use super::account::generate_token;
use crate::api::body;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::listener_peers::client_address;
use crate::api::middleware::operator::{
    Operator, SessionOperator, authenticate_page, check_sessions_permitted, find_cookie,
    find_session_operator,
};
use crate::api::middleware::request_origin::{check_same_origin, is_from_other_site};
use crate::api::middleware::security_events::reject;
use crate::api::operator::OperatorState;
use crate::api::routing::resource;
use vouchsafe_telemetry::trace;

/// Longest form of a sign-in page: a link, and the path to which it leads.
const MAX_FORM_BYTES: usize = 8 * 1024;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(resource("/sign-in", "GET").route(web::get().to(sign_in)))
        .service(
            resource("/sign-in/link", "GET, POST")
                .route(web::get().to(open_link))
                .route(web::post().to(redeem_link)),
        )
        .service(resource("/account", "GET").route(web::get().to(account).wrap(from_fn(authenticate_page))))
        .service(resource("/sign-out", "POST").route(web::post().to(sign_out)));
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SignInQuery {
    #[serde(default)]
    pub(super) next: String,
    /// Whether the person is authenticated again.
    #[serde(default)]
    pub(super) step_up: bool,
}

/// `GET /sign-in`.
async fn sign_in(service: web::Data<OperatorState>, query: Option<web::Query<SignInQuery>>) -> HttpResponse {
    if let Err(error) = check_sessions_permitted(&service) {
        return failure(&error);
    }
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let provider = service.identity_provider.as_deref().map(OidcProvider::host);
    html(&pages::sign_in(&NextPath::parse_or_root(&query.next), provider).0)
}

/// The query of a link, and the form of the pages. Has no `Debug`, so that it cannot be logged.
#[derive(Default, Deserialize)]
struct LinkForm {
    /// The token, or the link that contains it.
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

impl LinkForm {
    /// The hash of the token, unless the text cannot be one.
    fn token_hash(&self) -> Option<OperatorTokenHash> {
        let (_, token) = self.token.rsplit_once("token=").unwrap_or(("", &self.token));
        let token = token.trim().as_bytes();
        OperatorToken::is_well_formed(TokenKind::SignInLink, token).then(|| OperatorTokenHash::of(token))
    }
}

/// `GET /sign-in/link`.
async fn open_link(
    service: web::Data<OperatorState>,
    request: HttpRequest,
    query: Option<web::Query<LinkForm>>,
) -> HttpResponse {
    if let Err(error) = check_sessions_permitted(&service) {
        return failure(&error);
    }
    let form = query.map(web::Query::into_inner).unwrap_or_default();
    let Some(hash) = form.token_hash() else {
        return failure(&no_link());
    };
    if is_from_other_site(request.headers()) {
        return html(&pages::continue_with_link(form.token.trim()).0);
    }
    let operators = &service.store.operators;
    match operators.find_sign_in_link(hash).await {
        Ok(Some(operator)) => html(&pages::confirm_link(&operator, form.token.trim()).0),
        Ok(None) => failed_link(&service, &request),
        Err(error) => failure(&error.into()),
    }
}

/// `POST /sign-in/link`.
async fn redeem_link(
    service: web::Data<OperatorState>,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    match try_redeem_link(&service, &request, payload).await {
        Ok(response) => response,
        Err(error) => failure(&error),
    }
}

async fn try_redeem_link(service: &OperatorState, request: &HttpRequest, payload: web::Payload) -> ApiResult {
    check_sessions_permitted(service)?;
    // Another page could otherwise sign a person in to an account of its choice.
    check_same_origin(service, request.headers())?;
    // No credential is needed to send it: the body is not larger than a link and a path.
    let body = body::read_at_most(MAX_FORM_BYTES, request.headers(), payload.into_inner()).await?;
    // A body that is no form has no token.
    let form = std::str::from_utf8(&body).unwrap_or_default();
    let form = web::Query::<LinkForm>::from_query(form).map(web::Query::into_inner);
    let form = form.unwrap_or_default();
    let hash = form.token_hash().ok_or_else(no_link)?;
    let token = generate_token(TokenKind::Session)?;
    let authentication = SessionAuthentication {
        method: SignInMethod::Link,
        at: None,
    };
    let session = new_session(service, request, &token, authentication)?;
    let operators = &service.store.operators;
    Ok(match operators.redeem_sign_in_link(hash, session).await? {
        Some(session) => {
            start_browser_session(service, &session, &token, &NextPath::parse_or_root(&form.next))
        }
        None => failed_link(service, request),
    })
}

/// A session of the client that sends the request.
pub(super) fn new_session(
    service: &OperatorState,
    request: &HttpRequest,
    token: &OperatorToken,
    authentication: SessionAuthentication,
) -> Result<NewSession, ApiError> {
    Ok(NewSession {
        hash: token.hash(),
        authentication,
        address: client_address(request)?.accountable_ip().to_string(),
        trace_id: Some(trace::current_trace_id()).filter(|id| !id.is_empty()),
        replaced: find_cookie(service, ConsoleCookie::Session, request.headers())
            .map(|token| OperatorTokenHash::of(token.as_bytes())),
    })
}

/// Gives the session to the browser, and leads it to the page that it wanted.
pub(super) fn start_browser_session(
    service: &OperatorState,
    session: &OperatorSession,
    token: &OperatorToken,
    next: &NextPath,
) -> HttpResponse {
    tracing::info!(
        operator.name = %session.operator,
        session.id = %session.session_id,
        session.method = session.method.into_str(),
        "operator signed in"
    );
    let cookie = ConsoleCookie::Session.set(&service.console_url, token.expose());
    redirect(next.as_str(), &cookie)
}

/// `GET /account`.
async fn account(operator: Operator) -> HttpResponse {
    html(&pages::account(operator.name(), operator.role()).0)
}

/// `POST /sign-out`: also removes the cookie of a session that has ended.
async fn sign_out(service: web::Data<OperatorState>, request: HttpRequest) -> HttpResponse {
    match end_session(&service, &request).await {
        Ok(()) => redirect("/sign-in", &ConsoleCookie::Session.remove(&service.console_url)),
        Err(error) => failure(&error),
    }
}

async fn end_session(service: &OperatorState, request: &HttpRequest) -> Result<(), ApiError> {
    check_same_origin(service, request.headers())?;
    let Some(token) = find_cookie(service, ConsoleCookie::Session, request.headers()) else {
        return Ok(());
    };
    let found = find_session_operator(&service.store.operators, token, SessionUse::ByOperator).await?;
    if let SessionOperator::Live(operator) = found
        && let Some(session) = operator.session()
    {
        let operators = &service.store.operators;
        operators
            .end_session(session.session_id, operator.audit_actor())
            .await?;
    }
    Ok(())
}

/// The page of a link that is used up, has expired or never existed.
fn failed_link(service: &OperatorState, request: &HttpRequest) -> HttpResponse {
    let message = "the link is no longer valid: it works once, within 10 minutes, until a new one is issued";
    failure(&refusal(service, request, Code::InvalidCredentials, message))
}

/// The error of a text that cannot be a link.
fn no_link() -> ApiError {
    let message = "this is no complete sign-in link; copy the whole line that the command printed";
    ApiError::new(Code::InvalidCredentials, message)
}

/// The error of a failed sign-in, which is a security event.
pub(super) fn refusal(
    service: &OperatorState,
    request: &HttpRequest,
    code: Code,
    message: impl Into<String>,
) -> ApiError {
    let error = reject(service, request, SecurityEventReason::OperatorSignIn, message);
    if error.code == Code::InvalidCredentials {
        return ApiError { code, ..error };
    }
    error
}

fn html(page: &str) -> HttpResponse {
    as_page(HttpResponse::Ok().finish(), page)
}

/// The page of an error, with its status and headers.
pub(super) fn failure(error: &ApiError) -> HttpResponse {
    as_page(error.error_response(), &pages::failure(&error.message).0)
}

pub(super) fn redirect(target: &str, cookie: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, target))
        .insert_header((SET_COOKIE, cookie))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .finish()
}

fn as_page(response: HttpResponse, page: &str) -> HttpResponse {
    let mut response = response.set_body(BoxBody::new(page.to_owned()));
    for (name, value) in PAGE_HEADERS {
        let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
        response.headers_mut().insert(name, value);
    }
    response
}

//! Sign-in by OpenID Connect: the redirect to the provider, and its callback.
//!
//! It begins with a GET: the content policy of the pages forbids a form that leads to another host. A GET can
//! come from a page of another site, in the browser of a person who did not want to sign in. So it counts as
//! a failed sign-in only if it could be a guess: after the state has proved that the sign-in began in this
//! browser.

use actix_web::http::header::{HeaderValue, LOCATION, SET_COOKIE};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use time::OffsetDateTime;
use vouchsafe_domain::operator::OperatorIdentity;
use vouchsafe_domain::operator_session::{SessionAuthentication, SignInMethod};
use vouchsafe_security::operator_token::TokenKind;
use vouchsafe_security::vault::cookie_key::CookieKey;
use vouchsafe_sign_in::cookies::ConsoleCookie;
use vouchsafe_sign_in::next_path::NextPath;
use vouchsafe_sign_in::oidc::{Identity, OidcError, OidcProvider, PendingSignIn, SignInPurpose};
use vouchsafe_store::operators::{ProviderIdentity, ProviderSignIn};
use vouchsafe_wire::error_code::Code;

use super::account::generate_token;
use super::sign_in::{SignInQuery, failure, new_session, redirect, refusal, start_browser_session};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::{check_sessions_permitted, find_cookie};
use crate::api::middleware::request_origin::is_from_other_site;
use crate::api::middleware::security_events::begin_attempt;
use crate::api::operator::OperatorState;
use crate::api::routing::resource;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(resource("/sign-in/oidc", "GET").route(web::get().to(begin)))
        .service(resource("/sign-in/callback", "GET").route(web::get().to(finish)));
}

/// `GET /sign-in/oidc`.
async fn begin(
    service: web::Data<OperatorState>,
    request: HttpRequest,
    query: Option<web::Query<SignInQuery>>,
) -> HttpResponse {
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let next = NextPath::parse_or_root(&query.next);
    if is_from_other_site(request.headers()) {
        // A person has to choose to sign in.
        return HttpResponse::SeeOther()
            .insert_header((LOCATION, next.sign_in_url()))
            .finish();
    }
    let purpose = match query.step_up {
        true => SignInPurpose::StepUp,
        false => SignInPurpose::Session,
    };
    match try_begin(&service, next, purpose).await {
        Ok(response) => response,
        Err(error) => failure(&error),
    }
}

async fn try_begin(service: &OperatorState, next: NextPath, purpose: SignInPurpose) -> ApiResult {
    let now_s = service.clock.now().unix_timestamp();
    let begun = provider(service)?.begin(next, purpose, now_s);
    let (target, pending) = begun.await.map_err(|error| unavailable(&error))?;
    let cookie =
        ConsoleCookie::PendingSignIn.set(&service.console_url, &pending.to_cookie(&cookie_key(service)));
    Ok(redirect(target.as_str(), &cookie))
}

/// The parameters of a callback. Has no `Debug`, so that the code cannot be logged.
#[derive(Default, Deserialize)]
struct Callback {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

/// `GET /sign-in/callback`.
async fn finish(
    service: web::Data<OperatorState>,
    request: HttpRequest,
    query: Option<web::Query<Callback>>,
) -> HttpResponse {
    let callback = query.map(web::Query::into_inner).unwrap_or_default();
    let mut response = match try_finish(&service, &request, callback).await {
        Ok(response) => response,
        Err(error) => failure(&error),
    };
    let removed = ConsoleCookie::PendingSignIn.remove(&service.console_url);
    if let Ok(removed) = HeaderValue::from_str(&removed) {
        response.headers_mut().append(SET_COOKIE, removed);
    }
    response
}

async fn try_finish(service: &OperatorState, request: &HttpRequest, callback: Callback) -> ApiResult {
    let provider = provider(service)?;
    let now_s = service.clock.now().unix_timestamp();
    let cookie = find_cookie(service, ConsoleCookie::PendingSignIn, request.headers());
    let key = cookie_key(service);
    let pending = cookie.and_then(|cookie| PendingSignIn::of_callback(cookie, &key, &callback.state, now_s));
    // Without a code the provider reports an error, such as that the person declined.
    let Some(pending) = pending.filter(|_| !callback.code.is_empty()) else {
        let message = "the sign-in was not begun in this browser within the last 10 minutes, or was declined; sign in again";
        return Err(ApiError::new(Code::InvalidCredentials, message));
    };
    // Limited before the provider is asked: otherwise every guess of a code would reach it.
    let attempt = begin_attempt(service, request)?;
    let finished = provider.finish(&pending, callback.code, now_s).await;
    drop(attempt);
    let identity = match finished {
        Ok(identity) => identity,
        Err(error @ OidcError::Unavailable(_)) => return Err(unavailable(&error)),
        Err(error @ OidcError::NotRecent) => {
            tracing::warn!(error.message = %error, "identity provider did not repeat the authentication");
            let message = "the identity provider did not authenticate you again, or not by a class that is \
                required: its ID token needs a recent auth_time, and acr if VOUCHSAFE_OIDC_ACR_VALUES is \
                set; ask its administrator";
            return Err(ApiError::new(Code::StepUpRequired, message));
        }
        Err(OidcError::Refused(reason)) => {
            tracing::warn!(error.message = reason, "identity provider refused a sign-in");
            let message = "the identity provider did not confirm the sign-in; sign in again";
            return Err(refusal(service, request, Code::InvalidCredentials, message));
        }
    };
    let authenticated_at = identity
        .authenticated_at_s
        .map(OffsetDateTime::from_unix_timestamp);
    let authentication = SessionAuthentication {
        method: SignInMethod::Oidc,
        // A time beyond those of the type is none.
        at: authenticated_at.and_then(Result::ok),
    };
    let identity = to_operator(service, request, provider, identity)?;
    let token = generate_token(TokenKind::Session)?;
    let session = new_session(service, request, &token, authentication)?;
    let operators = &service.store.operators;
    match operators.sign_in_identity(identity, session).await? {
        ProviderSignIn::Started(session) => {
            Ok(start_browser_session(service, &session, &token, &pending.next))
        }
        ProviderSignIn::Disabled(name) => {
            tracing::warn!(operator.name = %name, "account of an identity is disabled");
            let message = format!("the account {name} is disabled; an admin can enable it");
            Err(refusal(service, request, Code::Forbidden, message))
        }
        ProviderSignIn::NameTaken(name) => {
            tracing::warn!(operator.name = %name, "account of an identity belongs to another identity");
            let message = format!("the account {name} belongs to another person at the identity provider");
            Err(refusal(service, request, Code::Forbidden, message))
        }
    }
}

/// The account and the role of a person.
fn to_operator(
    service: &OperatorState,
    request: &HttpRequest,
    provider: &OidcProvider,
    identity: Identity,
) -> Result<ProviderIdentity, ApiError> {
    let refuse = |message: &str| Err(refusal(service, request, Code::Forbidden, message));
    let Some(name) = identity.operator_name() else {
        tracing::warn!(
            oidc.subject = identity.subject,
            "identity has no verified e-mail address"
        );
        return refuse(
            "the identity provider reports no verified e-mail address that can be an operator's name",
        );
    };
    let Some(role) = provider.roles().role_of(&identity) else {
        tracing::warn!(operator.name = %name, "identity has no role");
        return refuse("your account at the identity provider has no role here; ask an administrator");
    };
    Ok(ProviderIdentity {
        identity: OperatorIdentity {
            issuer: provider.issuer().to_owned(),
            subject: identity.subject,
        },
        name,
        role,
    })
}

/// The key of the cookie between the two steps.
fn cookie_key(service: &OperatorState) -> CookieKey {
    service.keyring.vault().cookie_key()
}

fn provider(service: &OperatorState) -> Result<&OidcProvider, ApiError> {
    check_sessions_permitted(service)?;
    let missing = || {
        ApiError::new(
            Code::RouteNotFound,
            "no identity provider is configured; use a one-time link",
        )
    };
    service.identity_provider.as_deref().ok_or_else(missing)
}

fn unavailable(error: &OidcError) -> ApiError {
    tracing::error!(error.message = %error, "identity provider is not available");
    ApiError::new(
        Code::ServiceUnavailable,
        "the identity provider is not available; try again, or use a one-time link",
    )
}

//! `/operators` and `/operator-tokens`: operator accounts, their identities, and issue and revocation of
//! their tokens.
//!
//! Only the response that creates a token contains its text; the database and the audit trail have its hash
//! and ID.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview};
use vouchsafe_domain::ids::{OperatorSessionId, OperatorTokenId};
use vouchsafe_domain::operator::{OperatorAccount, OperatorName};
use vouchsafe_security::operator_token::{OperatorToken, OperatorTokenHash, TokenKind};
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_store::operators::{IssueTokenOutcome, MAX_LIVE_TOKENS, NewOperatorToken};
use vouchsafe_telemetry::trace;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::operator::operators;
use vouchsafe_wire::operator::operators::{
    ActivationRequest, IssueTokenRequest, IssuedOperatorToken, NewOperator, OperatorPatch,
};

use super::account::{check_exists, check_is_account, generate_token};
use super::body::{Json, OptionalJson};
use super::change::{
    Change, ChangeDescription, Execution, Safeguard, submit, submit_with, to_description, to_preview,
};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response, sorted_list_response};
use crate::api::middleware::operator::{NO_TOKEN, Operator, bearer_token};
use crate::api::middleware::security_events::reject;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::sessions;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; operators::OPERATIONS.len()] {
    [
        bind(operators::LIST_OPERATORS, list),
        bind(operators::CREATE_OPERATOR, create),
        bind(operators::CHANGE_OPERATOR, change),
        bind(operators::LIST_OPERATOR_TOKENS, list_tokens),
        bind(operators::ISSUE_OPERATOR_TOKEN, issue_token),
        bind(operators::REVOKE_OPERATOR_TOKEN, revoke_token),
        bind(operators::LIST_OPERATOR_IDENTITIES, list_identities),
        bind(operators::UNLINK_OPERATOR_IDENTITIES, unlink_identities),
        bind(operators::ISSUE_SIGN_IN_LINK, sessions::issue_link),
        bind(operators::LIST_OPERATOR_SESSIONS, sessions::list),
        bind(operators::END_OPERATOR_SESSION, sessions::end),
    ]
}

/// `GET /operators`.
async fn list(service: web::Data<OperatorState>, ListRequest { page, .. }: ListRequest) -> ApiResult {
    let operators = service.store.operators.list().await?;
    sorted_list_response(&page, operators, |operator| operator.name.to_string())
}

/// `POST /operators`.
async fn create(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<NewOperator>,
) -> ApiResult {
    check_is_account(&operator)?;
    let active = !service.four_eyes.is_on();
    let creation = OperatorCreation { request, active };
    submit(&service, &operator, ChangeKind::OperatorCreate, creation).await
}

/// A new operator.
#[derive(Serialize, Deserialize)]
pub(super) struct OperatorCreation {
    request: NewOperator,
    /// Whether it needs no activation.
    active: bool,
}

impl Change for OperatorCreation {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let name = self.request.name.clone();
        match service.store.operators.find(name).await? {
            Some(_) => Err(operator_exists()),
            None => to_description(&self.request.name, None, &self.request),
        }
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        let NewOperator { name, role } = self.request;
        let operators = &service.store.operators;
        let created = operators.create(name, role, self.active, actor);
        let created = created.await?.ok_or_else(operator_exists)?;
        Ok(HttpResponse::Created().json(created))
    }
}

/// `PATCH /operators/{name}`.
async fn change(
    service: web::Data<OperatorState>,
    operator: Operator,
    name: Id<OperatorName>,
    Json(request): Json<OperatorPatch>,
) -> ApiResult {
    let name = name.parse()?;
    if operator.is_named(&name) {
        let message = "this is your own account; another admin has to change it";
        return Err(ApiError::new(Code::OwnAccount, message));
    }
    let only_disables = request.role.is_none() && request.disabled == Some(true);
    if !only_disables {
        check_is_account(&operator)?;
    }
    // Disabling an account is urgent, and another admin can enable it again.
    let safeguard = Safeguard::of_change(&service, only_disables);
    let change = AccountChange { name, request };
    submit_with(safeguard, &service, &operator, ChangeKind::OperatorChange, change).await
}

/// A change of an operator.
#[derive(Serialize, Deserialize)]
pub(super) struct AccountChange {
    name: OperatorName,
    request: OperatorPatch,
}

impl Change for AccountChange {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        check_exists(service, &self.name).await?;
        to_description(&self.name, None, &self.request)
    }

    async fn preview(self, service: &OperatorState) -> Result<Option<ChangePreview>, ApiError> {
        let found = service.store.operators.find(self.name.clone()).await?;
        let before = found.ok_or_else(OperatorName::not_found)?;
        let after = OperatorAccount {
            role: self.request.role.unwrap_or(before.role),
            disabled: self.request.disabled.unwrap_or(before.disabled),
            ..before.clone()
        };
        to_preview(&before, &after)
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        let operators = &service.store.operators;
        let changed = operators.change(self.name, self.request.role, self.request.disabled, actor);
        let changed = changed.await?.ok_or_else(OperatorName::not_found)?;
        Ok(HttpResponse::Ok().json(changed))
    }
}

/// `GET /operators/{name}/tokens`: newest first, with those that ended in the last 90 days.
async fn list_tokens(
    service: web::Data<OperatorState>,
    name: Id<OperatorName>,
    ListRequest { page, .. }: ListRequest,
) -> ApiResult {
    let name = name.parse()?;
    let operators = &service.store.operators;
    let tokens = operators.list_tokens(name.clone(), page.after()?, page.fetch_limit());
    let tokens = tokens.await?;
    if tokens.is_empty() {
        check_exists(&service, &name).await?;
    }
    list_response(&page, tokens, |token| token.token_id)
}

/// `POST /operators/{name}/tokens`.
async fn issue_token(
    service: web::Data<OperatorState>,
    operator: Operator,
    name: Id<OperatorName>,
    OptionalJson(request): OptionalJson<IssueTokenRequest>,
) -> ApiResult {
    check_is_account(&operator)?;
    let name = name.parse()?;
    request.validate_days()?;
    let hash = request.validate_hash()?;
    let four_eyes = service.four_eyes.is_on();
    // The token would outlast the session and what the identity provider knows of the person.
    if four_eyes && operator.session().is_some() && operator.is_named(&name) {
        let message = "while changes need a second operator, a session issues no token of its own account; \
            use an API token, or let another operator request one for you";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let needs_second = four_eyes && !operator.is_named(&name);
    // With the token of another account, an operator could confirm their own changes.
    if needs_second && hash.is_none() {
        let message = "send the SHA-256 of a token that the operator has generated: while changes need a \
            second operator, no one sees the token of another";
        return Err(ApiError::invalid_field("token_sha256", message));
    }
    let session = operator.session().filter(|_| operator.is_named(&name));
    let issue = TokenIssue {
        name,
        request,
        needs_activation: needs_second,
        session_id: session.map(|session| session.session_id),
        ends_at: session.map(|session| session.expires_at),
    };
    let safeguard = match needs_second {
        true => Safeguard::SecondOperator,
        false => Safeguard::StepUp,
    };
    submit_with(
        safeguard,
        &service,
        &operator,
        ChangeKind::OperatorTokenIssue,
        issue,
    )
    .await
}

/// A new token of an operator.
#[derive(Serialize, Deserialize)]
pub(super) struct TokenIssue {
    name: OperatorName,
    request: IssueTokenRequest,
    /// The requester of a token can know its text: it is inactive without the code, which the confirming
    /// operator receives.
    needs_activation: bool,
    /// The session of the same operator that issues it, and its end: neither does the token last longer.
    session_id: Option<OperatorSessionId>,
    ends_at: Option<OffsetDateTime>,
}

impl Change for TokenIssue {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        check_exists(service, &self.name).await?;
        to_description(&self.name, None, &self.request)
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        let validity = Duration::days(self.request.validate_days()?.into());
        let expires_at = service.clock.now() + validity;
        let code = match self.needs_activation {
            true => Some(generate_token(TokenKind::Activation)?),
            false => None,
        };
        let (hash, token) = match self.request.validate_hash()? {
            Some(hash) => (hash, None),
            None => {
                let token = generate_token(TokenKind::Api)?;
                (token.hash(), Some(token))
            }
        };
        let new = NewOperatorToken {
            operator: self.name,
            hash,
            expires_at: Some(self.ends_at.map_or(expires_at, |end| end.min(expires_at))),
            session_id: self.session_id,
            activation: code.as_ref().map(OperatorToken::hash),
        };
        let operators = &service.store.operators;
        match operators.issue_token(new, actor).await? {
            IssueTokenOutcome::Issued(summary) => Ok(HttpResponse::Created()
                .insert_header((CACHE_CONTROL, "no-store"))
                .json(IssuedOperatorToken {
                    summary,
                    token: token.map(|token| token.expose().into()),
                    activation_code: code.map(|code| code.expose().into()),
                })),
            IssueTokenOutcome::OperatorNotFound => Err(OperatorName::not_found()),
            IssueTokenOutcome::HashKnown => {
                let message = "a token with this hash was issued before; generate another token";
                Err(ApiError::invalid_field("token_sha256", message))
            }
            IssueTokenOutcome::TooMany => {
                let message = format!(
                    "the operator has {MAX_LIVE_TOKENS} valid tokens, which is the limit; revoke one"
                );
                Err(ApiError::new(Code::CredentialLimitReached, message))
            }
        }
    }
}

/// `POST /activation`: the holder of an inactive token redeems the code. Both are secrets, so a wrong one is
/// a failed sign-in.
pub(super) async fn activate_token(
    service: web::Data<OperatorState>,
    request: HttpRequest,
    activation: Result<Json<ActivationRequest>, ApiError>,
) -> ApiResult {
    let refused = || reject(&service, &request, SecurityEventReason::OperatorToken, NO_TOKEN);
    let token = bearer_token(request.headers()).ok_or_else(refused)?;
    let Json(activation) = activation?;
    let code = activation.code();
    if !OperatorToken::is_well_formed(TokenKind::Activation, code) {
        return Err(refused());
    }
    let operators = &service.store.operators;
    let trace_id = Some(trace::current_trace_id()).filter(|id| !id.is_empty());
    let activated = operators.activate_token(
        OperatorTokenHash::of(token),
        OperatorTokenHash::of(code),
        trace_id,
    );
    let activated = activated.await?.ok_or_else(refused)?;
    Ok(HttpResponse::Ok().json(activated))
}

/// `GET /operators/{name}/identities`: the identity of the account, if it is linked to one.
async fn list_identities(
    service: web::Data<OperatorState>,
    name: Id<OperatorName>,
    ListRequest { page, .. }: ListRequest<WholeList>,
) -> ApiResult {
    let name = name.parse()?;
    check_exists(&service, &name).await?;
    let identity = service.store.operators.find_identity(name).await?;
    sorted_list_response(&page, identity.into_iter().collect(), |identity| {
        identity.issuer.clone()
    })
}

/// `DELETE /operators/{name}/identities`: 204, also without an identity.
async fn unlink_identities(
    service: web::Data<OperatorState>,
    operator: Operator,
    name: Id<OperatorName>,
) -> ApiResult {
    let name = name.parse()?;
    check_exists(&service, &name).await?;
    let operators = &service.store.operators;
    operators.unlink_identity(name, operator.audit_actor()).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE /operator-tokens/{token_id}`: 204, also if it is revoked already.
async fn revoke_token(
    service: web::Data<OperatorState>,
    operator: Operator,
    token_id: Id<OperatorTokenId>,
) -> ApiResult {
    let token_id = token_id.parse()?;
    let operators = &service.store.operators;
    let revoked = operators.revoke_token(token_id, operator.audit_actor()).await?;
    revoked
        .map(|_| HttpResponse::NoContent().finish())
        .ok_or_else(OperatorTokenId::not_found)
}

fn operator_exists() -> ApiError {
    let message = "there is an operator with this name; change it with PATCH, or choose another name";
    ApiError::new(Code::OperatorExists, message)
}

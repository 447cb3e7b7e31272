//! `/sessions` and sign-in links: sessions of operators in the console.
//!
//! Only the response that creates a link contains its token; the database has its hash.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::OperatorSessionId;
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::operator_session::SessionFilter;
use vouchsafe_security::operator_token::TokenKind;
use vouchsafe_store::operators::IssueLinkOutcome;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::sessions::SignInLink;

use super::account::{check_exists, check_is_account, generate_token};
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::{Operator, check_sessions_permitted};
use crate::api::operator::OperatorState;
use crate::api::path_id::{Id, PathId as _};

/// `GET /sessions`: newest first. Admins see all of them, others their own.
pub(super) async fn list(
    service: web::Data<OperatorState>,
    operator: Operator,
    ListRequest { page, mut filter }: ListRequest<SessionFilter>,
) -> ApiResult {
    if !operator.has_role(Role::Admin) {
        let name = filter.operator.get_or_insert_with(|| operator.name().clone());
        check_own_or_admin(&operator, operator.is_named(name))?;
    }
    let operators = &service.store.operators;
    let sessions = operators.list_sessions(filter, page.after()?, page.fetch_limit());
    list_response(&page, sessions.await?, |session| session.session_id)
}

/// `DELETE /sessions/{session_id}`: 204, also if it has ended already.
pub(super) async fn end(
    service: web::Data<OperatorState>,
    operator: Operator,
    session_id: Id<OperatorSessionId>,
) -> ApiResult {
    let session_id = session_id.parse()?;
    let operators = &service.store.operators;
    let session = operators.find_session(session_id).await?;
    let session = session.ok_or_else(OperatorSessionId::not_found)?;
    check_own_or_admin(&operator, operator.is_named(&session.operator))?;
    operators.end_session(session_id, operator.audit_actor()).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `POST /operators/{name}/sign-in-links`.
pub(super) async fn issue_link(
    service: web::Data<OperatorState>,
    operator: Operator,
    name: Id<OperatorName>,
) -> ApiResult {
    check_sessions_permitted(&service)?;
    check_is_account(&operator)?;
    let name = name.parse()?;
    check_exists(&service, &name).await?;
    let is_own = operator.is_named(&name);
    check_own_or_admin(&operator, is_own)?;
    // In the session of another account, an operator could confirm their own changes.
    if service.four_eyes.is_on() && !is_own {
        let message = "while changes need a second operator, operators issue sign-in links for themselves, \
            each with a token of their own account";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    // A session would otherwise extend itself beyond its 12 hours, also after the identity provider ended the
    // person's access.
    if operator.session().is_some() {
        let message =
            "a sign-in link is issued with an API token or on the database, not in a session of the console";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let token = generate_token(TokenKind::SignInLink)?;
    let operators = &service.store.operators;
    let issued = operators.issue_sign_in_link(name.clone(), token.hash(), operator.audit_actor());
    match issued.await? {
        IssueLinkOutcome::Issued { expires_at } => Ok(HttpResponse::Created()
            .insert_header((CACHE_CONTROL, "no-store"))
            .json(SignInLink::new(name, &service.console_url, &token, expires_at))),
        IssueLinkOutcome::OperatorNotFound => Err(OperatorName::not_found()),
        IssueLinkOutcome::OperatorDisabled => {
            let message = "the account is disabled; an admin can enable it again";
            Err(ApiError::new(Code::OperatorDisabled, message))
        }
    }
}

fn check_own_or_admin(operator: &Operator, is_own: bool) -> Result<(), ApiError> {
    if is_own {
        return Ok(());
    }
    operator.check_role(Role::Admin)
}

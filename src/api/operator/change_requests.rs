//! `/requests`: changes that need a second operator (four-eyes principle).
//!
//! | step | on disk |
//! |---|---|
//! | an operator calls the route of a change; validate it | nothing |
//! | 202 with the request | the encrypted change, an audit entry |
//! | another operator confirms it | `CONFIRMED`, an audit entry with both names |
//! | carry the change out in the name of its requester; the response is that of its route | the change, its own audit entry |
//! | end the request | `EXECUTED`, or `REFUSED` with the error code |
//!
//! Without an outcome (the node died, or 503) the request stays `CONFIRMED` and can be confirmed again after
//! a minute.

use actix_web::{HttpResponse, web};
use secrecy::zeroize::Zeroizing;
use serde::de::IgnoredAny;
use tracing::Instrument as _;
use vouchsafe_domain::change_request::{
    ChangeKind, ChangePreview, ChangeRequest, ChangeRequestFilter, ChangeRequestStatus,
};
use vouchsafe_domain::ids::ChangeRequestId;
use vouchsafe_domain::operator::{OperatorAccount, OperatorName};
use vouchsafe_security::vault::seal::sealed_key_id;
use vouchsafe_store::AuditActor;
use vouchsafe_store::change_requests::{ChangeOutcome, StoredChangeRequest};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::change_requests::ChangeRequestWithPreview;
use vouchsafe_wire::operator::decision::DeclineRequest;
use vouchsafe_wire::operator::{change_requests, required_role};

use super::body::OptionalJson;
use super::change::{Change, Execution, SealedChange};
use super::credential_rotation::CredentialRotation;
use super::credentials::CredentialIssue;
use super::operators::{AccountChange, OperatorCreation, TokenIssue};
use super::orders::{Fulfilment, OrderApproval};
use super::partners::TermsChange;
use super::payouts::DecisionOnPayout;
use super::vendors::VendorPut;
use super::wallets::WalletPosting;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::{Operator, audit_actor};
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; change_requests::OPERATIONS.len()] {
    [
        bind(change_requests::LIST_CHANGE_REQUESTS, list),
        bind(change_requests::GET_CHANGE_REQUEST, get),
        bind(change_requests::CONFIRM_CHANGE_REQUEST, confirm),
        bind(change_requests::DECLINE_CHANGE_REQUEST, decline),
    ]
}

/// `GET /requests`: newest first.
async fn list(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<ChangeRequestFilter>,
) -> ApiResult {
    let requests = &service.store.change_requests;
    let mut found = requests.list(filter, page.after()?, page.fetch_limit()).await?;
    let ids = found.iter().map(|request| request.request_id);
    let sealed = requests.find_sealed(ids.collect()).await?;
    for request in &mut found {
        if let Some(sealed) = sealed.get(&request.request_id) {
            describe(&service, request, sealed).await;
        }
    }
    list_response(&page, found, |request| request.request_id)
}

/// `GET /requests/{request_id}`.
async fn get(service: web::Data<OperatorState>, request_id: Id<ChangeRequestId>) -> ApiResult {
    let StoredChangeRequest {
        mut request, sealed, ..
    } = find(&service, &request_id).await?;
    let mut found = None;
    if let Some(sealed) = sealed
        && let Ok(change) = open(&service, request.request_id, &sealed).await
        && let Ok(sealed) = SealedChange::<IgnoredAny>::parse(&change)
    {
        sealed.describe(&mut request);
        if request.status == ChangeRequestStatus::Waiting {
            found = match preview(&service, &request, &change).await {
                Err(error) if error.code.retryable() => return Err(error),
                // The request can be shown and declined nevertheless, and its confirmation says why it fails.
                other => other.unwrap_or_default(),
            };
        }
    }
    Ok(HttpResponse::Ok().json(ChangeRequestWithPreview {
        request,
        preview: found,
    }))
}

/// Shows of a request that has not ended what was encrypted with the change: the row may be altered in the
/// database, and the second operator decides by what is shown.
async fn describe(service: &OperatorState, request: &mut ChangeRequest, sealed: &[u8]) {
    // A change that was altered cannot be confirmed, whatever its row shows.
    if let Ok(change) = open(service, request.request_id, sealed).await
        && let Ok(sealed) = SealedChange::<IgnoredAny>::parse(&change)
    {
        sealed.describe(request);
    }
}

/// `POST /requests/{request_id}/confirm`: carries the change out, and responds as its route does.
async fn confirm(
    service: web::Data<OperatorState>,
    operator: Operator,
    request_id: Id<ChangeRequestId>,
) -> ApiResult {
    let StoredChangeRequest {
        request,
        sealed,
        requester,
    } = find(&service, &request_id).await?;
    if operator.is_from_settings() {
        let message = "the token of the settings belongs to no person; confirm with the token of an account";
        return Err(ApiError::new(Code::OwnChangeRequest, message));
    }
    let sealed = sealed.ok_or_else(|| not_waiting(&request))?;
    let change = open(&service, request.request_id, &sealed).await?;
    // The row may be altered between here and the confirmation: what is checked is what was encrypted.
    let sealed = SealedChange::<IgnoredAny>::parse(&change)?;
    operator.check_role(required_role(sealed.kind))?;
    if operator.is_named(&sealed.requested_by) {
        let message = "you requested this change; another operator has to confirm it";
        return Err(ApiError::new(Code::OwnChangeRequest, message));
    }
    operator.check_recent_authentication(service.clock.now())?;
    if !may_request(&service, requester.as_ref(), &sealed) {
        let message = format!(
            "{} may no longer request this change; decline it",
            sealed.requested_by
        );
        return Err(ApiError::new(Code::ChangeRequestNotWaiting, message));
    }
    let requests = &service.store.change_requests;
    let confirmed = requests
        .confirm(
            request.request_id,
            operator.name().clone(),
            operator.audit_actor(),
        )
        .await?;
    let Some(confirmed) = confirmed else {
        return Err(not_waiting(&find(&service, &request_id).await?.request));
    };
    let actor = audit_actor(&confirmed.requested_by);
    // A task of its own: if the client disconnects, the change is carried out and the request ends
    // nevertheless.
    #[allow(clippy::disallowed_methods)]
    let carried_out = actix_web::rt::spawn(
        async move { carry_out_and_finish(&service, actor, &confirmed, &change).await }.in_current_span(),
    );
    carried_out.await.map_err(|error| {
        tracing::error!(error.message = %error, "the task of a change request ended early");
        ApiError::unavailable()
    })?
}

/// Whether the requester still has the right to the change.
fn may_request(
    service: &OperatorState,
    account: Option<&OperatorAccount>,
    sealed: &SealedChange<IgnoredAny>,
) -> bool {
    if sealed.requested_by == OperatorName::settings_token() {
        // An admin, as long as the settings have this token.
        return sealed.is_of_settings_token(service.operator_token.as_ref());
    }
    account.is_some_and(|account| {
        account.name == sealed.requested_by && !account.disabled && account.role >= required_role(sealed.kind)
    })
}

async fn carry_out_and_finish(
    service: &web::Data<OperatorState>,
    actor: AuditActor,
    request: &ChangeRequest,
    change: &[u8],
) -> ApiResult {
    let execution = Execution {
        service,
        actor,
        request_id: Some(request.request_id),
    };
    let result = carry_out(execution, request, change).await;
    let outcome = match &result {
        Ok(_) => ChangeOutcome::Executed,
        // An earlier confirmation has carried it out.
        Err(error) if error.code == Code::CredentialIssuedBefore => ChangeOutcome::Executed,
        Err(error) if error.code.retryable() || error.code.status() >= 500 => return result,
        Err(error) => ChangeOutcome::Refused(error.code.as_str()),
    };
    let requests = &service.store.change_requests;
    if let Err(error) = requests
        .finish(request.request_id, request.decided_at, outcome)
        .await
    {
        // It stays CONFIRMED; confirming it again finds that the change is made.
        tracing::warn!(request.id = %request.request_id, error.message = %error, "cannot end a change request");
    }
    result
}

/// `POST /requests/{request_id}/decline`.
async fn decline(
    service: web::Data<OperatorState>,
    operator: Operator,
    request_id: Id<ChangeRequestId>,
    OptionalJson(decline): OptionalJson<DeclineRequest>,
) -> ApiResult {
    let StoredChangeRequest {
        mut request, sealed, ..
    } = find(&service, &request_id).await?;
    if let Some(sealed) = sealed {
        describe(&service, &mut request, &sealed).await;
    }
    operator.check_role(required_role(request.kind))?;
    let requests = &service.store.change_requests;
    let declined = requests.decline(
        request.request_id,
        operator.name().clone(),
        decline.reason.map(Into::into),
        operator.audit_actor(),
    );
    match declined.await? {
        Some(declined) => Ok(HttpResponse::Ok().json(declined)),
        None => Err(not_waiting(&find(&service, &request_id).await?.request)),
    }
}

async fn find(
    service: &OperatorState,
    request_id: &Id<ChangeRequestId>,
) -> Result<StoredChangeRequest, ApiError> {
    let requests = &service.store.change_requests;
    let found = requests.find(request_id.parse()?).await?;
    found.ok_or_else(ChangeRequestId::not_found)
}

/// Says what became of the request, so that the second of two operators sees what the first did.
fn not_waiting(request: &ChangeRequest) -> ApiError {
    let by = request.decided_by.as_ref().map_or("nobody", |name| name.as_str());
    let message = match request.status {
        ChangeRequestStatus::Waiting | ChangeRequestStatus::Confirmed => {
            format!("{by} has confirmed this request, and it is being carried out; look at it in a minute")
        }
        ChangeRequestStatus::Executed => format!("{by} has confirmed this request, and it was carried out"),
        ChangeRequestStatus::Refused => {
            let code = request.error_code.as_deref().unwrap_or_default();
            format!(
                "{by} has confirmed this request, but it was refused with {code}; request the change again"
            )
        }
        ChangeRequestStatus::Declined => format!("{by} has declined this request"),
        ChangeRequestStatus::Expired => "this request has expired; request the change again".to_owned(),
    };
    ApiError::new(Code::ChangeRequestNotWaiting, message)
}

/// Declares the types of the changes by their kinds.
macro_rules! changes {
    ($($kind:ident($change:ty)),+ $(,)?) => {
        /// Carries out a decrypted change.
        async fn carry_out(execution: Execution<'_>, request: &ChangeRequest, change: &[u8]) -> ApiResult {
            match request.kind {
                $(ChangeKind::$kind => {
                    let sealed = SealedChange::<$change>::parse(change)?;
                    Box::pin(sealed.into_change(request)?.carry_out(execution)).await
                })+
            }
        }

        /// What a decrypted change finds and leaves.
        async fn preview(
            service: &OperatorState,
            request: &ChangeRequest,
            change: &[u8],
        ) -> Result<Option<ChangePreview>, ApiError> {
            match request.kind {
                $(ChangeKind::$kind => {
                    let sealed = SealedChange::<$change>::parse(change)?;
                    Box::pin(sealed.into_change(request)?.preview(service)).await
                })+
            }
        }
    };
}

changes! {
    TopUp(WalletPosting),
    Adjustment(WalletPosting),
    PayoutPay(DecisionOnPayout),
    PayoutReject(DecisionOnPayout),
    PayoutFail(DecisionOnPayout),
    OrderApprove(OrderApproval),
    OrderFulfil(Fulfilment),
    CredentialIssue(CredentialIssue),
    CredentialRotate(CredentialRotation),
    PartnerChange(TermsChange),
    OperatorCreate(OperatorCreation),
    OperatorChange(AccountChange),
    OperatorTokenIssue(TokenIssue),
    VendorPut(VendorPut),
}

async fn open(
    service: &OperatorState,
    request_id: ChangeRequestId,
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, ApiError> {
    let vault = service.keyring.vault_with(sealed_key_id(sealed));
    let vault = vault.await.map_err(|error| {
        tracing::error!(error.message = %error, "cannot reload the data keys");
        ApiError::unavailable()
    })?;
    vault.open_change(request_id.as_uuid(), sealed).ok_or_else(|| {
        tracing::error!(request.id = %request_id, "cannot decrypt a change request");
        ApiError::new(
            Code::InternalError,
            "cannot decrypt the request; see the service log",
        )
    })
}

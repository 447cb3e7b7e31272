//! `/payouts`: payouts of all partners, and operators' decisions on them.
//!
//! The first decision on a payout is final; its audit entry is written in the same commit. Lists mask the
//! destination.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use vouchsafe_actors::flows::{DecidePayout, DecidePayoutError, decide_payout};
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview};
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::order::Actor;
use vouchsafe_domain::payout::{Payout, PayoutOutcome, PayoutSearch, PayoutStatus};
use vouchsafe_security::vault::seal::sealed_key_id;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::payouts;
use vouchsafe_wire::operator::payouts::{PayoutDecisionRequest, PayoutOfPartner};

use super::body::{Json, OptionalJson};
use super::change::{Change, ChangeDescription, Execution, submit, to_description};
use super::decision::decision_error;
use super::wallets::preview_balance;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::erasure::{self, ErasureCall};
use crate::api::operator::reports::Reports;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; payouts::OPERATIONS.len()] {
    [
        bind(payouts::LIST_PAYOUTS, list),
        bind(payouts::GET_PAYOUT, get),
        bind(payouts::PAY_PAYOUT, |request| {
            decide(request, PayoutOutcome::Paid, ChangeKind::PayoutPay)
        }),
        bind(payouts::REJECT_PAYOUT, |request| {
            decide(request, PayoutOutcome::Rejected, ChangeKind::PayoutReject)
        }),
        bind(payouts::FAIL_PAYOUT, |request| {
            decide(request, PayoutOutcome::Failed, ChangeKind::PayoutFail)
        }),
        bind(payouts::ERASE_PAYOUT, erase),
    ]
}

/// `GET /payouts`.
async fn list(reports: Reports, ListRequest { page, filter }: ListRequest<PayoutSearch>) -> ApiResult {
    let (after, limit) = (page.after()?, page.fetch_limit());
    let payouts = reports.read(async |store| store.payouts.list(filter, after, limit).await);
    let payouts = payouts.await?;
    let bodies: Vec<_> = payouts.iter().map(payout_body).collect::<Result<_, _>>()?;
    list_response(&page, bodies, PayoutOfPartner::payout_id)
}

/// `GET /payouts/{payout_id}`: with the unmasked destination, audited before the response is sent, for
/// operators who may pay.
async fn get(service: web::Data<OperatorState>, operator: Operator, payout_id: Id<PayoutId>) -> ApiResult {
    let (partner_id, payout_id) = find(&service, &payout_id).await?;
    let payout = service.store.payouts.find(partner_id, payout_id).await?;
    let mut payout = payout.ok_or_else(PayoutId::not_found)?;
    // The first admin who sees the destination can pay; from then on the partner cannot cancel the payout. An
    // erased destination is empty.
    if operator.has_role(Role::Admin) && !payout.destination.sealed.is_empty() {
        let actor = operator.audit_actor();
        let key = sealed_key_id(&payout.destination.sealed);
        let vault = service.keyring.vault_with(key).await.map_err(|error| {
            tracing::error!(error.message = %error, "cannot reload the data keys");
            ApiError::unavailable()
        })?;
        let decrypted = vault.open_destination(partner_id.as_uuid(), &payout.destination.sealed);
        let decrypted = decrypted.map_err(|error| {
            tracing::error!(error.message = %error, payout.id = %payout_id, "cannot decrypt payout destination");
            ApiError::new(
                Code::InternalError,
                "cannot decrypt the destination; see the service log",
            )
        })?;
        let payouts = &service.store.payouts;
        if payouts.open_destination(&payout, actor).await? {
            payout.destination.masked = decrypted.as_str().into();
        }
    }
    let body = payout_body(&payout)?;
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(body))
}

/// `POST /payouts/{payout_id}/erase`.
async fn erase((service, operator, payout_id, Json(request)): ErasureCall<PayoutId>) -> ApiResult {
    let actor = operator.audit_actor();
    let (partner_id, payout_id) = find(&service, &payout_id).await?;
    let erased = service
        .store
        .erasures
        .erase_payout(partner_id, payout_id, request.reason.into(), actor);
    let open = "the payout is pending: its destination is still needed";
    erasure::to_response(erased.await?, open, PayoutId::not_found)
}

/// A decision on a payout.
pub(super) type DecisionRequest = (
    web::Data<OperatorState>,
    Operator,
    Id<PayoutId>,
    OptionalJson<PayoutDecisionRequest>,
);

/// `POST /payouts/{payout_id}/pay`, `/reject` and `/fail`.
async fn decide(
    (service, operator, payout_id, OptionalJson(request)): DecisionRequest,
    outcome: PayoutOutcome,
    change: ChangeKind,
) -> ApiResult {
    let (_, payout_id) = find(&service, &payout_id).await?;
    let decision = DecisionOnPayout {
        payout_id,
        outcome,
        request,
    };
    submit(&service, &operator, change, decision).await
}

/// An operator's decision on a payout.
#[derive(Serialize, Deserialize)]
pub(super) struct DecisionOnPayout {
    payout_id: PayoutId,
    outcome: PayoutOutcome,
    request: PayoutDecisionRequest,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(flatten)]
    request: &'a PayoutDecisionRequest,
    payout: PayoutOfPartner<'a>,
}

impl Change for DecisionOnPayout {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let payouts = &service.store.payouts;
        let owner = payouts
            .find_owner(self.payout_id)
            .await?
            .ok_or_else(PayoutId::not_found)?;
        let payout = payouts
            .find(owner, self.payout_id)
            .await?
            .ok_or_else(PayoutId::not_found)?;
        if payout.status != PayoutStatus::Pending {
            return Err(decide_payout_error(&DecidePayoutError::AlreadyDecided(
                payout.status,
            )));
        }
        self.reserve(service, owner).await?;
        to_description(
            self.payout_id,
            owner,
            &Details {
                request: &self.request,
                payout: payout_body(&payout)?,
            },
        )
    }

    /// A payout that is not paid goes back to the wallet.
    async fn preview(self, service: &OperatorState) -> Result<Option<ChangePreview>, ApiError> {
        if self.outcome == PayoutOutcome::Paid {
            return Ok(None);
        }
        let payouts = &service.store.payouts;
        let owner = payouts.find_owner(self.payout_id).await?;
        let partner_id = owner.ok_or_else(PayoutId::not_found)?;
        let payout = payouts.find(partner_id, self.payout_id).await?;
        let payout = payout.ok_or_else(PayoutId::not_found)?;
        if payout.status != PayoutStatus::Pending {
            return Ok(None);
        }
        preview_balance(service, partner_id, payout.money).await
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        let owner = service.store.payouts.find_owner(self.payout_id).await?;
        let partner_id = owner.ok_or_else(PayoutId::not_found)?;
        self.reserve(service, partner_id).await?;
        let command = DecidePayout {
            partner_id,
            payout_id: self.payout_id,
            decision: self.request.decision(self.outcome),
            author: actor,
        };
        let payout = decide_payout(&service.engine, command).await;
        let payout = payout.map_err(|error| decide_payout_error(&error))?;
        Ok(HttpResponse::Ok().json(payout_body(&payout)?))
    }
}

impl DecisionOnPayout {
    /// Reserves the payout for operators, unless its money stays in the wallet. Otherwise a cancellation
    /// could return money that was transferred.
    async fn reserve(&self, service: &OperatorState, partner_id: PartnerId) -> Result<(), ApiError> {
        if self.outcome == PayoutOutcome::Rejected {
            return Ok(());
        }
        let payouts = &service.store.payouts;
        if payouts
            .reserve(partner_id, self.payout_id, Actor::Operator)
            .await?
        {
            return Ok(());
        }
        let payout = payouts.find(partner_id, self.payout_id).await?;
        let payout = payout.ok_or_else(PayoutId::not_found)?;
        Err(match payout.status {
            PayoutStatus::Pending => ApiError::new(
                Code::PayoutNotPending,
                "the partner is cancelling the payout; reject it, and transfer nothing",
            ),
            decided => decide_payout_error(&DecidePayoutError::AlreadyDecided(decided)),
        })
    }
}

fn payout_body(payout: &Payout) -> Result<PayoutOfPartner<'_>, ApiError> {
    PayoutOfPartner::of(payout).map_err(|_| {
        tracing::error!(payout.id = %payout.payout_id, "invalid JSON in payout destination");
        ApiError::new(Code::InternalError, "cannot serialize the payout")
    })
}

async fn find(service: &OperatorState, payout_id: &Id<PayoutId>) -> Result<(PartnerId, PayoutId), ApiError> {
    let payout_id = payout_id.parse()?;
    let owner = service.store.payouts.find_owner(payout_id).await?;
    Ok((owner.ok_or_else(PayoutId::not_found)?, payout_id))
}

fn decide_payout_error(error: &DecidePayoutError) -> ApiError {
    match error {
        DecidePayoutError::NotFound => PayoutId::not_found(),
        DecidePayoutError::AlreadyDecided(_) => ApiError::new(Code::PayoutNotPending, error.to_string()),
        DecidePayoutError::Flow(flow_error) => decision_error(flow_error),
    }
}

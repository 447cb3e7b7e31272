//! `/payouts`: payouts of all partners, and operators' decisions on them.
//!
//! The first decision on a payout is final; its audit entry is written in the same commit. Lists mask the destination.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::flows::{DecidePayout, DecidePayoutError, decide_payout};
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::payout::{Payout, PayoutDecision, PayoutMilestone, PayoutOutcome, PayoutStatus};

use super::body::OptionalJson;
use super::decision::{decision_error, validate_reason, validate_reference};
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use vouchsafe_wire::page::PageRequest;
use crate::service::Service;
use vouchsafe_domain::payout::PayoutFilter;
use vouchsafe_wire::error_code::Code;

const FILTERS: [&str; 2] = ["partner_id", "status"];

/// A payout and its partner.
#[derive(Serialize, ToSchema)]
pub struct PayoutOfPartner {
    partner_id: PartnerId,
    /// Payout ID.
    payout_id: PayoutId,
    /// Status.
    status: PayoutStatus,
    /// Amount in `currency`.
    amount: Money,
    /// Currency of `amount`.
    currency: Currency,
    /// Destination of the money, with masked numbers.
    #[schema(value_type = BTreeMap<String, String>)]
    destination: Box<RawValue>,
    /// The partner's reference.
    #[schema(required)]
    reference: Option<String>,
    /// Status changes, oldest first.
    timeline: Vec<PayoutMilestone>,
    /// Time at which it was accepted.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// Time of the last change.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

impl PayoutOfPartner {
    fn of(payout: Payout) -> Result<Self, ApiError> {
        let destination = RawValue::from_string(payout.destination.masked.to_string()).map_err(|_| {
            tracing::error!(payout.id = %payout.payout_id, "invalid JSON in payout destination");
            ApiError::new(Code::InternalError, "cannot serialize the payout")
        })?;
        Ok(Self {
            partner_id: payout.partner_id,
            payout_id: payout.payout_id,
            status: payout.status,
            amount: payout.money,
            currency: payout.money.currency,
            destination,
            reference: payout.reference,
            timeline: payout.timeline,
            created_at: payout.created_at,
            updated_at: payout.updated_at,
        })
    }
}

/// Details of a payout decision, all optional.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PayoutDecisionRequest {
    /// Reason, shown to the partner in the timeline.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    reason: Option<String>,
    /// Reference of the payment at the bank.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    reference: Option<String>,
}

impl PayoutDecisionRequest {
    fn decision(&self, outcome: PayoutOutcome) -> Result<PayoutDecision, ApiError> {
        Ok(PayoutDecision {
            outcome,
            reason: self.reason.as_deref().map(validate_reason).transpose()?,
            reference: self.reference.as_deref().map(validate_reference).transpose()?,
        })
    }
}

/// `GET /payouts`; filters: `partner_id`, `status`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = PayoutFilter {
        partner_id: page.parsed_filter("partner_id")?,
        status: page.enum_filter("status", &PayoutStatus::ALL, PayoutStatus::as_str)?,
    };
    let payouts = service
        .store
        .payouts
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = payouts
        .into_iter()
        .map(PayoutOfPartner::of)
        .collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(page.body(bodies, |body| body.payout_id.to_string())))
}

/// `GET /payouts/{payout_id}`: with the unmasked destination, audited before the response is sent, for operators who may pay.
pub(super) async fn get(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let (partner_id, payout_id) = find(&service, &payout_id).await?;
    let payout = service.store.payouts.find(partner_id, payout_id).await?;
    let mut payout = payout.ok_or_else(not_found)?;
    if let Ok(actor) = operator.authorize(Role::Operator) {
        let vault = service.keyring.vault();
        let decrypted = vault.open_destination(partner_id.as_uuid(), &payout.destination.sealed);
        let decrypted = decrypted.map_err(|error| {
            tracing::error!(error.message = %error, payout.id = %payout_id, "cannot decrypt payout destination");
            ApiError::new(
                Code::InternalError,
                "cannot decrypt the destination; see the service log",
            )
        })?;
        service
            .store
            .payouts
            .audit_destination_read(payout_id, actor)
            .await?;
        payout.destination.masked = decrypted.as_str().into();
    }
    let body = PayoutOfPartner::of(payout)?;
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(body))
}

/// `POST /payouts/{payout_id}/pay`.
pub(super) async fn pay(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
    request: OptionalJson<PayoutDecisionRequest>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, request, PayoutOutcome::Paid).await
}

/// `POST /payouts/{payout_id}/reject`.
pub(super) async fn reject(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
    request: OptionalJson<PayoutDecisionRequest>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, request, PayoutOutcome::Rejected).await
}

/// `POST /payouts/{payout_id}/fail`.
pub(super) async fn fail(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
    request: OptionalJson<PayoutDecisionRequest>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, request, PayoutOutcome::Failed).await
}

async fn decide(
    service: &Service,
    operator: &Operator,
    payout_id: &str,
    OptionalJson(request): OptionalJson<PayoutDecisionRequest>,
    outcome: PayoutOutcome,
) -> Result<HttpResponse, ApiError> {
    let operator = operator.authorize(Role::Operator)?.into();
    let decision = request.decision(outcome)?;
    let (partner_id, payout_id) = find(service, payout_id).await?;
    let command = DecidePayout {
        partner_id,
        payout_id,
        decision,
        operator,
    };
    let payout = decide_payout(&service.engine, command).await;
    let payout = payout.map_err(|error| decide_payout_error(&error))?;
    Ok(HttpResponse::Ok().json(PayoutOfPartner::of(payout)?))
}

async fn find(service: &Service, payout_id: &str) -> Result<(PartnerId, PayoutId), ApiError> {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let owner = service.store.payouts.find_owner(payout_id).await?;
    Ok((owner.ok_or_else(not_found)?, payout_id))
}

fn not_found() -> ApiError {
    ApiError::new(Code::PayoutNotFound, "no such payout")
}

fn decide_payout_error(error: &DecidePayoutError) -> ApiError {
    match error {
        DecidePayoutError::NotFound => not_found(),
        DecidePayoutError::AlreadyDecided(_) => ApiError::new(Code::PayoutNotPending, error.to_string()),
        DecidePayoutError::Flow(flow_error) => decision_error(flow_error),
    }
}

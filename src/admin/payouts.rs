//! `/payouts`: money that partners have sent out of their wallets, and what operators say became of it.
//!
//! Rule: a payout is decided once, by whoever comes first; the trail tells of it in the same commit. Where the money goes
//! is masked in every list.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::{PartnerId, PayoutId};
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::payout::{Payout, PayoutDecision, PayoutEnd, PayoutMilestone, PayoutStatus};
use vouchsafe_actors::flows::{DecidePayout, PayoutNotDecided, decide_payout};

use super::body::JsonOrNothing;
use super::decision::{reason, reference, undecided};
use super::operator::{Operator, Role};
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::service::Service;
use crate::store::PayoutFilter;

/// What payouts are listed by.
const FILTERS: [&str; 2] = ["partner_id", "status"];

/// A payout, and whose it is.
#[derive(Serialize, ToSchema)]
pub(super) struct PayoutOfPartner {
    partner_id: PartnerId,
    /// Its id.
    payout_id: PayoutId,
    /// Where it stands.
    status: PayoutStatus,
    /// How much.
    amount: Money,
    /// Of what.
    currency: Currency,
    /// Where the money goes, with its numbers masked.
    #[schema(value_type = BTreeMap<String, String>)]
    destination: Box<RawValue>,
    /// What the partner calls it.
    #[schema(required)]
    reference: Option<String>,
    /// How it came here, oldest first.
    timeline: Vec<PayoutMilestone>,
    /// When it was accepted.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
    /// When something about it last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

impl PayoutOfPartner {
    fn of(payout: Payout) -> Result<Self, ApiError> {
        let destination = RawValue::from_string(payout.destination.shown.to_string()).map_err(|_| {
            tracing::error!(payout.id = %payout.payout_id, "a payout's destination is no JSON");
            ApiError::new(Code::InternalError, "a payout could not be written")
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

/// What an operator says of a payout. All of it may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PayoutWord {
    /// Why: the partner reads it in the timeline.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    reason: Option<String>,
    /// What the payment is called where it was made.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    reference: Option<String>,
}

impl PayoutWord {
    fn decision(&self, end: PayoutEnd) -> Result<PayoutDecision, ApiError> {
        Ok(PayoutDecision {
            end,
            reason: self.reason.as_deref().map(reason).transpose()?,
            reference: self.reference.as_deref().map(reference).transpose()?,
        })
    }
}

/// `GET /payouts`; filters: `partner_id`, `status`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let wanted = PayoutFilter {
        partner_id: page.parsed("partner_id")?,
        status: page.one_of("status", &PayoutStatus::ALL, PayoutStatus::as_str)?,
    };
    let found = service
        .store
        .list_payouts(wanted, page.after()?, page.fetch())
        .await?;
    let bodies = found
        .into_iter()
        .map(PayoutOfPartner::of)
        .collect::<Result<_, _>>()?;
    Ok(page.answer(bodies, |body| body.payout_id.to_string()))
}

/// `GET /payouts/{payout_id}`: with the whole destination for who may pay it. That is in the trail before the answer leaves.
pub(super) async fn get(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let (partner_id, payout_id) = find(&service, &payout_id).await?;
    let payout = service.store.find_payout(partner_id, payout_id).await?;
    let mut payout = payout.ok_or_else(not_found)?;
    if let Ok(by) = operator.may(Role::Operator) {
        let vault = service.keyring.vault();
        let opened = vault.open_destination(partner_id.as_uuid(), &payout.destination.sealed);
        let opened = opened.map_err(|error| {
            tracing::error!(%error, payout.id = %payout_id, "a destination cannot be opened");
            ApiError::new(
                Code::InternalError,
                "the destination cannot be opened; see the service's log",
            )
        })?;
        service.store.note_destination_read(payout_id, by).await?;
        payout.destination.shown = opened.as_str().into();
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
    word: JsonOrNothing<PayoutWord>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, word, PayoutEnd::Paid).await
}

/// `POST /payouts/{payout_id}/reject`.
pub(super) async fn reject(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
    word: JsonOrNothing<PayoutWord>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, word, PayoutEnd::Rejected).await
}

/// `POST /payouts/{payout_id}/fail`.
pub(super) async fn fail(
    service: web::Data<Service>,
    operator: Operator,
    payout_id: web::Path<String>,
    word: JsonOrNothing<PayoutWord>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &payout_id, word, PayoutEnd::Failed).await
}

async fn decide(
    service: &Service,
    operator: &Operator,
    payout_id: &str,
    JsonOrNothing(word): JsonOrNothing<PayoutWord>,
    end: PayoutEnd,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?.into();
    let decision = word.decision(end)?;
    let (partner_id, payout_id) = find(service, payout_id).await?;
    let command = DecidePayout {
        partner_id,
        payout_id,
        decision,
        by,
    };
    let decided = decide_payout(&service.engine, command).await;
    let payout = decided.map_err(|error| not_decided(&error))?;
    Ok(HttpResponse::Ok().json(PayoutOfPartner::of(payout)?))
}

/// The payout with this id, and whose it is.
async fn find(service: &Service, payout_id: &str) -> Result<(PartnerId, PayoutId), ApiError> {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let owner = service.store.find_payout_owner(payout_id).await?;
    Ok((owner.ok_or_else(not_found)?, payout_id))
}

fn not_found() -> ApiError {
    ApiError::new(Code::PayoutNotFound, "there is no such payout")
}

fn not_decided(error: &PayoutNotDecided) -> ApiError {
    match error {
        PayoutNotDecided::NotFound => not_found(),
        PayoutNotDecided::Over(_) => ApiError::new(Code::PayoutNotPending, error.to_string()),
        PayoutNotDecided::Unanswered(unanswered) => undecided(unanswered),
    }
}

//! `/payouts`: money that leaves a wallet for somewhere outside.
//!
//! Rule: where it goes is shown masked everywhere, and kept sealed.

pub(super) mod request;

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::answer::Answer;
use vouchsafe_actors::domain::ids::{PartnerId, PayoutId};
use vouchsafe_actors::domain::money::{Amount, Currency, Money};
use vouchsafe_actors::domain::payout::{Destination, Payout, PayoutMilestone, PayoutStatus};
use vouchsafe_actors::flows::{self, PayoutWording, Placed, RequestPayout};

use self::request::Wanted;
use super::caller::{Caller, General, Signed};
use super::list::Page;
use super::orders::{idempotency_key, unanswered_error, unless_reused};
use crate::access::idempotency::{Endpoint, fingerprint};
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::PayoutFilter;

/// What payouts are listed by.
const FILTERS: [&str; 1] = ["status"];

/// A payout.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Payout)]
pub struct PayoutBody<'a> {
    /// Its id.
    payout_id: PayoutId,
    /// Where it stands.
    status: PayoutStatus,
    /// How much.
    amount: Money,
    /// Of what.
    currency: Currency,
    /// Where it goes, masked.
    #[schema(value_type = request::PayoutDestination)]
    destination: &'a RawValue,
    /// What the partner calls it.
    #[schema(required)]
    reference: Option<&'a str>,
    /// When it was accepted.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    created_at: OffsetDateTime,
    /// How it came here, oldest first.
    timeline: &'a [PayoutMilestone],
}

impl<'a> PayoutBody<'a> {
    /// The payout as partners see it.
    ///
    /// # Errors
    /// When the masked destination is no JSON, which would be a fault of ours.
    pub fn of(payout: &'a Payout) -> Result<Self, serde_json::Error> {
        Ok(Self {
            payout_id: payout.payout_id,
            status: payout.status,
            amount: payout.money,
            currency: payout.money.currency,
            destination: serde_json::from_str(&payout.destination.shown)?,
            reference: payout.reference.as_deref(),
            created_at: payout.created_at,
            timeline: &payout.timeline,
        })
    }
}

/// `POST /payouts`.
///
/// # Errors
/// `MISSING_IDEMPOTENCY_KEY`, `VALIDATION_FAILED`, `IDEMPOTENCY_KEY_REUSED`, `IDEMPOTENCY_IN_PROGRESS`.
pub async fn request(
    service: web::Data<Service>,
    request: HttpRequest,
    signed: Signed<General>,
) -> Result<HttpResponse, ApiError> {
    let partner_id = signed.caller.partner_id();
    let key = idempotency_key(&request)?.scoped(partner_id, Endpoint::RequestPayout);
    let fingerprint = fingerprint(request.method().as_str(), request.path(), &signed.body);
    let wanted = match request::parse(&signed.body) {
        Ok(wanted) => wanted,
        Err(refused) => return Err(unless_reused(&service, key, fingerprint, refused).await?),
    };
    let command = RequestPayout {
        partner_id,
        key,
        fingerprint,
        money: wanted.money,
        destination: seal(&service, partner_id, &wanted)?,
        reference: wanted.reference,
    };
    match flows::request_payout(&service.engine, command, &JsonWording).await {
        Ok(Placed::Fresh(answer)) => Ok(answered(answer, false)),
        Ok(Placed::Replayed(answer)) => Ok(answered(answer, true)),
        Err(error) => Err(unanswered_error(&error)),
    }
}

/// `GET /payouts`; filter: `status`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let filter = PayoutFilter {
        partner_id: Some(caller.partner_id()),
        status: page.one_of("status", &PayoutStatus::ALL, PayoutStatus::as_str)?,
    };
    let payouts = service
        .store
        .list_payouts(filter, page.after()?, page.fetch())
        .await?;
    let bodies = payouts.iter().map(PayoutBody::of).collect::<Result<_, _>>();
    let bodies = bodies.map_err(|_| broken())?;
    Ok(page.answer(bodies, |body: &PayoutBody<'_>| body.payout_id.to_string()))
}

/// `GET /payouts/{payout_id}`.
///
/// # Errors
/// `PAYOUT_NOT_FOUND`, also for the payout of another partner.
pub async fn get(
    service: web::Data<Service>,
    caller: Caller,
    payout_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let payout = service.store.find_payout(caller.partner_id(), payout_id).await?;
    let payout = payout.ok_or_else(not_found)?;
    let body = PayoutBody::of(&payout).map_err(|_| broken())?;
    Ok(HttpResponse::Ok().json(body))
}

/// There is no such payout, or it is another partner's.
#[must_use]
pub fn not_found() -> ApiError {
    ApiError::new(
        Code::PayoutNotFound,
        "there is no such payout; GET /payouts lists them",
    )
}

fn seal(service: &Service, partner_id: PartnerId, wanted: &Wanted) -> Result<Destination, ApiError> {
    let vault = service.keyring.vault();
    let sealed = vault.seal_destination(partner_id.as_uuid(), &wanted.destination);
    let sealed = sealed.map_err(|error| {
        tracing::error!(%error, "a destination cannot be sealed");
        ApiError::unavailable()
    })?;
    Ok(Destination {
        shown: wanted.masked.as_str().into(),
        sealed: sealed.into(),
    })
}

fn broken() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the answer could not be written; send the same request again",
    )
}

/// How the engine's answers read on the wire.
struct JsonWording;

impl PayoutWording for JsonWording {
    fn accepted(&self, payout: &Payout) -> Answer {
        let body = PayoutBody::of(payout).and_then(|body| serde_json::to_vec(&body));
        // A payout that cannot be spelled out is not lost: GET /payouts/{id} is asked for it.
        let body = body.unwrap_or_else(|_| format!(r#"{{"payout_id":"{}"}}"#, payout.payout_id).into());
        Answer {
            status: 202,
            body: body.into(),
        }
    }

    fn short(&self, needed: Money, available: Amount) -> Answer {
        let currency = needed.currency;
        let available = available.of(currency);
        let message = format!("the payout is {needed} {currency}, the wallet holds {available} {currency}");
        let error = ApiError::new(Code::InsufficientFunds, message);
        Answer {
            status: error.code.status(),
            body: error.body(),
        }
    }
}

/// Status and body are what was kept, to the byte; the headers are made from them.
fn answered(answer: Answer, replayed: bool) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "application/json"));
    if let Some(payout_id) = payout_id_of(&answer.body) {
        response.insert_header((LOCATION, format!("/api/v1/payouts/{payout_id}")));
    }
    if replayed {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    response.body(answer.body)
}

/// A payout's body begins with its id.
fn payout_id_of(body: &[u8]) -> Option<&str> {
    let id = body
        .strip_prefix(br#"{"payout_id":""#)?
        .get(..PayoutId::TEXT_LENGTH)?;
    std::str::from_utf8(id).ok()
}

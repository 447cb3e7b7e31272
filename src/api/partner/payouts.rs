//! `/payouts`: request, list and read payouts from a wallet.
//!
//! Responses show the destination masked; the full destination is stored encrypted.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_actors::flows::{self, IdempotentResponse, PayoutResponseEncoder, RequestPayout};
use vouchsafe_domain::idempotency::Response;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::payout::{Payout, PayoutDestination, PayoutFilter};
use vouchsafe_security::idempotency::{IdempotencyScope, fingerprint};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::payouts::body::PayoutBody;
use vouchsafe_wire::partner::payouts::request::{self, RequestedPayout};
use vouchsafe_wire::partner::payouts::{FILTERS, parse_filter};

use super::orders::{idempotency_key, key_reuse_error_or};
use crate::api::error::{ApiError, keyed_request_error};
use crate::api::middleware::authentication::{AuthenticatedCaller, General, VerifiedRequest};
use crate::service::Service;

/// `POST /payouts`.
///
/// # Errors
/// `MISSING_IDEMPOTENCY_KEY`, `VALIDATION_FAILED`, `IDEMPOTENCY_KEY_REUSED`, `IDEMPOTENCY_IN_PROGRESS`.
pub async fn request(
    service: web::Data<Service>,
    request: HttpRequest,
    signed: VerifiedRequest<General>,
) -> Result<HttpResponse, ApiError> {
    let partner_id = signed.caller.partner_id();
    let key = idempotency_key(&request)?.hash_for(partner_id, IdempotencyScope::RequestPayout);
    let fingerprint = fingerprint(request.method().as_str(), request.path(), &signed.body);
    let payout_request = match request::parse(&signed.body) {
        Ok(payout_request) => payout_request,
        Err(error) => return Err(key_reuse_error_or(&service, key, fingerprint, error.into()).await?),
    };
    let command = RequestPayout {
        partner_id,
        key,
        fingerprint,
        money: payout_request.money,
        destination: seal_destination(&service, partner_id, &payout_request)?,
        reference: payout_request.reference,
    };
    match flows::request_payout(&service.engine, command, &JsonEncoder).await {
        Ok(IdempotentResponse::Fresh(answer)) => Ok(stored_response(answer, false)),
        Ok(IdempotentResponse::Replayed(answer)) => Ok(stored_response(answer, true)),
        Err(error) => Err(keyed_request_error(&error)),
    }
}

/// `GET /payouts`; filter: `status`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = PayoutFilter {
        partner_id: Some(caller.partner_id()),
        ..parse_filter(&page)?
    };
    let payouts = service
        .store
        .payouts
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = payouts.iter().map(PayoutBody::of).collect::<Result<_, _>>();
    let bodies = bodies.map_err(|_| serialization_error())?;
    Ok(HttpResponse::Ok().json(page.body(bodies, |body: &PayoutBody<'_>| body.payout_id.to_string())))
}

/// `GET /payouts/{payout_id}`.
///
/// # Errors
/// `PAYOUT_NOT_FOUND`, also for the payout of another partner.
pub async fn get(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    payout_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let payout = service.store.payouts.find(caller.partner_id(), payout_id).await?;
    let payout = payout.ok_or_else(not_found)?;
    let body = PayoutBody::of(&payout).map_err(|_| serialization_error())?;
    Ok(HttpResponse::Ok().json(body))
}

/// The error for an unknown payout, or one of another partner.
#[must_use]
pub fn not_found() -> ApiError {
    ApiError::new(Code::PayoutNotFound, "no such payout; GET /payouts lists yours")
}

fn seal_destination(
    service: &Service,
    partner_id: PartnerId,
    payout_request: &RequestedPayout,
) -> Result<PayoutDestination, ApiError> {
    let vault = service.keyring.vault();
    let sealed = vault.seal_destination(partner_id.as_uuid(), &payout_request.destination);
    let sealed = sealed.map_err(|error| {
        tracing::error!(error.message = %error, "cannot encrypt a payout destination");
        ApiError::unavailable()
    })?;
    Ok(PayoutDestination {
        masked: payout_request.masked_destination.as_str().into(),
        sealed: sealed.into(),
    })
}

fn serialization_error() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the response could not be serialized; retry the same request",
    )
}

/// Encodes the engine's outcomes as JSON responses.
struct JsonEncoder;

impl PayoutResponseEncoder for JsonEncoder {
    fn accepted(&self, payout: &Payout) -> Response {
        let body = PayoutBody::of(payout).and_then(|body| serde_json::to_vec(&body));
        // The payout is accepted; with its id the client can read it from GET /payouts/{id}.
        let body = body.unwrap_or_else(|_| format!(r#"{{"payout_id":"{}"}}"#, payout.payout_id).into());
        Response {
            status: 202,
            body: body.into(),
        }
    }

    fn insufficient_funds(&self, needed: Money, available: Amount) -> Response {
        let currency = needed.currency;
        let available = available.of(currency);
        let message = format!(
            "the payout is {needed} {currency}, but the wallet holds only {available} {currency}; request less"
        );
        let error = ApiError::new(Code::InsufficientFunds, message);
        Response {
            status: error.code.status(),
            body: error.body(),
        }
    }
}

/// Status and body are stored, so a replay is identical to the byte; headers are derived from them.
fn stored_response(answer: Response, replayed: bool) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "application/json"));
    if let Some(payout_id) = PayoutBody::id_in(&answer.body) {
        response.insert_header((LOCATION, format!("/api/v1/payouts/{payout_id}")));
    }
    if replayed {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    response.body(answer.body)
}

//! `/payouts`: request, list, read and cancel payouts from a wallet.
//!
//! Responses show the destination masked; the full destination is stored encrypted.

use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_actors::flows::{self, DecidePayout, DecidePayoutError, PayoutResponseEncoder, RequestPayout};
use vouchsafe_domain::idempotency::Response;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::order::Actor;
use vouchsafe_domain::payout::{
    Payout, PayoutDecision, PayoutDestination, PayoutFilter, PayoutOutcome, PayoutSearch, PayoutStatus,
};
use vouchsafe_security::idempotency::IdempotencyScope;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::orders::cancel::parse_reason;
use vouchsafe_wire::partner::payouts::body::PayoutBody;
use vouchsafe_wire::partner::payouts::request::{self, RequestedPayout};

use super::idempotency::{KeyedRequest, into_parts, stored_response};
use crate::api::error::{ApiError, ApiResult, keyed_request_error};
use crate::api::header::header_value;
use crate::api::list_request::list_response;
use crate::api::middleware::authentication::{AuthenticatedCaller, General, VerifiedRequest};
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

pub(super) async fn request(
    service: web::Data<PartnerState>,
    request: HttpRequest,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let partner_id = signed.caller.partner_id();
    let keyed = KeyedRequest::new(
        &service,
        &request,
        partner_id,
        IdempotencyScope::RequestPayout,
        &signed.body,
    )
    .await?;
    let payout_request = match request::parse(&signed.body) {
        Ok(payout_request) => payout_request,
        Err(error) => {
            let response = keyed.replay_or_error(&service, error).await?;
            return Ok(stored_response(response, true, location));
        }
    };
    let command = RequestPayout {
        partner_id,
        key: keyed.key,
        fingerprint: keyed.fingerprint,
        money: payout_request.money,
        destination: seal_destination(&service, partner_id, &payout_request)?,
        reference: payout_request.reference,
    };
    let requested = flows::request_payout(&service.engine, command, &JsonEncoder).await;
    let (response, replayed) = into_parts(requested.map_err(|error| keyed_request_error(&error))?);
    Ok(stored_response(response, replayed, location))
}

fn location(body: &[u8]) -> Option<HeaderValue> {
    header_value(format_args!("/api/v1/payouts/{}", PayoutBody::id_in(body)?))
}

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<PayoutFilter>,
) -> ApiResult {
    let search = PayoutSearch {
        partner_id: Some(caller.partner_id()),
        filter,
    };
    let payouts = service
        .store
        .payouts
        .list(search, page.after()?, page.fetch_limit())
        .await?;
    let bodies: Vec<_> = payouts.iter().map(PayoutBody::of).collect::<Result<_, _>>()?;
    list_response(&page, bodies, |body| body.payout_id)
}

pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    payout_id: web::Path<String>,
) -> ApiResult {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let payout = service.store.payouts.find(caller.partner_id(), payout_id).await?;
    let payout = payout.ok_or_else(not_found)?;
    Ok(HttpResponse::Ok().json(PayoutBody::of(&payout)?))
}

/// Cancels a payout that no operator has begun to pay. Idempotent: a repeated call returns the cancelled
/// payout.
pub(super) async fn cancel(
    service: web::Data<PartnerState>,
    payout_id: web::Path<String>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let payout_id = payout_id.parse().map_err(|_| not_found())?;
    let partner_id = signed.caller.partner_id();
    let decision = PayoutDecision {
        outcome: PayoutOutcome::Cancelled,
        reason: parse_reason(&signed.body)?,
        reference: None,
    };
    let payouts = &service.store.payouts;
    if !payouts.reserve(partner_id, payout_id, Actor::Partner).await? {
        let payout = payouts.find(partner_id, payout_id).await?.ok_or_else(not_found)?;
        if !payout.is_cancelled() {
            return Err(not_cancellable(payout.status));
        }
    }
    let command = DecidePayout {
        partner_id,
        payout_id,
        decision,
        author: signed.caller.audit_actor(),
    };
    let payout = flows::decide_payout(&service.engine, command).await;
    let payout = payout.map_err(|error| match error {
        DecidePayoutError::NotFound => not_found(),
        DecidePayoutError::AlreadyDecided(status) => not_cancellable(status),
        DecidePayoutError::Flow(error) => keyed_request_error(&error),
    })?;
    Ok(HttpResponse::Ok().json(PayoutBody::of(&payout)?))
}

fn not_cancellable(status: PayoutStatus) -> ApiError {
    let message = match status {
        PayoutStatus::Pending => {
            "an operator has begun to pay the payout; ask the operator to reject it".to_owned()
        }
        decided => format!("the payout is already {}", decided.into_str()),
    };
    ApiError::new(Code::PayoutNotCancellable, message)
}

/// The error for an unknown payout, or one of another partner.
pub(in crate::api) fn not_found() -> ApiError {
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

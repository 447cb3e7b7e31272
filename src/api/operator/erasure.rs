//! `POST …/erase` of orders, payouts and partners: erasure of personal data.

use std::time::{Duration, Instant};

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_store::{ErasedCount, ErasureOutcome};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::erasure::{ErasureReport, ErasureRequest, PartnerErasureRequest};

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::body::Json;
use crate::api::operator::{OperatorState, partner_id};
use crate::api::path_id::Id;

/// A call ends after the part during which it has lasted so long; the client repeats it.
const PARTS_DURATION: Duration = Duration::from_secs(5);

/// A request to erase the personal data of an object.
pub(super) type ErasureCall<T> = (web::Data<OperatorState>, Operator, Id<T>, Json<ErasureRequest>);

/// The response of the erasure of one object; `open` says why it is too early.
pub(super) fn to_response(
    outcome: ErasureOutcome,
    open: &'static str,
    not_found: impl FnOnce() -> ApiError,
) -> ApiResult {
    match outcome {
        ErasureOutcome::Erased(count) => Ok(report(count, None)),
        ErasureOutcome::Open => Err(ApiError::new(Code::NotClosed, open)),
        ErasureOutcome::NotFound => Err(not_found()),
    }
}

/// `POST /partners/{partner_id}/erase`.
pub(super) async fn erase_partner(
    service: web::Data<OperatorState>,
    operator: Operator,
    partner_id: Id<PartnerId>,
    Json(request): Json<PartnerErasureRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let reason = String::from(request.reason);
    let partner_id = partner_id::find(&service, partner_id.parse()?).await?.partner_id;
    let started = Instant::now();
    let (mut total, mut after) = (ErasedCount::default(), request.after);
    loop {
        let erasures = &service.store.erasures;
        let part = erasures.erase_part_of_partner(partner_id, after, reason.clone(), actor.clone());
        let (count, last) = part.await?;
        total.orders += count.orders;
        total.payouts += count.payouts;
        if last.is_none() || started.elapsed() >= PARTS_DURATION {
            return Ok(report(total, last));
        }
        after = last;
    }
}

fn report(ErasedCount { orders, payouts }: ErasedCount, next_after: Option<OrderId>) -> HttpResponse {
    HttpResponse::Ok().json(ErasureReport {
        orders,
        payouts,
        next_after,
    })
}

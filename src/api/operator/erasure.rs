//! `POST /orders/{order_id}/erase`, `/payouts/{payout_id}/erase` and `/partners/{partner_id}/erase`: erasure of personal data.

use std::time::{Duration, Instant};

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::{OrderId, PartnerId, PayoutId};
use vouchsafe_store::{ErasedCount, ErasureOutcome};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::erasure::{ErasureReport, ErasureRequest};

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::{orders, partner_id, payouts};
use crate::api::partner::orders::not_found;
use crate::api::path_id::{Id, PathId as _};

/// A call ends after the part during which it has lasted so long; the client repeats it.
const PARTS_DURATION: Duration = Duration::from_secs(5);

/// `POST /orders/{order_id}/erase`.
pub(super) async fn erase_order(
    service: web::Data<OperatorState>,
    operator: Operator,
    order_id: Id<OrderId>,
    Json(request): Json<ErasureRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let reason = request.validated()?;
    let order = orders::find(&service, &order_id).await?;
    let erasures = &service.store.erasures;
    match erasures
        .erase_order(order.partner_id, order.order_id, reason, actor)
        .await?
    {
        ErasureOutcome::Erased(count) => Ok(report(count, false)),
        ErasureOutcome::Open => Err(ApiError::new(
            Code::NotClosed,
            format!(
                "the order is {}: only a closed order can be erased",
                order.status.into_str()
            ),
        )),
        ErasureOutcome::NotFound => Err(not_found(order.order_id)),
    }
}

/// `POST /payouts/{payout_id}/erase`.
pub(super) async fn erase_payout(
    service: web::Data<OperatorState>,
    operator: Operator,
    payout_id: Id<PayoutId>,
    Json(request): Json<ErasureRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let reason = request.validated()?;
    let (partner_id, payout_id) = payouts::find(&service, &payout_id).await?;
    let erasures = &service.store.erasures;
    match erasures
        .erase_payout(partner_id, payout_id, reason, actor)
        .await?
    {
        ErasureOutcome::Erased(count) => Ok(report(count, false)),
        ErasureOutcome::Open => Err(ApiError::new(
            Code::NotClosed,
            "the payout is PENDING: its destination is still needed",
        )),
        ErasureOutcome::NotFound => Err(PayoutId::not_found()),
    }
}

/// `POST /partners/{partner_id}/erase`.
pub(super) async fn erase_partner(
    service: web::Data<OperatorState>,
    operator: Operator,
    partner_id: Id<PartnerId>,
    Json(request): Json<ErasureRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let reason = request.validated()?;
    let partner_id = partner_id::find(&service, partner_id.parse()?).await?.partner_id;
    let started = Instant::now();
    let (mut total, mut after) = (ErasedCount::default(), None);
    loop {
        let erasures = &service.store.erasures;
        let part = erasures.erase_part_of_partner(partner_id, after, reason.clone(), actor.clone());
        let (count, last) = part.await?;
        total.orders += count.orders;
        total.payouts += count.payouts;
        if last.is_none() || started.elapsed() >= PARTS_DURATION {
            return Ok(report(total, last.is_some()));
        }
        after = last;
    }
}

fn report(ErasedCount { orders, payouts }: ErasedCount, has_more: bool) -> HttpResponse {
    HttpResponse::Ok().json(ErasureReport {
        orders,
        payouts,
        has_more,
    })
}

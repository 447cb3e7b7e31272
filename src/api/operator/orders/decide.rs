//! `/orders/{order_id}/approve`, `/reject` and `/cancel`: operators' decisions on an order.
//!
//! The engine decides on the current state of the order and writes the audit entry in the same commit. If
//! another decision came first, the response is 409.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use vouchsafe_actors::flows::{
    CancelError, DecideOrder, DecideOrderError, RevokeOrder, decide_order, revoke_order,
};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::PendingReason;
use vouchsafe_store::AuditActor;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::orders::OrderOfPartner;

use super::{find, find_by_id, order_body};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::change::{Change, ChangeDescription, Execution, submit, to_description};
use crate::api::operator::decision::decision_error;
use crate::api::path_id::Id;

/// A decision on an order.
pub(in crate::api::operator) type DecisionRequest = (
    web::Data<OperatorState>,
    Operator,
    Id<OrderId>,
    Json<ReasonRequest>,
);

/// `POST /orders/{order_id}/approve`.
pub(in crate::api::operator) async fn approve(
    (service, operator, order_id, Json(request)): DecisionRequest,
) -> ApiResult {
    let order_id = find(&service, &order_id).await?.order_id;
    let approval = OrderApproval { order_id, request };
    submit(&service, &operator, ChangeKind::OrderApprove, approval).await
}

/// The approval of an order.
#[derive(Serialize, Deserialize)]
pub(in crate::api::operator) struct OrderApproval {
    order_id: OrderId,
    request: ReasonRequest,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(flatten)]
    request: &'a ReasonRequest,
    order: OrderOfPartner<'a>,
}

impl Change for OrderApproval {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let order = find_by_id(service, self.order_id).await?;
        if order.closed || order.pending_reason != Some(PendingReason::Approval) {
            return Err(decide_order_error(&DecideOrderError::NotAwaitingApproval));
        }
        to_description(
            self.order_id,
            order.partner_id,
            &Details {
                request: &self.request,
                order: order_body(&order)?,
            },
        )
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        decide(service, self.order_id, true, &self.request, actor).await
    }
}

/// `POST /orders/{order_id}/reject`.
pub(in crate::api::operator) async fn reject(
    (service, operator, order_id, Json(request)): DecisionRequest,
) -> ApiResult {
    let order_id = find(&service, &order_id).await?.order_id;
    decide(&service, order_id, false, &request, operator.audit_actor()).await
}

async fn decide(
    service: &OperatorState,
    order_id: OrderId,
    approved: bool,
    request: &ReasonRequest,
    actor: AuditActor,
) -> ApiResult {
    let command = DecideOrder {
        partner_id: find_by_id(service, order_id).await?.partner_id,
        order_id,
        approved,
        reason: request.reason.clone().into(),
        operator: actor,
    };
    let order = decide_order(&service.engine, command)
        .await
        .map_err(|error| decide_order_error(&error))?;
    Ok(HttpResponse::Ok().json(order_body(&order)?))
}

/// `POST /orders/{order_id}/cancel`.
pub(in crate::api::operator) async fn cancel(
    (service, operator, order_id, Json(request)): DecisionRequest,
) -> ApiResult {
    let operator = operator.audit_actor();
    let order = find(&service, &order_id).await?;
    let command = RevokeOrder {
        partner_id: order.partner_id,
        order_id: order.order_id,
        reason: request.reason.into(),
        operator,
    };
    let order = revoke_order(&service.engine, command)
        .await
        .map_err(|error| cancel_error(&error))?;
    Ok(HttpResponse::Ok().json(order_body(&order)?))
}

fn decide_order_error(error: &DecideOrderError) -> ApiError {
    match error {
        DecideOrderError::NotFound => ApiError::new(Code::OrderNotFound, error.to_string()),
        DecideOrderError::NotAwaitingApproval => {
            ApiError::new(Code::OrderNotAwaitingApproval, error.to_string())
        }
        DecideOrderError::Flow(flow_error) => decision_error(flow_error),
    }
}

fn cancel_error(error: &CancelError) -> ApiError {
    match error {
        CancelError::NotFound => ApiError::new(Code::OrderNotFound, error.to_string()),
        CancelError::Flow(flow_error) => decision_error(flow_error),
        CancelError::NothingToCancel
        | CancelError::Retrieved
        | CancelError::TooLate(_)
        | CancelError::Expired
        | CancelError::NotReturnable(_)
        | CancelError::Cap(_) => ApiError::new(Code::OrderNotCancellable, error.to_string()),
    }
}

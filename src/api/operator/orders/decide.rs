//! `/orders/{order_id}/approve`, `/reject` and `/cancel`: operators' decisions on an order.
//!
//! The engine decides on the current state of the order and writes the audit entry in the same commit. If another decision
//! came first, the response is 409.

use actix_web::{HttpResponse, web};
use vouchsafe_actors::flows::{
    CancelError, DecideOrder, DecideOrderError, RevokeOrder, decide_order, revoke_order,
};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;

use super::{find, order_body};
use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::api::operator::body::Json;
use crate::api::operator::decision::decision_error;
use crate::service::Service;

/// A decision on an order.
pub(in crate::api::operator) type DecisionRequest = (
    web::Data<Service>,
    Operator,
    web::Path<String>,
    Json<ReasonRequest>,
);

/// `POST /orders/{order_id}/approve` and `/reject`.
pub(in crate::api::operator) async fn decide(
    (service, operator, order_id, Json(request)): DecisionRequest,
    approved: bool,
) -> Result<HttpResponse, ApiError> {
    let operator = operator.audit_actor();
    let reason = request.validated()?;
    let order = find(&service, &order_id).await?;
    let command = DecideOrder {
        partner_id: order.partner_id,
        order_id: order.order_id,
        approved,
        reason,
        operator,
    };
    let order = decide_order(&service.engine, command)
        .await
        .map_err(|error| decide_order_error(&error))?;
    Ok(HttpResponse::Ok().json(order_body(&order)?))
}

/// `POST /orders/{order_id}/cancel`.
pub(in crate::api::operator) async fn cancel(
    (service, operator, order_id, Json(request)): DecisionRequest,
) -> Result<HttpResponse, ApiError> {
    let operator = operator.audit_actor();
    let reason = request.validated()?;
    let order = find(&service, &order_id).await?;
    let command = RevokeOrder {
        partner_id: order.partner_id,
        order_id: order.order_id,
        reason,
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
        | CancelError::NotReturnable(_) => ApiError::new(Code::OrderNotCancellable, error.to_string()),
    }
}

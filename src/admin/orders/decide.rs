//! `/orders/{order_id}/approve`, `/reject` and `/cancel`: an operator's word on an order.
//!
//! Rule: the engine decides on the order as it stands, and the trail tells of it in the same commit. What somebody else has
//! decided meanwhile is answered as what it is: 409.

use actix_web::{HttpResponse, web};
use vouchsafe_actors::flows::{
    DecideOrder, NotCancelled, NotDecided, RevokeOrder, decide_order, revoke_order,
};

use super::{OrderOfPartner, find};
use crate::admin::body::Json;
use crate::admin::decision::{Because, undecided};
use crate::admin::operator::{Operator, Role};
use crate::errors::{ApiError, Code};
use crate::service::Service;

/// `POST /orders/{order_id}/approve`.
pub(in crate::admin) async fn approve(
    service: web::Data<Service>,
    operator: Operator,
    order_id: web::Path<String>,
    because: Json<Because>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &order_id, because, true).await
}

/// `POST /orders/{order_id}/reject`.
pub(in crate::admin) async fn reject(
    service: web::Data<Service>,
    operator: Operator,
    order_id: web::Path<String>,
    because: Json<Because>,
) -> Result<HttpResponse, ApiError> {
    decide(&service, &operator, &order_id, because, false).await
}

async fn decide(
    service: &Service,
    operator: &Operator,
    order_id: &str,
    Json(because): Json<Because>,
    approved: bool,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?.into();
    let reason = because.reason()?;
    let order = find(service, order_id).await?;
    let command = DecideOrder {
        partner_id: order.partner_id,
        order_id: order.order_id,
        approved,
        reason,
        by,
    };
    let order = decide_order(&service.engine, command)
        .await
        .map_err(|error| not_decided(&error))?;
    Ok(HttpResponse::Ok().json(OrderOfPartner::of(&order)?))
}

/// `POST /orders/{order_id}/cancel`.
pub(in crate::admin) async fn cancel(
    service: web::Data<Service>,
    operator: Operator,
    order_id: web::Path<String>,
    Json(because): Json<Because>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?.into();
    let reason = because.reason()?;
    let order = find(&service, &order_id).await?;
    let command = RevokeOrder {
        partner_id: order.partner_id,
        order_id: order.order_id,
        reason,
        by,
    };
    let order = revoke_order(&service.engine, command)
        .await
        .map_err(|error| not_cancelled(&error))?;
    Ok(HttpResponse::Ok().json(OrderOfPartner::of(&order)?))
}

fn not_decided(error: &NotDecided) -> ApiError {
    match error {
        NotDecided::NotFound => ApiError::new(Code::OrderNotFound, error.to_string()),
        NotDecided::NotWaiting => ApiError::new(Code::OrderNotAwaitingApproval, error.to_string()),
        NotDecided::Unanswered(unanswered) => undecided(unanswered),
    }
}

fn not_cancelled(error: &NotCancelled) -> ApiError {
    match error {
        NotCancelled::NotFound => ApiError::new(Code::OrderNotFound, error.to_string()),
        NotCancelled::Unanswered(unanswered) => undecided(unanswered),
        NotCancelled::Over
        | NotCancelled::Retrieved
        | NotCancelled::TooLate(_)
        | NotCancelled::Expired
        | NotCancelled::NotReturnable(_) => ApiError::new(Code::OrderNotCancellable, error.to_string()),
    }
}

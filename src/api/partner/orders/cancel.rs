//! `POST /orders/{order_id}/cancel`: returns all vouchers of an order and refunds it (contract §4).

use actix_web::{HttpResponse, web};
use time::Duration;
use vouchsafe_actors::flows::{CancelError, CancelOrder, cancel_order};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::orders::body::OrderBody;
use vouchsafe_wire::partner::orders::cancel::parse_reason;
use vouchsafe_wire::partner::orders::cap_error::CapError;

use super::not_found;
use crate::api::error::{ApiError, ApiResult, keyed_request_error};
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::path_id::Id;
use crate::service::Service;

/// Cancels an order. Idempotent: a repeated call returns the refunded order.
pub(in crate::api::partner) async fn cancel(
    service: web::Data<Service>,
    order_id: Id<OrderId>,
    signed: VerifiedRequest<General>,
) -> ApiResult {
    let order_id = order_id.parse()?;
    let partner = &signed.caller.partner;
    let advanced = service.sandbox_clocks.of(partner.partner_id);
    let advanced = advanced.since(order_id.accepted_at());
    let command = CancelOrder {
        partner_id: partner.partner_id,
        order_id,
        reason: parse_reason(&signed.body)?,
        caps: partner.effective_caps(service.default_caps.as_ref()),
        window: Duration::seconds(i64::from(partner.cancel_window_s)) - advanced,
    };
    let catalogue = service.catalogue.current();
    let returnable = |product_id: &_| {
        catalogue
            .get(product_id)
            .is_some_and(|product| product.returnable)
    };
    let order = cancel_order(&service.engine, command, returnable).await;
    let order = order.map_err(|error| cancel_error(&error, order_id, &service))?;
    Ok(HttpResponse::Ok().json(OrderBody::of(&order)?))
}

fn cancel_error(error: &CancelError, order_id: OrderId, service: &Service) -> ApiError {
    match error {
        CancelError::NotFound => not_found(order_id),
        CancelError::Cap(exceeded) => CapError::of(exceeded, service.clock.now()).into(),
        CancelError::Flow(unanswered) => keyed_request_error(unanswered),
        other => ApiError::new(Code::OrderNotCancellable, other.to_string()),
    }
}

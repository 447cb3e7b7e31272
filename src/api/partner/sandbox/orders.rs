//! `/sandbox/orders/{order_id}`: a partner decides an approval as an operator would, and how the mock vendor
//! responds.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use uuid::Uuid;
use vouchsafe_actors::flows::{self, DecideOrder, DecideOrderError, ProcureError};
use vouchsafe_actors::ports::vendors::ForcedResponse;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::{Order, OrderLine, PendingReason};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::orders::body::OrderBody;
use vouchsafe_wire::partner::sandbox::parse_quantity;

use crate::api::error::{ApiError, ApiResult, keyed_request_error};
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::partner::PartnerState;
use crate::api::partner::orders::not_found;
use crate::api::path_id::Id;
use crate::service::Service;

/// Reason of a decision, in the order's timeline and in the audit log.
const REASON: &str = "decided by the partner in the sandbox";

/// How often a purchase is claimed that the vendor's actor has claimed, and the pause in between. A mock
/// vendor responds within milliseconds.
const CLAIM_ATTEMPTS: u32 = 20;
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

type OrderRequest = (web::Data<PartnerState>, Id<OrderId>, VerifiedRequest<General>);

pub(super) async fn approve(request: OrderRequest) -> ApiResult {
    decide(request, true).await
}

pub(super) async fn reject(request: OrderRequest) -> ApiResult {
    decide(request, false).await
}

async fn decide((service, order_id, signed): OrderRequest, approved: bool) -> ApiResult {
    let order_id = order_id.parse()?;
    let command = DecideOrder {
        partner_id: signed.caller.partner_id(),
        order_id,
        approved,
        reason: REASON.to_owned(),
        operator: signed.caller.audit_actor(),
    };
    let order = flows::decide_order(&service.engine, command).await;
    let order = order.map_err(|error| match error {
        DecideOrderError::NotFound => not_found(order_id),
        DecideOrderError::NotAwaitingApproval => {
            let message = format!("{error}; order a product that needs one, such as sbx-approval");
            ApiError::new(Code::OrderNotAwaitingApproval, message)
        }
        DecideOrderError::Flow(error) => keyed_request_error(&error),
    })?;
    Ok(HttpResponse::Ok().json(OrderBody::of(&order)?))
}

/// Makes the mock vendor deliver the next vouchers.
pub(super) async fn advance((service, order_id, signed): OrderRequest) -> ApiResult {
    let order_id = order_id.parse()?;
    let quantity = parse_quantity(&signed.body)?;
    let order = start(&service, signed.caller.partner_id(), order_id).await?;
    let mut missing = quantity;
    for (purchase_id, line) in open_purchases(&service, &order).await? {
        let quantity = missing.min(line.pending());
        if quantity > 0 {
            force(&service, purchase_id, ForcedResponse::Sell(quantity)).await?;
            missing -= quantity;
        }
    }
    respond(&service, &order).await
}

/// Makes the mock vendor refuse the rest, which is refunded.
pub(super) async fn fail((service, order_id, signed): OrderRequest) -> ApiResult {
    let order_id = order_id.parse()?;
    let partner_id = signed.caller.partner_id();
    let order = start(&service, partner_id, order_id).await?;
    for (purchase_id, _) in open_purchases(&service, &order).await? {
        force(&service, purchase_id, ForcedResponse::Refuse).await?;
    }
    if open_purchases(&service, &order).await?.is_empty() {
        let ended = flows::end_fulfilment(&service.engine, partner_id, order_id).await;
        ended.map_err(|error| keyed_request_error(&error))?;
    }
    respond(&service, &order).await
}

async fn find(service: &Service, partner_id: PartnerId, order_id: OrderId) -> Result<Order, ApiError> {
    let found = service.node.find_order(partner_id, order_id).await?;
    found.ok_or_else(|| not_found(order_id))
}

/// Returns the order with its purchases stored, or 409 if it does not wait for a vendor.
async fn start(service: &Service, partner_id: PartnerId, order_id: OrderId) -> Result<Order, ApiError> {
    let order = find(service, partner_id, order_id).await?;
    let message = match order.pending_reason {
        Some(PendingReason::Vendor) if !order.closed => {
            let started = service.procurement.start_order(partner_id, order_id).await;
            started.map_err(|error| procure_error(&error))?;
            return find(service, partner_id, order_id).await;
        }
        Some(PendingReason::Approval) => "the order waits for approval; approve it first",
        _ => "the order does not wait for a vendor; order a product that is bought, such as sbx-slow",
    };
    Err(ApiError::new(Code::OrderNotFulfillable, message))
}

/// The open purchases of the order with their lines.
async fn open_purchases<'a>(
    service: &PartnerState,
    order: &'a Order,
) -> Result<Vec<(Uuid, &'a OrderLine)>, ApiError> {
    let purchases = &service.store.purchases;
    let open = purchases
        .list_open(order.partner_id, order.order_id)
        .await?
        .into_iter();
    let with_line = open.filter_map(|(line, id)| Some((id, order.lines.get(usize::from(line))?)));
    Ok(with_line.collect())
}

/// Advances a purchase with this response, once the vendor's actor has released it.
async fn force(service: &PartnerState, purchase_id: Uuid, forced: ForcedResponse) -> Result<(), ApiError> {
    for _ in 0..CLAIM_ATTEMPTS {
        service.store.purchases.expedite(purchase_id).await?;
        let advanced = service.procurement.force_response(purchase_id, forced).await;
        if advanced.map_err(|error| procure_error(&error))? {
            return Ok(());
        }
        tokio::time::sleep(CLAIM_PAUSE).await;
    }
    Err(ApiError::unavailable())
}

/// The order after the vendor's responses; 409 if they left it as it was `before`.
async fn respond(service: &Service, before: &Order) -> ApiResult {
    let order = find(service, before.partner_id, before.order_id).await?;
    if !order.closed && order.lines == before.lines {
        let message = "the vendor of the order responds to its operators only; order a product of the vendor mock, such as \
                       sbx-slow";
        return Err(ApiError::new(Code::OrderNotFulfillable, message));
    }
    Ok(HttpResponse::Ok().json(OrderBody::of(&order)?))
}

fn procure_error(error: &ProcureError) -> ApiError {
    match error {
        ProcureError::Flow(error) => keyed_request_error(error),
        ProcureError::Unavailable(error) => {
            tracing::warn!(error.message = %error, "cannot advance the purchases of an order");
            ApiError::unavailable()
        }
    }
}

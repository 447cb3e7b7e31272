//! `/orders`: place, read, list and cancel orders.

pub(super) mod cancel;
mod list;
mod long_poll;

use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
pub(super) use list::list;
use vouchsafe_actors::flows::{
    self, OrderCaps, OrderRefusal, OrderResponseEncoder, PlaceOrder, PlaceOrderError, RequestOrigin,
};
use vouchsafe_domain::catalogue::RequestedOrder;
use vouchsafe_domain::idempotency::Response;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::{Order, OrderStatus};
use vouchsafe_security::idempotency::IdempotencyScope;
use vouchsafe_telemetry::trace::current_request;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::orders::body::OrderBody;
use vouchsafe_wire::partner::orders::cap_error::CapError;
use vouchsafe_wire::partner::orders::item_error::{insufficient_inventory, pricing_error};
use vouchsafe_wire::partner::orders::request;
use vouchsafe_wire::preference::PREFERENCE_APPLIED;

use super::idempotency::{KeyedRequest, into_parts, stored_response};
use super::wait_preference;
use crate::api::error::{ApiError, ApiResult, keyed_request_error};
use crate::api::header::header_value;
use crate::api::middleware::authentication::{AuthenticatedCaller, Orders, VerifiedRequest};
use crate::api::middleware::sandbox_observer;
use crate::api::partner::PartnerState;
use crate::api::path_id::Id;
use crate::api::request_outcome::{self, OrderAnswer, RequestOutcome};
use crate::service::Service;

pub(super) async fn place(
    service: web::Data<PartnerState>,
    request: HttpRequest,
    signed: VerifiedRequest<Orders>,
) -> ApiResult {
    let partner_id = signed.caller.partner_id();
    sandbox_observer::check_available(&service, partner_id)?;
    let keyed = KeyedRequest::new(
        &service,
        &request,
        partner_id,
        IdempotencyScope::PlaceOrder,
        &signed.body,
    )
    .await?;
    let order = match request::parse(&signed.body) {
        Ok(order) => order,
        Err(error) => {
            let response = keyed.replay_or_error(&service, error).await?;
            return Ok(stored_response(response, true, location));
        }
    };
    let KeyedRequest { key, fingerprint } = keyed;
    let products = observed_products(&request, &order);
    let caps = signed
        .caller
        .partner
        .effective_caps(service.default_caps.as_ref());
    let command = PlaceOrder {
        partner_id,
        key,
        fingerprint,
        request: order,
        assortment: service
            .catalogue
            .assortment_for(signed.caller.partner.scope.as_ref()),
        approval_rule: signed.caller.partner.approval_rule.clone(),
        caps: caps.map(|caps| OrderCaps {
            caps,
            family_id: signed.caller.family_id,
        }),
        origin: current_request().map(|(trace_id, received_at)| RequestOrigin {
            trace_id,
            received_at: received_at.into(),
        }),
    };
    let placed = flows::place_order(&service.engine, command, &JsonEncoder).await;
    let (response, replayed) = into_parts(placed.map_err(|error| place_order_error(error, &service))?);
    let answer = || OrderAnswer {
        key,
        fingerprint,
        products: &products,
        status: response.status,
        replayed,
    };
    request_outcome::report(&request, partner_id, || RequestOutcome::OrderAnswered(answer()));
    Ok(stored_response(response, replayed, location))
}

fn location(body: &[u8]) -> Option<HeaderValue> {
    header_value(format_args!("/api/v1/orders/{}", OrderBody::id_in(body)?))
}

/// The product of each line, for [`OrderAnswer`]: the flow consumes the order. Empty without a listener.
fn observed_products(request: &HttpRequest, order: &RequestedOrder) -> Vec<String> {
    if !request_outcome::has_listener(request) {
        return Vec::new();
    }
    let lines = order.lines.iter();
    lines.map(|line| line.product_id.clone()).collect()
}

/// A long poll with `Prefer: wait=N`.
pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    order_id: Id<OrderId>,
    request: HttpRequest,
) -> ApiResult {
    let order_id = order_id.parse()?;
    let requested = wait_preference(&request);
    let (order, granted) = long_poll::read_order(&service, &request, &caller, order_id, requested).await?;
    let body = serde_json::to_vec(&OrderBody::of(&order)?)?;
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, "application/json"));
    if let Some(wait) = granted {
        response.insert_header((PREFERENCE_APPLIED, wait.applied()));
    }
    Ok(response.body(body))
}

pub(in crate::api) fn not_found(order_id: OrderId) -> ApiError {
    ApiError::new(
        Code::OrderNotFound,
        format!("no such order: {order_id}; check the id"),
    )
}

/// Bytes of the response to a typical order of one voucher: the initial buffer size, which avoids
/// reallocation.
const TYPICAL_RESPONSE_BYTES: usize = 768;

/// Encodes the engine's outcomes as JSON responses.
struct JsonEncoder;

impl OrderResponseEncoder for JsonEncoder {
    fn accepted(&self, order: &Order) -> Response {
        let status = if order.status == OrderStatus::Delivered {
            201
        } else {
            202
        };
        let mut body = Vec::with_capacity(TYPICAL_RESPONSE_BYTES);
        match OrderBody::of(order).and_then(|order| serde_json::to_writer(&mut body, &order)) {
            Ok(()) => Response {
                status,
                body: body.into(),
            },
            // The order is placed; with its id the client can read it from GET /orders/{id}.
            Err(_) => Response {
                status,
                body: format!(r#"{{"order_id":"{}"}}"#, order.order_id).into(),
            },
        }
    }

    fn refused(&self, refusal: &OrderRefusal) -> Response {
        let error = match refusal {
            OrderRefusal::InsufficientFunds { needed, available } => ApiError::new(
                Code::InsufficientFunds,
                format!(
                    "the order costs {needed} {currency}, but the wallet holds only {} {currency}; order less or top \
                     up the wallet",
                    available.of(needed.currency),
                    currency = needed.currency
                ),
            ),
            OrderRefusal::InsufficientInventory {
                sku,
                line,
                requested,
                available,
            } => insufficient_inventory(&sku.product_id, *line, *requested, *available).into(),
        };
        Response {
            status: error.code.status(),
            body: error.body(),
        }
    }
}

fn place_order_error(error: PlaceOrderError, service: &Service) -> ApiError {
    match error {
        PlaceOrderError::Pricing(failure) => pricing_error(failure).into(),
        PlaceOrderError::Cap(exceeded) => CapError::of(&exceeded, service.clock.now()).into(),
        PlaceOrderError::Flow(unanswered) => keyed_request_error(&unanswered),
    }
}

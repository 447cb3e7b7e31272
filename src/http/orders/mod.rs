//! `/orders`: placing one, reading one, listing them.

pub mod body;
pub(in crate::http) mod cancel;
mod list;
mod lost;
pub mod request;
mod waiting;

use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
pub use body::OrderBody;
pub use list::{filter, list};
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, KeyHash};
use vouchsafe_actors::domain::catalogue::Unpriced;
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::order::{Order, OrderStatus};
use vouchsafe_actors::flows::{self, NotPlaced, PlaceOrder, Placed, Refusal, Unanswered, Wording};
use vouchsafe_actors::store::Store as _;

use super::caller::{Caller, Orders, Signed, presented};
use super::header::header_value;
use super::prefer::Wait;
use crate::access::idempotency::{Endpoint, IdempotencyKey, KeyError, fingerprint};
use crate::certification::Seen;
use crate::errors::{ApiError, Code};
use crate::service::Service;

/// `POST /orders`.
///
/// # Errors
/// Those of contract §7.
pub async fn place(
    service: web::Data<Service>,
    request: HttpRequest,
    signed: Signed<Orders>,
) -> Result<HttpResponse, ApiError> {
    let key = idempotency_key(&request)?;
    let partner_id = signed.caller.partner_id();
    let key = key.scoped(partner_id, Endpoint::PlaceOrder);
    let fingerprint = fingerprint(request.method().as_str(), request.path(), &signed.body);
    let wanted = match request::parse(&signed.body) {
        Ok(wanted) => wanted,
        Err(refused) => return Err(unless_reused(&service, key, fingerprint, refused).await?),
    };
    let approval_rule = signed.caller.partner.approval_rule.clone();
    let earlier_orders = match &approval_rule {
        Some(rule) if rule.counts_orders() => {
            Some(service.store.count_orders(partner_id, rule.first_orders).await?)
        }
        _ => None,
    };
    let is_lost = lost::is_lost(service.environment, &wanted);
    let command = PlaceOrder {
        partner_id,
        key,
        fingerprint,
        request: wanted,
        assortment: service.catalogue.of(&signed.caller.partner),
        approval_rule,
        earlier_orders,
    };
    match flows::place_order(&service.engine, command, &JsonWording).await {
        Ok(Placed::Fresh(answer)) if is_lost && answer.status < 300 => {
            lost::saw(&service, partner_id, Seen::answer_lost(key, fingerprint));
            Ok(lost::drop_connection())
        }
        Ok(Placed::Fresh(answer)) => Ok(answered(answer, false)),
        Ok(Placed::Replayed(answer)) => {
            if is_lost {
                lost::saw(&service, partner_id, Seen::AnswerRepeated { key: key.0 });
            }
            Ok(answered(answer, true))
        }
        Err(error) => Err(not_placed(error)),
    }
}

/// What is wrong with a body matters less than that its key belongs to another one (contract §5).
pub(super) async fn unless_reused(
    service: &Service,
    key: KeyHash,
    fingerprint: Fingerprint,
    refused: ApiError,
) -> Result<ApiError, ApiError> {
    let known = service.node.find_answer(key).await;
    match known.map_err(|_| ApiError::unavailable())? {
        Some(known) if known.fingerprint != fingerprint => Ok(unanswered_error(&Unanswered::KeyReused)),
        _ => Ok(refused),
    }
}

/// `GET /orders/{order_id}`; with `Prefer: wait=N` not before an order that is under way has changed.
///
/// # Errors
/// `ORDER_NOT_FOUND`, also for the order of another partner.
pub async fn get(
    service: web::Data<Service>,
    caller: Caller,
    order_id: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let order_id = parse_id(&order_id)?;
    let wished = Wait::wished(request.headers());
    let (order, waited) = waiting::read(&service, &caller, order_id, wished).await?;
    let body = OrderBody::of(&order)
        .and_then(|body| serde_json::to_vec(&body))
        .map_err(|_| broken())?;
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, "application/json"));
    if let Some(wait) = waited {
        response.insert_header(wait.applied());
    }
    Ok(response.body(body))
}

/// The id of an order in a path; what is none names no order.
///
/// # Errors
/// `ORDER_NOT_FOUND`.
pub fn parse_id(text: &str) -> Result<OrderId, ApiError> {
    text.parse()
        .map_err(|_| ApiError::new(Code::OrderNotFound, "there is no such order"))
}

/// This partner has no such order.
#[must_use]
pub fn not_found(order_id: OrderId) -> ApiError {
    ApiError::new(Code::OrderNotFound, format!("there is no order {order_id}"))
}

fn broken() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the answer could not be written; send the same request again",
    )
}

/// The key of a request that needs one.
///
/// # Errors
/// `MISSING_IDEMPOTENCY_KEY`, also for one that is repeated or malformed.
pub fn idempotency_key(request: &HttpRequest) -> Result<IdempotencyKey, ApiError> {
    let header = presented(request).idempotency_key;
    IdempotencyKey::parse(header).map_err(|error| {
        let message = match error {
            KeyError::Missing => "send an Idempotency-Key header: 1 to 255 visible ASCII characters",
            KeyError::Malformed => "send one Idempotency-Key header of 1 to 255 visible ASCII characters",
        };
        ApiError::new(Code::MissingIdempotencyKey, message)
    })
}

/// About how long the answer to an order of one voucher is, so that most are written where they stay. Bytes.
const USUAL_ANSWER_BYTES: usize = 768;

/// How the engine's answers read on the wire.
struct JsonWording;

impl Wording for JsonWording {
    fn accepted(&self, order: &Order) -> Answer {
        let status = if order.status == OrderStatus::Delivered {
            201
        } else {
            202
        };
        let mut body = Vec::with_capacity(USUAL_ANSWER_BYTES);
        match OrderBody::of(order).and_then(|order| serde_json::to_writer(&mut body, &order)) {
            Ok(()) => Answer {
                status,
                body: body.into(),
            },
            // An order that cannot be spelled out is not lost: GET /orders/{id} is asked for it.
            Err(_) => Answer {
                status,
                body: format!(r#"{{"order_id":"{}"}}"#, order.order_id).into(),
            },
        }
    }

    fn refused(&self, refusal: &Refusal) -> Answer {
        let error = match refusal {
            Refusal::InsufficientFunds { needed, available } => ApiError::new(
                Code::InsufficientFunds,
                format!(
                    "the order costs {needed} {currency}, the wallet holds {} {currency}",
                    available.of(needed.currency),
                    currency = needed.currency
                ),
            ),
            // How many there are is told as coarsely as everywhere else: as the product's availability.
            Refusal::InsufficientInventory { sku, asked, .. } => ApiError::new(
                Code::InsufficientInventory,
                format!(
                    "there are fewer than {asked} vouchers of product {}",
                    sku.product_id
                ),
            ),
        };
        Answer {
            status: error.code.status(),
            body: error.body(),
        }
    }
}

/// Status and body are what was kept, to the byte; the headers are made from them.
fn answered(answer: Answer, replayed: bool) -> HttpResponse {
    let status = actix_web::http::StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "application/json"));
    let order_id = status.is_success().then(|| order_id_of(&answer.body)).flatten();
    if let Some(location) = order_id.and_then(|id| header_value(format_args!("/api/v1/orders/{id}"))) {
        response.insert_header((LOCATION, location));
    }
    if replayed {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    response.body(answer.body)
}

/// An order's body begins with its id.
fn order_id_of(body: &[u8]) -> Option<&str> {
    let id = body
        .strip_prefix(br#"{"order_id":""#)?
        .get(..OrderId::TEXT_LENGTH)?;
    std::str::from_utf8(id).ok()
}

fn not_placed(error: NotPlaced) -> ApiError {
    let message = error.to_string();
    match error {
        NotPlaced::Unpriced(unpriced) => unpriced_error(unpriced, message),
        NotPlaced::Unanswered(unanswered) => unanswered_error(&unanswered),
    }
}

fn unpriced_error(error: Unpriced, message: String) -> ApiError {
    match error {
        Unpriced::ProductNotFound(_) => ApiError::new(Code::ProductNotFound, message),
        Unpriced::Discontinued(_) => ApiError::new(Code::ProductUnavailable, message),
        Unpriced::Denomination { .. } => ApiError::new(Code::DenominationNotAllowed, message),
        Unpriced::Amount { line, error } => {
            ApiError::invalid(format!("items[{line}].denomination"), error.to_string())
        }
        Unpriced::Currency { .. } => ApiError::new(Code::CurrencyMismatch, message),
        Unpriced::TooLarge => ApiError::invalid("items", message),
    }
}

/// Why a request with a key was not answered; the same for every such endpoint.
#[must_use]
pub fn unanswered_error(error: &Unanswered) -> ApiError {
    let code = match error {
        Unanswered::KeyReused => Code::IdempotencyKeyReused,
        Unanswered::KeyBusy => Code::IdempotencyInProgress,
        Unanswered::Overloaded | Unanswered::Unavailable | Unanswered::OutcomeUnknown => {
            Code::ServiceUnavailable
        }
        Unanswered::Poisoned => Code::InternalError,
    };
    ApiError::new(code, error.to_string())
}

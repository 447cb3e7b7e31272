//! Routes of the peer. An order passes authentication, signature check, idempotency key and parsing before its
//! handler.

use std::sync::Arc;

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use sqlx::PgPool;
use time::Date;
use uuid::Uuid;

use super::batcher::FloorBatcher;
use super::draft::{IdempotencyKey, OrderDraft};
use super::floor::FloorOrder;
use super::refusal::{Refusal, StoredResponse};
use super::request::parse_order;
use super::response::SoldVoucher;
use super::signature::{CredentialRegistry, SignedMessage, verify};
use super::{clock, headers, reads, row_locks};

/// Maximum body size, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// State of one worker.
pub(super) struct PeerState {
    pub(super) credentials: CredentialRegistry,
    pub(super) product_id: Arc<str>,
    pub(super) order_handler: OrderHandler,
}

/// Processing of orders.
pub(super) enum OrderHandler {
    RowLocks(PgPool),
    Floor(FloorBatcher),
}

impl PeerState {
    fn authenticate(&self, headers: &HeaderMap) -> Result<Uuid, Refusal> {
        self.credentials.authenticate(&headers::auth_headers(headers))
    }
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
        .route("/readyz", web::get().to(HttpResponse::Ok))
        .route("/api/v1/orders", web::post().to(place_order))
        .route("/api/v1/orders/{order_id}", web::get().to(get_order))
        .route("/api/v1/wallets", web::get().to(list_wallets))
        .default_service(web::to(route_not_found));
}

async fn route_not_found() -> Result<HttpResponse, Refusal> {
    Err(Refusal::RouteNotFound)
}

async fn place_order(
    request: HttpRequest,
    body: Result<web::Bytes, actix_web::Error>,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = state.authenticate(request.headers())?;
    let body = body.map_err(|_| Refusal::PayloadTooLarge)?;
    verify_signature(&request, &body)?;
    let key = headers::single_value(request.headers(), "idempotency-key");
    let key = IdempotencyKey::new(partner_id, key, request.path(), &body)?;
    let order = parse_order(&body, &state.product_id)?;
    let product_id = Arc::clone(&state.product_id);
    let draft = OrderDraft::new(partner_id, key, product_id, order, clock::now());
    let stored = run_to_completion(async move { execute_order(&state.order_handler, draft).await }).await?;
    Ok(respond(stored))
}

/// Runs the order to completion even if the client disconnects and the handler is dropped, so that no transaction is
/// left open.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle is awaited, and the worker's runtime waits for open requests at shutdown"
)]
async fn run_to_completion(
    order: impl Future<Output = Result<StoredResponse, Refusal>> + 'static,
) -> Result<StoredResponse, Refusal> {
    actix_web::rt::spawn(order)
        .await
        .unwrap_or(Err(Refusal::ServiceUnavailable))
}

/// Checks signature and timestamp.
fn verify_signature(request: &HttpRequest, body: &[u8]) -> Result<(), Refusal> {
    if request.headers().contains_key(CONTENT_ENCODING) {
        return Err(Refusal::UnsupportedMediaType);
    }
    if request.uri().query().is_some() {
        return Err(Refusal::UnexpectedQuery);
    }
    let message = SignedMessage {
        method: request.method().as_str(),
        path: request.path(),
        body,
    };
    let now_s = u64::try_from(clock::now().unix_timestamp()).unwrap_or_default();
    verify(&headers::auth_headers(request.headers()), message, now_s)
}

async fn execute_order(order_handler: &OrderHandler, draft: OrderDraft) -> Result<StoredResponse, Refusal> {
    match order_handler {
        OrderHandler::RowLocks(pool) => row_locks::place_order(pool, &draft).await,
        OrderHandler::Floor(batcher) => {
            let order = floor_order(&draft, batcher.next_number())?;
            batcher.write(order).await?;
            Ok(created_response(&draft))
        }
    }
}

/// Response without stock, with placeholder vouchers.
fn created_response(draft: &OrderDraft) -> StoredResponse {
    StoredResponse {
        status: 201,
        body: draft.delivered().text(&placeholder_vouchers(draft)).into_bytes(),
        replayed: false,
    }
}

fn placeholder_vouchers(draft: &OrderDraft) -> Vec<SoldVoucher> {
    let voucher = |&voucher_id| SoldVoucher {
        voucher_id,
        expiry: Date::MAX,
    };
    draft.voucher_ids.iter().map(voucher).collect()
}

fn floor_order(draft: &OrderDraft, number: i64) -> Result<FloorOrder, Refusal> {
    let [voucher_id] = draft.voucher_ids[..] else {
        return Err(Refusal::ValidationFailed(
            "the floor sells one voucher per order".to_owned(),
        ));
    };
    Ok(FloorOrder {
        order_id: draft.order_id,
        transaction_id: draft.transaction_id,
        voucher_id,
        number,
        total: draft.order.total,
        lines: draft.lines(),
        event: draft.delivered().event(&placeholder_vouchers(draft)),
    })
}

fn respond(stored: StoredResponse) -> HttpResponse {
    let status = stored.status.try_into().unwrap_or_default();
    let mut response = HttpResponse::build(status);
    if stored.replayed {
        response.insert_header(("idempotent-replayed", "true"));
    }
    if let Some(order_id) = vouchsafe_api_client::wire::OrderView::parse(&stored.body)
        .ok()
        .map(|order| order.order_id)
    {
        response.insert_header((LOCATION, format!("/api/v1/orders/{order_id}")));
    }
    response.content_type("application/json").body(stored.body)
}

async fn get_order(
    request: HttpRequest,
    order_id: web::Path<String>,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = state.authenticate(request.headers())?;
    let OrderHandler::RowLocks(pool) = &state.order_handler else {
        return Err(Refusal::RouteNotFound);
    };
    let order_id = order_id
        .strip_prefix("ord_")
        .and_then(|digits| Uuid::try_parse(digits).ok())
        .ok_or(Refusal::OrderNotFound)?;
    Ok(json_response(
        reads::read_order(pool, partner_id, order_id, &state.product_id).await?,
    ))
}

async fn list_wallets(request: HttpRequest, state: web::Data<PeerState>) -> Result<HttpResponse, Refusal> {
    let partner_id = state.authenticate(request.headers())?;
    let OrderHandler::RowLocks(pool) = &state.order_handler else {
        return Err(Refusal::RouteNotFound);
    };
    Ok(json_response(reads::read_wallets(pool, partner_id).await?))
}

fn json_response(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body)
}

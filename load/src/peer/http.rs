//! Routes of the peer. An order passes authentication, signature check, idempotency key and parsing before
//! its handler.

use std::sync::Arc;

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use sqlx::PgPool;
use time::Date;
use uuid::Uuid;
use vouchsafe_api_client::wire::OrderView;

use super::authentication::{Partner, single_value};
use super::batcher::{FloorBatcher, FloorOrder};
use super::order::{IdempotencyKey, OrderDraft, SoldVoucher, StoredResponse, parse_quantity};
use super::outbox::Outbox;
use super::refusal::Refusal;
use super::{reads, row_locks};

/// State of one worker.
pub(super) struct PeerState {
    pub(super) partner: Partner,
    pub(super) product_id: Arc<str>,
    pub(super) order_handler: OrderHandler,
    pub(super) outbox: Arc<Outbox>,
}

/// Processing of orders.
pub(super) enum OrderHandler {
    RowLocks(PgPool),
    Floor(FloorBatcher),
}

#[derive(Deserialize)]
struct EndpointRequest {
    url: String,
}

impl PeerState {
    /// The database that reads use; the floor serves none.
    fn readable(&self, request: &HttpRequest) -> Result<&PgPool, Refusal> {
        self.partner.authenticate(request.headers())?;
        match &self.order_handler {
            OrderHandler::RowLocks(pool) => Ok(pool),
            OrderHandler::Floor(_) => Err(Refusal::OrderNotFound),
        }
    }
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/api/v1/orders", web::post().to(place_order))
        .route("/api/v1/orders/{order_id}", web::get().to(get_order))
        .route("/api/v1/orders/{order_id}/vouchers", web::get().to(get_codes))
        .route("/api/v1/webhooks", web::post().to(register_endpoint))
        .route("/api/v1/wallets", web::get().to(list_wallets));
}

async fn place_order(
    request: HttpRequest,
    body: web::Bytes,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let (partner, path) = (&state.partner, request.path());
    partner.authenticate(request.headers())?;
    partner.verify(request.headers(), (request.method().as_str(), path), &body)?;
    let key = single_value(request.headers(), "idempotency-key").ok_or(Refusal::MissingIdempotencyKey)?;
    let key = IdempotencyKey::new(partner.id, key, path, &body);
    let quantity = parse_quantity(&body, &state.product_id)?;
    let has_endpoint = state.outbox.has_endpoint();
    let draft = OrderDraft::new(
        partner.id,
        key,
        Arc::clone(&state.product_id),
        quantity,
        has_endpoint,
    );
    let stored = run_to_completion(async move { execute_order(&state.order_handler, draft).await }).await?;
    Ok(respond(stored))
}

/// Runs a transaction to completion even if the client disconnects and the handler is dropped, so that no
/// transaction is left open.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle is awaited, and the worker's runtime waits for open requests at shutdown"
)]
async fn run_to_completion<T: 'static>(
    work: impl Future<Output = Result<T, Refusal>> + 'static,
) -> Result<T, Refusal> {
    actix_web::rt::spawn(work)
        .await
        .unwrap_or(Err(Refusal::ServiceUnavailable))
}

async fn execute_order(order_handler: &OrderHandler, draft: OrderDraft) -> Result<StoredResponse, Refusal> {
    match order_handler {
        OrderHandler::RowLocks(pool) => row_locks::place_order(pool, &draft).await,
        OrderHandler::Floor(batcher) => place_floor_order(batcher, &draft).await,
    }
}

/// Writes an order without stock, with a placeholder voucher.
async fn place_floor_order(batcher: &FloorBatcher, draft: &OrderDraft) -> Result<StoredResponse, Refusal> {
    let [voucher_id] = draft.voucher_ids[..] else {
        let reason = "the floor sells one voucher per order";
        return Err(Refusal::ValidationFailed(reason.to_owned()));
    };
    let (delivered, expiry) = (draft.delivered(), Date::MAX);
    let vouchers = [SoldVoucher {
        voucher_id,
        expiry,
        first_retrieved_at: None,
    }];
    let order = FloorOrder {
        order_id: draft.order_id,
        transaction_id: draft.transaction_id,
        voucher_id,
        total: delivered.total(),
        lines: draft.lines(),
        event: delivered.event(&vouchers),
    };
    batcher.write(order).await?;
    Ok(StoredResponse {
        status: 201,
        body: delivered.text(&vouchers).into_bytes(),
        replayed: false,
    })
}

fn respond(stored: StoredResponse) -> HttpResponse {
    let status = stored.status.try_into().unwrap_or_default();
    let mut response = HttpResponse::build(status);
    if stored.replayed {
        response.insert_header(("idempotent-replayed", "true"));
    }
    if let Ok(order) = OrderView::parse(&stored.body) {
        response.insert_header((LOCATION, format!("/api/v1/orders/{}", order.order_id)));
    }
    response.content_type("application/json").body(stored.body)
}

async fn get_order(
    request: HttpRequest,
    order_id: web::Path<String>,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let pool = state.readable(&request)?;
    let order_id = parse_order_id(&order_id)?;
    let order = reads::read_order(pool, state.partner.id, order_id, &state.product_id).await?;
    Ok(json_response(order))
}

async fn get_codes(
    request: HttpRequest,
    order_id: web::Path<String>,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let pool = state.readable(&request)?.clone();
    let partner = &state.partner;
    partner.verify(
        request.headers(),
        (request.method().as_str(), request.path()),
        b"",
    )?;
    let (partner_id, order_id) = (partner.id, parse_order_id(&order_id)?);
    let address = request
        .peer_addr()
        .map(|address| address.ip().to_string())
        .unwrap_or_default();
    let retrieval = async move { reads::retrieve_codes(&pool, partner_id, order_id, address).await };
    Ok(json_response(run_to_completion(retrieval).await?))
}

fn parse_order_id(text: &str) -> Result<Uuid, Refusal> {
    let order_id = text.strip_prefix("ord_").and_then(|id| Uuid::try_parse(id).ok());
    order_id.ok_or(Refusal::OrderNotFound)
}

/// Registers the webhook endpoint of the partner.
async fn register_endpoint(
    request: HttpRequest,
    body: web::Bytes,
    state: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    state.readable(&request)?;
    state.partner.verify(
        request.headers(),
        (request.method().as_str(), request.path()),
        &body,
    )?;
    let invalid = |reason: String| Refusal::ValidationFailed(reason);
    let endpoint: EndpointRequest =
        serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
    state
        .outbox
        .register(&endpoint.url)
        .map_err(|error| invalid(error.to_string()))?;
    Ok(HttpResponse::Created().finish())
}

async fn list_wallets(request: HttpRequest, state: web::Data<PeerState>) -> Result<HttpResponse, Refusal> {
    let pool = state.readable(&request)?;
    Ok(json_response(reads::read_wallets(pool, state.partner.id).await?))
}

fn json_response(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body)
}

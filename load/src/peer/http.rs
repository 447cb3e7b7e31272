//! Which routes does a peer serve, and what happens on the way of an order? Credentials, signature, key, body; then
//! whatever its mode does with an order.

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use sqlx::PgPool;
use time::Date;
use uuid::Uuid;

use super::response::SoldVoucher;
use super::batcher::FloorBatcher;
use super::draft::{OrderDraft, IdempotencyKey};
use super::floor::FloorOrder;
use super::refusal::{StoredResponse, Refusal};
use super::request::{self, Catalogue};
use super::schema::PeerData;
use super::signature::{SignedMessage, CredentialRegistry, verify};
use super::{TransactionShape, clock, headers, reads, row_locks};

/// Longest body. Bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// What a worker has.
#[derive(Clone)]
pub(super) struct PeerState {
    pub(super) credentials: CredentialRegistry,
    pub(super) catalogue: Catalogue,
    pub(super) order_handler: OrderHandler,
}

/// What becomes of an order.
#[derive(Clone)]
pub(super) enum OrderHandler {
    RowLocks { pool: PgPool, shape: TransactionShape },
    Floor(FloorBatcher),
    SignatureOnly,
}

impl PeerState {
    pub(super) fn new(known: &PeerData, order_handler: OrderHandler) -> Self {
        Self {
            credentials: known.credentials.clone(),
            catalogue: known.catalogue.clone(),
            order_handler,
        }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Uuid, Refusal> {
        self.credentials.authenticate(&headers::auth_headers(headers))
    }
}

/// The routes.
pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
        .route("/readyz", web::get().to(HttpResponse::Ok))
        .route("/api/v1/orders", web::post().to(place))
        .route("/api/v1/orders/{order_id}", web::get().to(read))
        .route("/api/v1/wallets", web::get().to(wallets))
        .default_service(web::to(nowhere));
}

async fn nowhere() -> Result<HttpResponse, Refusal> {
    Err(Refusal::RouteNotFound)
}

async fn place(
    request: HttpRequest,
    body: Result<web::Bytes, actix_web::Error>,
    peer: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let body = body.map_err(|_| Refusal::PayloadTooLarge)?;
    check(&request, &body)?;
    let key = headers::single_value(request.headers(), "idempotency-key");
    let key = IdempotencyKey::new(partner_id, key, request.path(), &body)?;
    let wanted = request::parse_order(&body, &peer.catalogue)?;
    let draft = OrderDraft::new(partner_id, key, wanted, clock::now());
    let kept = finished(async move { sell(&peer.order_handler, draft).await }).await?;
    Ok(answer(kept))
}

/// Runs to its end even if the client goes away, which drops the handler: no transaction is left half way.
#[expect(
    clippy::disallowed_methods,
    reason = "its handle is awaited, and at the end the worker's runtime waits for its answers"
)]
async fn finished(order: impl Future<Output = Result<StoredResponse, Refusal>> + 'static) -> Result<StoredResponse, Refusal> {
    actix_web::rt::spawn(order)
        .await
        .unwrap_or(Err(Refusal::ServiceUnavailable))
}

/// Whether exactly this was signed, lately.
fn check(request: &HttpRequest, body: &[u8]) -> Result<(), Refusal> {
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

async fn sell(seller: &OrderHandler, draft: OrderDraft) -> Result<StoredResponse, Refusal> {
    match seller {
        OrderHandler::RowLocks { pool, shape } => row_locks::place_order(pool, *shape, &draft).await,
        OrderHandler::Floor(batcher) => {
            let order = floor_order(&draft, batcher.next_number())?;
            batcher.write(order).await?;
            Ok(created(&draft))
        }
        OrderHandler::SignatureOnly => Ok(created(&draft)),
    }
}

/// What is answered where no stock is asked: whatever voucher.
fn created(draft: &OrderDraft) -> StoredResponse {
    StoredResponse {
        status: 201,
        body: draft.delivered().text(&unsold(draft)).into_bytes(),
        replayed: false,
    }
}

fn unsold(draft: &OrderDraft) -> Vec<SoldVoucher> {
    let lines = draft.order.lines.iter().enumerate();
    let slots = lines.flat_map(|(index, line)| (0..line.quantity).map(move |_| index));
    let voucher = |(voucher_id, line)| SoldVoucher {
        voucher_id,
        line,
        expiry: Date::MAX,
    };
    draft
        .voucher_ids
        .iter()
        .copied()
        .zip(slots)
        .map(voucher)
        .collect()
}

fn floor_order(draft: &OrderDraft, number: i64) -> Result<FloorOrder, Refusal> {
    let [voucher_id] = draft.voucher_ids[..] else {
        return Err(Refusal::ValidationFailed(
            "the floor sells one voucher an order".to_owned(),
        ));
    };
    Ok(FloorOrder {
        order_id: draft.order_id,
        transaction_id: draft.transaction_id,
        voucher_id,
        number,
        total: draft.order.total,
        lines: draft.lines(),
        event: draft.delivered().event(&unsold(draft)),
    })
}

fn answer(kept: StoredResponse) -> HttpResponse {
    let status = kept.status.try_into().unwrap_or_default();
    let mut response = HttpResponse::build(status);
    if kept.replayed {
        response.insert_header(("idempotent-replayed", "true"));
    }
    if let Some(order_id) = crate::wire::OrderView::parse(&kept.body)
        .ok()
        .map(|order| order.order_id)
    {
        response.insert_header((LOCATION, format!("/api/v1/orders/{order_id}")));
    }
    response.content_type("application/json").body(kept.body)
}

async fn read(
    request: HttpRequest,
    order_id: web::Path<String>,
    peer: web::Data<PeerState>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let OrderHandler::RowLocks { pool, .. } = &peer.order_handler else {
        return Err(Refusal::RouteNotFound);
    };
    let order_id = order_id
        .strip_prefix("ord_")
        .and_then(|digits| Uuid::try_parse(digits).ok())
        .ok_or(Refusal::OrderNotFound)?;
    Ok(json(reads::read_order(pool, partner_id, order_id).await?))
}

async fn wallets(request: HttpRequest, peer: web::Data<PeerState>) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let OrderHandler::RowLocks { pool, .. } = &peer.order_handler else {
        return Err(Refusal::RouteNotFound);
    };
    Ok(json(reads::read_wallets(pool, partner_id).await?))
}

fn json(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body)
}

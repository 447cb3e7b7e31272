//! Which routes does a peer serve, and what happens on the way of an order? Credentials, signature, key, body; then
//! whatever its mode does with an order.

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use sqlx::PgPool;
use time::Date;
use uuid::Uuid;

use super::answer::Sold;
use super::batcher::Batcher;
use super::draft::{Draft, KeyOfOrder};
use super::floor::FloorOrder;
use super::refusal::{Kept, Refusal};
use super::request::{self, Catalogue};
use super::schema::Known;
use super::signature::{Message, Register, verify};
use super::{Shape, clock, headers, reads, row_locks};

/// Longest body. Bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// What a worker has.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) register: Register,
    pub(super) catalogue: Catalogue,
    pub(super) seller: Seller,
}

/// What becomes of an order.
#[derive(Clone)]
pub(super) enum Seller {
    RowLocks { pool: PgPool, shape: Shape },
    Floor(Batcher),
    Nobody,
}

impl Peer {
    pub(super) fn new(known: &Known, seller: Seller) -> Self {
        Self {
            register: known.register.clone(),
            catalogue: known.catalogue.clone(),
            seller,
        }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Uuid, Refusal> {
        self.register.identify(&headers::presented(headers))
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
    peer: web::Data<Peer>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let body = body.map_err(|_| Refusal::PayloadTooLarge)?;
    check(&request, &body)?;
    let key = headers::single(request.headers(), "idempotency-key");
    let key = KeyOfOrder::new(partner_id, key, request.path(), &body)?;
    let wanted = request::read(&body, &peer.catalogue)?;
    let draft = Draft::new(partner_id, key, wanted, clock::now());
    let kept = finished(async move { sell(&peer.seller, draft).await }).await?;
    Ok(answer(kept))
}

/// Runs to its end even if the client goes away, which drops the handler: no transaction is left half way.
#[expect(
    clippy::disallowed_methods,
    reason = "its handle is awaited, and at the end the worker's runtime waits for its answers"
)]
async fn finished(order: impl Future<Output = Result<Kept, Refusal>> + 'static) -> Result<Kept, Refusal> {
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
    let message = Message {
        method: request.method().as_str(),
        path: request.path(),
        body,
    };
    let now_s = u64::try_from(clock::now().unix_timestamp()).unwrap_or_default();
    verify(&headers::presented(request.headers()), message, now_s)
}

async fn sell(seller: &Seller, draft: Draft) -> Result<Kept, Refusal> {
    match seller {
        Seller::RowLocks { pool, shape } => row_locks::place(pool, *shape, &draft).await,
        Seller::Floor(batcher) => {
            let order = floor_order(&draft, batcher.next_number())?;
            batcher.write(order).await?;
            Ok(created(&draft))
        }
        Seller::Nobody => Ok(created(&draft)),
    }
}

/// What is answered where no stock is asked: whatever voucher.
fn created(draft: &Draft) -> Kept {
    Kept {
        status: 201,
        body: draft.delivered().text(&unsold(draft)).into_bytes(),
        replayed: false,
    }
}

fn unsold(draft: &Draft) -> Vec<Sold> {
    let lines = draft.wanted.lines.iter().enumerate();
    let slots = lines.flat_map(|(index, line)| (0..line.quantity).map(move |_| index));
    let voucher = |(voucher_id, line)| Sold {
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

fn floor_order(draft: &Draft, number: i64) -> Result<FloorOrder, Refusal> {
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
        total: draft.wanted.total,
        lines: draft.lines(),
        event: draft.delivered().event(&unsold(draft)),
    })
}

fn answer(kept: Kept) -> HttpResponse {
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
    peer: web::Data<Peer>,
) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let Seller::RowLocks { pool, .. } = &peer.seller else {
        return Err(Refusal::RouteNotFound);
    };
    let order_id = order_id
        .strip_prefix("ord_")
        .and_then(|digits| Uuid::try_parse(digits).ok())
        .ok_or(Refusal::OrderNotFound)?;
    Ok(json(reads::order(pool, partner_id, order_id).await?))
}

async fn wallets(request: HttpRequest, peer: web::Data<Peer>) -> Result<HttpResponse, Refusal> {
    let partner_id = peer.caller(request.headers())?;
    let Seller::RowLocks { pool, .. } = &peer.seller else {
        return Err(Refusal::RouteNotFound);
    };
    Ok(json(reads::wallets(pool, partner_id).await?))
}

fn json(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body)
}

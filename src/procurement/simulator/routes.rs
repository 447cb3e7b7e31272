//! The simulator's side of the vendor protocol: its three routes, and what goes wrong on the way of an answer.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use subtle::ConstantTimeEq as _;
use time::Date;
use uuid::Uuid;
use vouchsafe_actors::domain::clock::Clock as _;
use vouchsafe_actors::domain::money::{AmountText, Currency};

use super::Simulator;
use super::faults::Fault;
use super::ledger::{Refusal, PurchaseStatement, PurchaseRequest};
use super::voucher::{Record, SoldVoucher};
use crate::iso_date;
use crate::secrets::expose;
use crate::procurement::PurchaseKey;

/// How long an answer is held back that nobody is to get: longer than any client waits.
const TIMEOUT_DELAY: Duration = Duration::from_secs(3_600);

/// Bytes of an answer that is too large.
const HUGE_BYTES: usize = 10_000_000;

/// The pause that a busy vendor asks for. Seconds.
const BUSY_S: u64 = 1;

/// The three routes.
pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/v1/purchases", web::post().to(buy))
        .route("/v1/purchases/{purchase_id}", web::get().to(poll))
        .route("/v1/records", web::get().to(records))
        .default_service(web::to(|| async {
            error_response(StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND")
        }));
}

#[derive(Deserialize)]
struct PurchaseBody {
    purchase_id: PurchaseKey,
    product_id: String,
    denomination: AmountText,
    currency: Currency,
    quantity: u32,
}

#[derive(Serialize)]
struct SaleBody<'a> {
    purchase_id: PurchaseKey,
    status: &'static str,
    vouchers: &'a [SoldVoucher],
}

#[derive(Deserialize)]
struct RecordsQuery {
    date: String,
    cursor: Option<String>,
}

#[derive(Serialize)]
struct PageBody {
    data: Vec<Record>,
    next_cursor: Option<String>,
}

async fn buy(simulator: web::Data<Simulator>, request: HttpRequest, body: Bytes) -> HttpResponse {
    if !is_authenticated(&simulator, &request) {
        return error_response(StatusCode::UNAUTHORIZED, "INVALID_CREDENTIAL");
    }
    let Some(wish) = parse_purchase(&request, &body) else {
        return error_response(StatusCode::BAD_REQUEST, "MALFORMED_REQUEST");
    };
    let said = simulator.ledger().buy(wish, simulator.clock.now());
    respond(&simulator, said).await
}

async fn poll(
    simulator: web::Data<Simulator>,
    request: HttpRequest,
    purchase_id: web::Path<Uuid>,
) -> HttpResponse {
    if !is_authenticated(&simulator, &request) {
        return error_response(StatusCode::UNAUTHORIZED, "INVALID_CREDENTIAL");
    }
    let key = PurchaseKey(purchase_id.into_inner());
    let said = simulator.ledger().poll(key, simulator.clock.now());
    respond(&simulator, said).await
}

async fn records(
    simulator: web::Data<Simulator>,
    request: HttpRequest,
    asked: web::Query<RecordsQuery>,
) -> HttpResponse {
    if !is_authenticated(&simulator, &request) {
        return error_response(StatusCode::UNAUTHORIZED, "INVALID_CREDENTIAL");
    }
    let Some((day, skipped)) = asked.position() else {
        return error_response(StatusCode::BAD_REQUEST, "MALFORMED_REQUEST");
    };
    let (data, more) = simulator.ledger().page(day, skipped);
    let next = skipped + data.len();
    HttpResponse::Ok().json(PageBody {
        data,
        next_cursor: more.then(|| next.to_string()),
    })
}

impl RecordsQuery {
    /// The day, and how many records of it were told already.
    fn position(&self) -> Option<(Date, usize)> {
        let skipped = match &self.cursor {
            Some(cursor) => cursor.parse().ok()?,
            None => 0,
        };
        Some((iso_date::parse_date(&self.date)?, skipped))
    }
}

fn is_authenticated(simulator: &Simulator, request: &HttpRequest) -> bool {
    let shown = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let shown = shown.and_then(|value| value.strip_prefix(b"Bearer "));
    shown.is_some_and(|shown| shown.ct_eq(expose(&simulator.credential).as_bytes()).into())
}

/// What is asked for, if the key stands in the header as well.
fn parse_purchase(request: &HttpRequest, body: &[u8]) -> Option<PurchaseRequest> {
    let body: PurchaseBody = serde_json::from_slice(body).ok()?;
    let key = request.headers().get("Idempotency-Key")?.to_str().ok()?;
    let wish = PurchaseRequest {
        key: body.purchase_id,
        product_id: body.product_id,
        denomination: body.denomination.parse(body.currency).ok()?.of(body.currency),
        quantity: body.quantity,
    };
    (key == wish.key.to_string()).then_some(wish)
}

async fn respond(simulator: &Simulator, said: Result<PurchaseStatement, Refusal>) -> HttpResponse {
    let said = match said {
        Ok(said) => said,
        Err(refusal) => return refusal.to_response(),
    };
    let has = |fault| said.faults.contains(&fault);
    if has(Fault::Slow) {
        tokio::time::sleep(simulator.slow).await;
    }
    if has(Fault::Timeout) {
        tokio::time::sleep(TIMEOUT_DELAY).await;
    }
    let body = body(&said);
    if has(Fault::Drop) {
        let lost = Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        let parts = [Ok(Bytes::from(body).slice(..1)), lost];
        return HttpResponse::Ok()
            .content_type("application/json")
            .streaming(stream::iter(parts));
    }
    HttpResponse::Ok().content_type("application/json").body(body)
}

/// What is said of a purchase, as its faults want it.
fn body(said: &PurchaseStatement) -> String {
    let status = if said.completed { "completed" } else { "pending" };
    let sale = SaleBody {
        purchase_id: said.key,
        status,
        vouchers: &said.sold,
    };
    if said.faults.contains(&Fault::Huge) {
        return json!({ "padding": "x".repeat(HUGE_BYTES) }).to_string();
    }
    if said.faults.contains(&Fault::WrongSchema) {
        let codes: Vec<&str> = said.sold.iter().map(|voucher| voucher.code.as_str()).collect();
        return json!({ "purchase_id": said.key, "status": status, "vouchers": codes }).to_string();
    }
    // Texts and numbers can always be written.
    serde_json::to_string(&sale).unwrap_or_default()
}

impl Refusal {
    fn to_response(self) -> HttpResponse {
        let (status, code) = match self {
            Self::Quantity => (StatusCode::UNPROCESSABLE_ENTITY, "QUANTITY_NOT_ALLOWED"),
            Self::KeyReused => (StatusCode::CONFLICT, "IDEMPOTENCY_KEY_REUSED"),
            Self::NotFound => (StatusCode::NOT_FOUND, "PURCHASE_NOT_FOUND"),
            Self::OutOfStock => (StatusCode::UNPROCESSABLE_ENTITY, "OUT_OF_STOCK"),
            Self::Busy => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS"),
            Self::Down | Self::Full => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        };
        error_response(status, code)
    }
}

fn error_response(status: StatusCode, code: &str) -> HttpResponse {
    let mut answer = HttpResponse::build(status);
    if status == StatusCode::TOO_MANY_REQUESTS {
        answer.insert_header((RETRY_AFTER, BUSY_S.to_string()));
    }
    answer.json(json!({ "error": { "code": code, "message": code.to_lowercase().replace('_', " ") } }))
}

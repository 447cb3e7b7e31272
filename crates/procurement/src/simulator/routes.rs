//! HTTP routes of the vendor simulator, and the faults of its responses.

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
use vouchsafe_domain::clock::Clock as _;
use vouchsafe_domain::iso_date;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_security::secret::expose;

use super::Simulator;
use super::faults::Fault;
use super::ledger::{PurchaseStatement, Refusal};
use super::voucher::{PurchaseRequest, Record, SoldVoucher};

/// Longer than any client waits.
const TIMEOUT_DELAY: Duration = Duration::from_secs(3_600);

const HUGE_BYTES: usize = 10_000_000;

/// Retry-After of a 429. Seconds.
const BUSY_S: u64 = 1;

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
    let Some(purchase) = parse_purchase(&request, &body) else {
        return error_response(StatusCode::BAD_REQUEST, "MALFORMED_REQUEST");
    };
    let statement = simulator.ledger().buy(purchase, simulator.clock.now());
    respond(&simulator, statement).await
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
    let statement = simulator.ledger().poll(key, simulator.clock.now());
    respond(&simulator, statement).await
}

async fn records(
    simulator: web::Data<Simulator>,
    request: HttpRequest,
    query: web::Query<RecordsQuery>,
) -> HttpResponse {
    if !is_authenticated(&simulator, &request) {
        return error_response(StatusCode::UNAUTHORIZED, "INVALID_CREDENTIAL");
    }
    let Some((day, skipped)) = query.position() else {
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
    /// The day, and the number of records to skip.
    fn position(&self) -> Option<(Date, usize)> {
        let skipped = match &self.cursor {
            Some(cursor) => cursor.parse().ok()?,
            None => 0,
        };
        Some((iso_date::parse_date(&self.date)?, skipped))
    }
}

fn is_authenticated(simulator: &Simulator, request: &HttpRequest) -> bool {
    let credential = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let credential = credential.and_then(|value| value.strip_prefix(b"Bearer "));
    credential.is_some_and(|credential| credential.ct_eq(expose(&simulator.credential).as_bytes()).into())
}

/// Parses a purchase request; the header's key must equal the body's.
fn parse_purchase(request: &HttpRequest, body: &[u8]) -> Option<PurchaseRequest> {
    let body: PurchaseBody = serde_json::from_slice(body).ok()?;
    let key = request.headers().get("Idempotency-Key")?.to_str().ok()?;
    let purchase = PurchaseRequest {
        key: body.purchase_id,
        product_id: body.product_id,
        denomination: body.denomination.parse(body.currency).ok()?.of(body.currency),
        quantity: body.quantity,
    };
    (key == purchase.key.to_string()).then_some(purchase)
}

async fn respond(simulator: &Simulator, statement: Result<PurchaseStatement, Refusal>) -> HttpResponse {
    let statement = match statement {
        Ok(statement) => statement,
        Err(refusal) => return refusal.to_response(),
    };
    let has = |fault| statement.faults.contains(&fault);
    if has(Fault::Slow) {
        tokio::time::sleep(simulator.slow).await;
    }
    if has(Fault::Timeout) {
        tokio::time::sleep(TIMEOUT_DELAY).await;
    }
    let body = body(&statement);
    if has(Fault::Drop) {
        let reset = Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        let parts = [Ok(Bytes::from(body).slice(..1)), reset];
        return HttpResponse::Ok()
            .content_type("application/json")
            .streaming(stream::iter(parts));
    }
    HttpResponse::Ok().content_type("application/json").body(body)
}

/// The response body, changed by the faults.
fn body(statement: &PurchaseStatement) -> String {
    let status = if statement.completed {
        "completed"
    } else {
        "pending"
    };
    let sale = SaleBody {
        purchase_id: statement.key,
        status,
        vouchers: &statement.sold,
    };
    if statement.faults.contains(&Fault::Huge) {
        return json!({ "padding": "x".repeat(HUGE_BYTES) }).to_string();
    }
    if statement.faults.contains(&Fault::WrongSchema) {
        let codes: Vec<&str> = statement
            .sold
            .iter()
            .map(|voucher| voucher.code.as_str())
            .collect();
        return json!({ "purchase_id": statement.key, "status": status, "vouchers": codes }).to_string();
    }
    // Strings and numbers always serialize.
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
    let mut response = HttpResponse::build(status);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.insert_header((RETRY_AFTER, BUSY_S.to_string()));
    }
    response.json(json!({ "error": { "code": code, "message": code.to_lowercase().replace('_', " ") } }))
}

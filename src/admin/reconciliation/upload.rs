//! `POST /reconciliation/{date}/records`: a vendor's books as a file, for vendors that cannot be asked over HTTP.
//!
//! Rule: memory is bounded whatever comes, and the file is compared whole or not at all: one that breaks off changes
//! nothing, and may be sent again.

use actix_web::error::PayloadError;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use time::Date;
use tokio::sync::mpsc::{Sender, channel};

use super::records::Reader;
use super::{DayBody, begun_day};
use crate::admin::operator::{Operator, Role};
use crate::admin::stock::{Block, Blocks, IDLE_LIMIT};
use crate::body::{broken, check_plain, media_type};
use crate::errors::{ApiError, Code};
use crate::reconciliation::Line;
use crate::reconciliation::job::PAGES_AHEAD;
use crate::service::Service;
use crate::store::{Books, Intake, RECORDS_PAGE, Reconciled, Source};

/// `POST /reconciliation/{date}/records?vendor=…`: answers what came of it.
pub(in crate::admin) async fn upload(
    service: web::Data<Service>,
    operator: Operator,
    date: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    check_plain(request.headers())?;
    if media_type(request.headers()).as_deref() != Some("text/csv") {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "send Content-Type: text/csv",
        ));
    }
    let (day, begun_at) = begun_day(&service, &date).await?;
    let books = Books {
        vendor: vendor_of(&service, &request).await?,
        day,
        source: Source::Csv,
        begun_at,
        by: Some(by),
    };
    let (sender, intake) = channel(PAGES_AHEAD);
    let (fed, compared) = tokio::join!(feed(payload, day, sender), service.store.reconcile(books, intake));
    fed?;
    match compared? {
        Reconciled::Done => {
            let found = service.store.reconciliations_of(day).await?;
            Ok(HttpResponse::Ok().json(DayBody::of(day, found)))
        }
        Reconciled::Busy => Err(ApiError::new(
            Code::ReconciliationInProgress,
            "another comparison with this vendor is under way; send the file again when it has ended",
        )),
        Reconciled::Repeated { record } => {
            let message = "it names a voucher that an earlier one names; nothing of the file was taken";
            Err(ApiError::invalid(format!("record {record}"), message))
        }
        Reconciled::Abandoned => Err(broken()),
    }
}

/// The one parameter: a vendor that there is.
async fn vendor_of(service: &Service, request: &HttpRequest) -> Result<String, ApiError> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let mut pairs = pairs
        .map_err(|_| ApiError::invalid("query", "expected name=value pairs"))?
        .into_inner();
    let vendor = match (pairs.pop(), pairs.pop()) {
        (Some((name, vendor)), None) if name == "vendor" => vendor,
        _ => {
            return Err(ApiError::invalid(
                "vendor",
                "expected this parameter, once, and no other",
            ));
        }
    };
    match service.store.find_vendor(vendor).await? {
        Some(access) => Ok(access.vendor.vendor_id),
        None => Err(ApiError::invalid("vendor", "there is no such vendor")),
    }
}

/// Brings the file to the comparison. Where that has ended, it says itself why.
async fn feed(mut payload: web::Payload, day: Date, sender: Sender<Intake>) -> Result<(), ApiError> {
    let (mut blocks, mut reader) = (Blocks::new(), Reader::new(day));
    loop {
        while let Some(block) = blocks.take() {
            if send(&sender, read(&mut reader, &block)?).await.is_none() {
                return Ok(());
            }
        }
        match tokio::time::timeout(IDLE_LIMIT, payload.next()).await {
            Ok(Some(part)) => blocks.push(&part.map_err(|error| cut_off(&error))?),
            Ok(None) => break,
            Err(_) => {
                let message =
                    "nothing came for 10 seconds; send the whole file again, nothing of it was taken";
                return Err(ApiError::new(Code::RequestTimeout, message));
            }
        }
    }
    blocks.finish();
    while let Some(block) = blocks.take() {
        if send(&sender, read(&mut reader, &block)?).await.is_none() {
            return Ok(());
        }
    }
    reader.finish()?;
    // Whoever takes it says what became of it.
    drop(sender.send(Intake::End).await);
    Ok(())
}

fn read(reader: &mut Reader, block: &Block) -> Result<Vec<Line>, ApiError> {
    Ok(reader.read(block)?)
}

/// Page by page; `None` where nobody takes it any more.
async fn send(sender: &Sender<Intake>, mut lines: Vec<Line>) -> Option<()> {
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(RECORDS_PAGE));
        let page = std::mem::replace(&mut lines, rest);
        sender.send(Intake::Lines(page)).await.ok()?;
    }
    Some(())
}

fn cut_off(error: &PayloadError) -> ApiError {
    tracing::warn!(%error, "an upload of records broke off");
    broken()
}

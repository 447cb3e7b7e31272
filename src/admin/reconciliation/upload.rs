//! `POST /reconciliation/{date}/records`: a vendor's books as a file, for vendors that cannot be asked over HTTP.
//!
//! Rule: memory is bounded whatever comes, and the file is compared whole or not at all: one that breaks off changes
//! nothing, and may be sent again.

use actix_web::error::PayloadError;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{Sender, channel};

use super::records::Reader;
use super::{DayBody, begun_day};
use crate::admin::operator::{Operator, Role};
use crate::admin::stock::{Blocks, IDLE_LIMIT};
use crate::body::{broken, check_plain, media_type};
use crate::errors::{ApiError, Code};
use crate::reconciliation::job::PAGES_AHEAD;
use crate::reconciliation::secrecy::first_code;
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
    let feed = Feed {
        service: &service,
        reader: Reader::new(day),
        blocks: Blocks::new(),
        sender,
        sent: 0,
    };
    let (fed, compared) = tokio::join!(feed.run(payload), service.store.reconcile(books, intake));
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

/// A file on its way to the comparison.
struct Feed<'s> {
    service: &'s Service,
    reader: Reader,
    blocks: Blocks,
    sender: Sender<Intake>,
    /// Records that are on their way.
    sent: u64,
}

/// Nobody takes the file any more: the comparison has ended, and says itself why.
struct Untaken;

impl Feed<'_> {
    /// Brings the file to the comparison.
    async fn run(mut self, mut payload: web::Payload) -> Result<(), ApiError> {
        loop {
            if self.send().await?.is_err() {
                return Ok(());
            }
            match tokio::time::timeout(IDLE_LIMIT, payload.next()).await {
                Ok(Some(part)) => self.blocks.push(&part.map_err(|error| cut_off(&error))?),
                Ok(None) => break,
                Err(_) => {
                    let message =
                        "nothing came for 10 seconds; send the whole file again, nothing of it was taken";
                    return Err(ApiError::new(Code::RequestTimeout, message));
                }
            }
        }
        self.blocks.finish();
        if self.send().await?.is_err() {
            return Ok(());
        }
        self.reader.finish()?;
        drop(self.sender.send(Intake::End).await);
        Ok(())
    }

    /// Sends what is there, page by page.
    async fn send(&mut self) -> Result<Result<(), Untaken>, ApiError> {
        while let Some(block) = self.blocks.take() {
            let mut lines = self.reader.read(&block)?;
            while !lines.is_empty() {
                let rest = lines.split_off(lines.len().min(RECORDS_PAGE));
                let page = std::mem::replace(&mut lines, rest);
                if let Some(code) = first_code(self.service, &page).await? {
                    let field = format!("record {}", self.sent + code as u64 + 1);
                    let message = "it has a code for a reference; nothing of the file was taken";
                    return Err(ApiError::invalid(field, message));
                }
                self.sent += page.len() as u64;
                if self.sender.send(Intake::Lines(page)).await.is_err() {
                    return Ok(Err(Untaken));
                }
            }
        }
        Ok(Ok(()))
    }
}

fn cut_off(error: &PayloadError) -> ApiError {
    tracing::warn!(%error, "an upload of records broke off");
    broken()
}

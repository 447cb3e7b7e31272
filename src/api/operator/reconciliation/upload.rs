//! `POST /reconciliation/{date}/records`: upload of a vendor's records as a file.
//!
//! Streams the file into the comparison in bounded memory. A file takes effect completely or not at all; an
//! interrupted upload changes nothing and can be repeated.

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::sync::mpsc::{Sender, channel};
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_domain::reconciliation::result::RecordsSource;
use vouchsafe_procurement::reconciliation::code_leak::first_leaked_code;
use vouchsafe_procurement::reconciliation::job::PAGES_AHEAD;
use vouchsafe_store::{RECORDS_PAGE, ReconciliationOutcome, ReconciliationRun, RecordsMessage};
use vouchsafe_wire::error_body::InvalidRequest;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::reconciliation::RecordsQuery;
use vouchsafe_wire::operator::reconciliation::records::RecordReader;

use super::{find_day, parse_started_day};
use crate::api::body::{check_not_compressed, incomplete, media_type};
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::parse_query;
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::line_blocks::LineBlocks;

/// `POST /reconciliation/{date}/records?vendor=…`: returns the result of the comparison.
pub(in crate::api::operator) async fn upload(
    service: web::Data<OperatorState>,
    operator: Operator,
    date: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> ApiResult {
    let actor = operator.audit_actor();
    check_not_compressed(request.headers())?;
    if media_type(request.headers()).as_deref() != Some("text/csv") {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "send Content-Type: text/csv",
        ));
    }
    let (day, started_at) = parse_started_day(&service, &date).await?;
    let reconciliation_run = ReconciliationRun {
        vendor: parse_vendor(&service, &request).await?,
        day,
        source: RecordsSource::Csv,
        started_at,
        actor: Some(actor),
    };
    let (sender, messages) = channel(PAGES_AHEAD);
    let upload = RecordsUpload {
        service: &service,
        reader: RecordReader::new(day),
        blocks: LineBlocks::new(
            payload,
            "records upload interrupted",
            "no data for 10 seconds; the upload was discarded, send the whole file again",
        ),
        sender,
        sent: 0,
    };
    let (uploaded, compared) = tokio::join!(
        upload.run(),
        service
            .store
            .reconciliations
            .reconcile(reconciliation_run, messages)
    );
    uploaded?;
    match compared? {
        ReconciliationOutcome::Completed => {
            let body = find_day(&service, day).await?;
            Ok(HttpResponse::Ok().json(body.ok_or_else(ApiError::unavailable)?))
        }
        ReconciliationOutcome::Busy => Err(ApiError::new(
            Code::ReconciliationInProgress,
            "another comparison with this vendor is in progress; send the file again later",
        )),
        ReconciliationOutcome::DuplicateReference { record } => {
            let message = "duplicate reference; the whole file was rejected";
            Err(ApiError::invalid_field(format!("record {record}"), message))
        }
        ReconciliationOutcome::Incomplete => Err(incomplete()),
    }
}

/// Parses the single query parameter, an existing vendor.
async fn parse_vendor(service: &OperatorState, request: &HttpRequest) -> Result<String, ApiError> {
    let RecordsQuery { vendor } = parse_query(request)?;
    match service.store.vendors.find(vendor).await? {
        Some(access) => Ok(access.vendor.vendor_id),
        None => Err(ApiError::invalid_field("vendor", "no such vendor")),
    }
}

/// Reads the request body and sends its records to the comparison.
struct RecordsUpload<'s> {
    service: &'s OperatorState,
    reader: RecordReader,
    blocks: LineBlocks,
    sender: Sender<RecordsMessage>,
    /// Records sent so far, to number the next ones.
    sent: u64,
}

/// The comparison has ended; its result contains the reason.
struct ReceiverClosed;

impl RecordsUpload<'_> {
    /// Sends the whole file.
    async fn run(mut self) -> Result<(), ApiError> {
        while let Some(block) = self.blocks.next().await? {
            let lines = self.reader.read(&block).map_err(InvalidRequest::from)?;
            if self.send(lines).await?.is_err() {
                return Ok(());
            }
        }
        let lines = self.reader.finish().map_err(InvalidRequest::from)?;
        if self.send(lines).await?.is_err() {
            return Ok(());
        }
        drop(self.sender.send(RecordsMessage::End).await);
        Ok(())
    }

    /// Sends the records of a block, page by page.
    async fn send(&mut self, mut lines: Vec<RecordLine>) -> Result<Result<(), ReceiverClosed>, ApiError> {
        while !lines.is_empty() {
            let rest = lines.split_off(lines.len().min(RECORDS_PAGE));
            let page = std::mem::replace(&mut lines, rest);
            if let Some(code) = first_leaked_code(
                &self.service.catalogue,
                &self.service.keyring,
                &self.service.store.stock,
                &page,
            )
            .await?
            {
                let field = format!("record {}", self.sent + code as u64 + 1);
                let message = "the reference is a voucher code; the whole file was rejected";
                return Err(ApiError::invalid_field(field, message));
            }
            self.sent += page.len() as u64;
            if self.sender.send(RecordsMessage::Records(page)).await.is_err() {
                return Ok(Err(ReceiverClosed));
            }
        }
        Ok(Ok(()))
    }
}

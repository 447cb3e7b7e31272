//! `POST /stock`: streaming import of a voucher file.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | receive a block of lines | its text, at most a few MiB | the blocks committed before |
//! | encrypt its codes, on a blocking thread | encrypted rows | unchanged |
//! | commit it while the next block is received | the next block | up to 10,000 vouchers more |
//! | notify the shelf | counts and the first 1,000 rejections | |
//!
//! Committed blocks stay committed if the rest fails; the whole file can be sent again. An incomplete line is
//! never imported. A dry run reads the file in the same way, compares its codes with the stored ones and
//! stores nothing.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::expiry_policy::last_valid_day;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::product::Sku;
use vouchsafe_store::{AuditActor, ImportBatch, ImportTarget, StockBatch, StockOrigin};
use vouchsafe_wire::error_body::InvalidRequest;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::import::{
    ImportQuery, ImportReport, MAX_PREVIEWS, RowPreview, parse_batch, parse_denomination,
};
use vouchsafe_wire::operator::stock::row::{DamagePolicy, RowError, RowPolicy};
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, ListedVoucher, ParsedBlock, VoucherList};
use vouchsafe_wire::operator::table::blocks::Block;
use vouchsafe_wire::operator::table::reader::Format;

use super::ingest::{self, CodeState, KnownCodes};
use crate::api::body::{check_not_compressed, media_type};
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::parse_query;
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::catalogue::product_not_found;
use crate::api::operator::line_blocks::LineBlocks;

/// `POST /stock?product_id=…&denomination=…`.
pub(in crate::api::operator) async fn import(
    service: web::Data<OperatorState>,
    operator: Operator,
    request: HttpRequest,
    payload: web::Payload,
) -> ApiResult {
    let actor = operator.audit_actor();
    check_not_compressed(request.headers())?;
    let format = match media_type(request.headers()).as_deref() {
        Some("text/csv") => Format::Csv,
        Some("application/x-ndjson") => Format::Ndjson,
        _ => {
            let message = "send Content-Type: text/csv or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let query: ImportQuery = parse_query(&request)?;
    let (target, default_vendor, policy) = parse_target(&service, &query)?;
    let (vendor, batch) = parse_origin(&service, &query, default_vendor).await?;
    let source = ImportStream {
        service: service.clone(),
        target,
        policy,
        blocks: LineBlocks::new(
            payload,
            "stock import interrupted",
            "no data for 10 seconds; committed vouchers stay imported, send the whole file again",
        ),
        list: Some(VoucherList::new(ListPurpose::Store, format, policy.damage)),
        has_ended: false,
    };
    let report = if query.dry_run {
        let report = ImportReport::new(vendor, batch);
        preview(&service, source, report).await?
    } else {
        let batch = service.store.stock.open_batch(vendor, batch).await?;
        run_import(&service, source, batch, actor).await?
    };
    Ok(HttpResponse::Ok().json(report))
}

/// Parses the SKU of the import, with the default vendor and the default expiry of its vouchers.
fn parse_target(
    service: &OperatorState,
    query: &ImportQuery,
) -> Result<(ImportTarget, String, RowPolicy), ApiError> {
    let catalogue = service.catalogue.current();
    let product = query
        .product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(product_not_found)?;
    let denomination = query.denomination.as_deref();
    let denomination = denomination.ok_or_else(|| ApiError::invalid_field("denomination", "is missing"))?;
    let denomination = parse_denomination(product, &AmountText::from(denomination))?;
    let sku = Sku {
        product_id: product.product_id.clone(),
        denomination,
    };
    let today = service.clock.now().date();
    let policy = RowPolicy {
        today,
        // A voucher counts as issued on the day of its import.
        default_expiry: last_valid_day(&product.expiry_policy, today),
        damage: DamagePolicy::new(query.accept_as_is),
    };
    let vendor = product.vendor.clone();
    Ok((ImportTarget::new(product, sku), vendor, policy))
}

/// The vendor, which must exist, and the name of the batch.
async fn parse_origin(
    service: &OperatorState,
    query: &ImportQuery,
    default_vendor: String,
) -> Result<(String, String), ApiError> {
    let batch = parse_batch(query.batch.as_deref(), service.clock.now())?;
    let vendor = match &query.vendor {
        Some(vendor) => {
            let found = service.store.vendors.find(vendor.trim().to_owned());
            let found = found.await?;
            let found = found.ok_or_else(|| ApiError::invalid_field("vendor", "no such vendor"))?;
            found.vendor.vendor_id
        }
        None => default_vendor,
    };
    Ok((vendor, batch))
}

/// Commits each block while the next one is received and encrypted.
async fn run_import(
    service: &web::Data<OperatorState>,
    mut source: ImportStream,
    batch: ImportBatch,
    actor: AuditActor,
) -> Result<ImportReport, ApiError> {
    let mut report = ImportReport::new(batch.vendor.clone(), batch.batch.clone());
    let mut ready = source.next_sealed(&batch).await?;
    while let Some(SealedBlock {
        batch: sealed,
        lines,
        mut rejected,
    }) = ready
    {
        let (stored, next) = tokio::join!(
            ingest::store_batch(service, sealed, actor.clone()),
            source.next_sealed(&batch)
        );
        let stored = stored?;
        report.add_stored(stored.imported, stored.duplicates);
        let conflicts = stored.conflicts.iter().filter_map(|index| lines.get(*index));
        rejected.extend(conflicts.map(|line| (*line, RowError::Conflict)));
        rejected.sort_unstable_by_key(|(line, _)| *line);
        report.add_rejected(&rejected);
        ready = next?;
    }
    source.add_notices(&mut report);
    let ImportReport {
        imported,
        duplicates,
        rejected_count,
        ..
    } = report;
    tracing::info!(
        imported,
        duplicates,
        rejected = rejected_count,
        "stock import finished"
    );
    Ok(report)
}

/// Reports what an import would do.
async fn preview(
    service: &OperatorState,
    mut source: ImportStream,
    mut report: ImportReport,
) -> Result<ImportReport, ApiError> {
    report.dry_run = true;
    let mut seen = KnownCodes::default();
    while let Some(mut parsed) = source.next().await? {
        let states = ingest::classify(service, &source.target, &parsed.rows, &mut seen).await?;
        let numbered = parsed.lines.iter().zip(&states);
        let conflicts = numbered.filter(|(_, state)| **state == CodeState::Conflict);
        let conflicts = conflicts.map(|(line, _)| (*line, RowError::Conflict));
        parsed.rejected.extend(conflicts);
        parsed.rejected.sort_unstable_by_key(|(line, _)| *line);
        report.add_rejected(&parsed.rejected);
        let count = |wanted| states.iter().filter(|state| **state == wanted).count() as u64;
        report.add_stored(count(CodeState::New), count(CodeState::Duplicate));
        let rows = parsed.lines.iter().zip(&parsed.rows);
        let remaining = MAX_PREVIEWS.saturating_sub(report.first_rows.len());
        let previews = rows.take(remaining).map(|(line, row)| RowPreview::of(*line, row));
        report.first_rows.extend(previews);
    }
    source.add_notices(&mut report);
    Ok(report)
}

/// An encrypted block, ready to commit.
struct SealedBlock {
    batch: StockBatch,
    /// Line number of each voucher.
    lines: Vec<u64>,
    rejected: Vec<(u64, RowError)>,
}

/// Turns the request body into parsed or encrypted blocks.
struct ImportStream {
    service: web::Data<OperatorState>,
    target: ImportTarget,
    policy: RowPolicy,
    blocks: LineBlocks,
    /// `None` while a block is read.
    list: Option<VoucherList>,
    has_ended: bool,
}

impl ImportStream {
    /// Returns the next block, parsed on a blocking thread; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<ParsedBlock>, ApiError> {
        if self.has_ended {
            return Ok(None);
        }
        let block = self.blocks.next().await?;
        self.has_ended = block.is_none();
        let mut list = self.list.take().ok_or_else(ApiError::unavailable)?;
        let (sku, currency, policy) = (self.target.sku.clone(), self.target.currency, self.policy);
        let parsing = web::block(move || {
            let parsed = parse(&mut list, block.as_ref(), policy, (&sku, currency));
            parsed.map(|parsed| (parsed, list))
        });
        let (parsed, list) = parsing.await.map_err(|_| ApiError::unavailable())??;
        self.list = Some(list);
        // At the end there usually is no record left.
        let is_rest = !self.has_ended || !parsed.rows.is_empty() || !parsed.rejected.is_empty();
        Ok(is_rest.then_some(parsed))
    }

    /// Returns the next encrypted block of this batch; `None` at the end of the body.
    async fn next_sealed(&mut self, batch: &ImportBatch) -> Result<Option<SealedBlock>, ApiError> {
        let Some(ParsedBlock {
            rows,
            lines,
            rejected,
        }) = self.next().await?
        else {
            return Ok(None);
        };
        let service = &self.service;
        let vault = service
            .keyring
            .sealing_vault()
            .await
            .map_err(ingest::keyring_error)?;
        let ids = service.store.stock.generate_ids(rows.len()).await?;
        let target = self.target.clone();
        let origin = StockOrigin::Import(batch.clone());
        let sealing = web::block(move || {
            let sealed = ingest::seal_batch(&vault, &target, &rows, ids, origin);
            sealed.map_err(|error| ingest::seal_error(&error))
        });
        let batch = sealing.await.map_err(|_| ApiError::unavailable())??;
        Ok(Some(SealedBlock {
            batch,
            lines,
            rejected,
        }))
    }

    /// Adds what was found out about the file.
    fn add_notices(&self, report: &mut ImportReport) {
        let of_list = self.list.iter().flat_map(VoucherList::notices);
        report.set_notices(self.blocks.notices().iter().chain(of_list));
    }
}

/// Parses a block, or what is left at the end.
fn parse(
    list: &mut VoucherList,
    block: Option<&Block>,
    policy: RowPolicy,
    sku: (&Sku, Currency),
) -> Result<ParsedBlock, ApiError> {
    let mut parsed = ParsedBlock::default();
    let add = |line, listed: Result<ListedVoucher<'_>, RowError>| parsed.add(line, listed, policy, sku);
    let read = match block {
        Some(block) => list.read(block, add),
        None => list.finish(add),
    };
    read.map_err(InvalidRequest::from)?;
    Ok(parsed)
}

//! `POST /stock`: streaming import of a voucher file.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | receive a block of lines | its text, at most a few MiB | the blocks committed before |
//! | encrypt its codes, on a blocking thread | encrypted rows | unchanged |
//! | commit it while the next block is received | the next block | up to 10,000 vouchers more |
//! | notify the shelf | counts and the first 1,000 rejections | |
//!
//! Committed blocks stay committed if the rest fails; the whole file can be sent again. An incomplete line is never imported.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::money::AmountText;
use vouchsafe_domain::product::Sku;
use vouchsafe_store::{AuditActor, ImportBatch, ImportTarget, StockBatch, StockOrigin};
use vouchsafe_wire::error_body::InvalidRequest;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::blocks::Block;
use vouchsafe_wire::operator::stock::format::{Format, ParsedBlock};
use vouchsafe_wire::operator::stock::import::{
    ImportQuery, ImportReport, fixed_date, parse_batch, parse_denomination,
};
use vouchsafe_wire::operator::stock::row::{ExpiryDefaults, LineError};

use super::ingest;
use crate::api::body::{check_not_compressed, media_type};
use crate::api::error::ApiError;
use crate::api::list_request::parse_query;
use crate::api::middleware::operator::Operator;
use crate::api::operator::catalogue::product_not_found;
use crate::api::operator::line_blocks::LineBlocks;
use crate::service::Service;

/// `POST /stock?product_id=…&denomination=…`.
pub(in crate::api::operator) async fn import(
    service: web::Data<Service>,
    operator: Operator,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.audit_actor();
    check_not_compressed(request.headers())?;
    let format = match media_type(request.headers()).as_deref() {
        Some("text/csv") => Format::Csv(None),
        Some("application/x-ndjson") => Format::Ndjson,
        _ => {
            let message = "send Content-Type: text/csv or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let query: ImportQuery = parse_query(&request)?;
    let (target, vendor, expiry_defaults) = parse_target(&service, &query)?;
    let batch = open_batch(&service, &query, vendor).await?;
    let source = ImportStream {
        service: service.clone(),
        target,
        batch,
        expiry_defaults,
        blocks: LineBlocks::new(
            payload,
            "stock import interrupted",
            "no data for 10 seconds; committed vouchers stay imported, send the whole file again",
        ),
        format: Some(format),
    };
    Ok(HttpResponse::Ok().json(run_import(&service, source, actor).await?))
}

/// Parses the SKU of the import, with the default vendor and the default expiry of its vouchers.
fn parse_target(
    service: &Service,
    query: &ImportQuery,
) -> Result<(ImportTarget, String, ExpiryDefaults), ApiError> {
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
    let expiry_defaults = ExpiryDefaults {
        today: service.clock.now().date(),
        default_expiry: fixed_date(product),
    };
    let vendor = product.vendor.clone();
    Ok((ImportTarget::new(product, sku), vendor, expiry_defaults))
}

/// Opens the batch that the query names, of an existing vendor.
async fn open_batch(
    service: &Service,
    query: &ImportQuery,
    default_vendor: String,
) -> Result<ImportBatch, ApiError> {
    let batch = parse_batch(query.batch.as_deref(), service.clock.now())?;
    let vendor = match &query.vendor {
        Some(vendor)
            if service
                .operator_store
                .vendors
                .find(vendor.clone())
                .await?
                .is_none() =>
        {
            return Err(ApiError::invalid_field("vendor", "no such vendor"));
        }
        Some(vendor) => vendor.clone(),
        None => default_vendor,
    };
    Ok(service.operator_store.stock.open_batch(vendor, batch).await?)
}

/// Commits each block while the next one is received and encrypted.
async fn run_import(
    service: &web::Data<Service>,
    mut source: ImportStream,
    actor: AuditActor,
) -> Result<ImportReport, ApiError> {
    let mut report = ImportReport::new(source.batch.vendor.clone(), source.batch.batch.clone());
    let mut ready = source.next().await?;
    while let Some(SealedBlock {
        batch,
        lines,
        mut rejected,
    }) = ready
    {
        let (stored, next) = tokio::join!(ingest::store_batch(service, batch, actor.clone()), source.next());
        let stored = stored?;
        report.add_stored(stored.imported, stored.duplicates);
        let conflicts = stored.conflicts.iter().filter_map(|index| lines.get(*index));
        rejected.extend(conflicts.map(|line| (*line, LineError::Conflict)));
        rejected.sort_unstable_by_key(|(line, _)| *line);
        report.add_rejected(&rejected);
        ready = next?;
    }
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

/// An encrypted block, ready to commit.
struct SealedBlock {
    batch: StockBatch,
    /// Line number of each voucher.
    lines: Vec<u64>,
    rejected: Vec<(u64, LineError)>,
}

/// Turns the request body into encrypted blocks.
struct ImportStream {
    service: web::Data<Service>,
    target: ImportTarget,
    batch: ImportBatch,
    expiry_defaults: ExpiryDefaults,
    blocks: LineBlocks,
    /// Absent while a block is being read.
    format: Option<Format>,
}

impl ImportStream {
    /// Returns the next encrypted block; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<SealedBlock>, ApiError> {
        match self.blocks.next().await? {
            Some(block) => self.seal(block).await.map(Some),
            None => {
                self.format
                    .as_ref()
                    .map_or(Ok(()), Format::finish)
                    .map_err(InvalidRequest::from)?;
                Ok(None)
            }
        }
    }

    /// Parses and encrypts a block on a blocking thread.
    async fn seal(&mut self, block: Block) -> Result<SealedBlock, ApiError> {
        let vault = self
            .service
            .keyring
            .sealing_vault()
            .await
            .map_err(ingest::keyring_error)?;
        let ids = self
            .service
            .operator_store
            .stock
            .generate_ids(block.lines)
            .await?;
        let (target, expiry_defaults) = (self.target.clone(), self.expiry_defaults);
        let origin = StockOrigin::Import(self.batch.clone());
        let mut format = self.format.take().ok_or_else(ApiError::unavailable)?;
        let sealing = web::block(move || {
            let parsed = format.read(&block, expiry_defaults);
            let ParsedBlock {
                rows,
                lines,
                rejected,
            } = parsed.map_err(InvalidRequest::from)?;
            let batch = ingest::seal_batch(&vault, &target, &rows, ids, origin)
                .map_err(|error| ingest::seal_error(&error))?;
            let block = SealedBlock {
                batch,
                lines,
                rejected,
            };
            Ok::<_, ApiError>((block, format))
        });
        let (sealed, format) = sealing.await.map_err(|_| ApiError::unavailable())??;
        self.format = Some(format);
        Ok(sealed)
    }
}

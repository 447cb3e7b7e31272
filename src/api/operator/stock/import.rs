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

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Amount, AmountText};
use vouchsafe_domain::product::{ExpiryKind, Product, Sku};

use super::blocks::{Block, BlockSplitter};
use super::ingest;
use super::rows::{ExpiryDefaults, Format, LineError, ParsedBlock, Rejection};
use crate::api::body::{check_not_compressed, incomplete, media_type};
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::operator::catalogue::product_not_found;
use crate::service::Service;
use vouchsafe_store::{AuditActor, ImportSummary, ImportTarget, StockBatch};
use vouchsafe_domain::iso_date;
use vouchsafe_wire::error_code::Code;

/// Longest pause of the body (contract §10).
pub const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Rejections listed in the response (contract §10).
const MAX_REJECTIONS: usize = 1_000;

/// Result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ImportReport)]
pub struct ImportReport {
    /// Number of new vouchers.
    imported: u64,
    /// Number of vouchers imported before.
    duplicates: u64,
    /// Number of rejected lines.
    rejected_count: u64,
    /// The first 1,000 rejected lines.
    rejected: Vec<Rejection>,
}

/// `POST /stock?product_id=…&denomination=…`.
pub async fn import(
    service: web::Data<Service>,
    operator: Operator,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    check_not_compressed(request.headers())?;
    let format = match media_type(request.headers()).as_deref() {
        Some("text/csv") => Format::Csv(None),
        Some("application/x-ndjson") => Format::Ndjson,
        _ => {
            let message = "send Content-Type: text/csv or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let (target, expiry_defaults) = parse_target(&service, &request)?;
    let source = ImportStream {
        service: service.clone(),
        target,
        expiry_defaults,
        payload,
        blocks: BlockSplitter::new(),
        format: Some(format),
    };
    Ok(HttpResponse::Ok().json(run_import(&service, source, actor).await?))
}

/// Parses the SKU of the import, with the default expiry of its vouchers.
fn parse_target(
    service: &Service,
    request: &HttpRequest,
) -> Result<(ImportTarget, ExpiryDefaults), ApiError> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let pairs = pairs
        .map_err(|_| ApiError::invalid_field("query", "expected name=value pairs"))?
        .into_inner();
    let (mut product_id, mut denomination) = (None, None);
    for (name, value) in pairs {
        let parameter = match name.as_str() {
            "product_id" => &mut product_id,
            "denomination" => &mut denomination,
            _ => return Err(ApiError::invalid_field(name, "unknown parameter")),
        };
        if parameter.replace(value).is_some() {
            return Err(ApiError::invalid_field(name, "given more than once"));
        }
    }
    let required =
        |value: Option<String>, name| value.ok_or_else(|| ApiError::invalid_field(name, "is missing"));
    let product_id = required(product_id, "product_id")?;
    let catalogue = service.catalogue.current();
    let product = product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(product_not_found)?;
    let denomination = required(denomination, "denomination")?;
    let denomination = parse_denomination(product, &AmountText::from(denomination.as_str()))?;
    let sku = Sku {
        product_id: product.product_id.clone(),
        denomination,
    };
    let expiry_defaults = ExpiryDefaults {
        today: service.clock.now().date(),
        default_expiry: fixed_date(product),
    };
    Ok((ingest::import_target(product, sku), expiry_defaults))
}

/// Parses a face value in the product's currency, including discontinued ones.
pub fn parse_amount(product: &Product, text: &AmountText) -> Result<Amount, ApiError> {
    text.parse(product.currency)
        .map_err(|error| ApiError::invalid_field("denomination", error.to_string()))
}

/// Parses a face value at which the product is sold.
fn parse_denomination(product: &Product, text: &AmountText) -> Result<Amount, ApiError> {
    let amount = parse_amount(product, text)?;
    if product.has_denomination(amount) {
        return Ok(amount);
    }
    let message = format!("product {} is not sold at this denomination", product.product_id);
    Err(ApiError::new(Code::DenominationNotAllowed, message))
}

/// The expiry date of products whose vouchers all expire on one date.
fn fixed_date(product: &Product) -> Option<time::Date> {
    let policy = &product.expiry_policy;
    let value = policy
        .value
        .as_ref()
        .filter(|_| policy.kind == ExpiryKind::FixedDate);
    value.and_then(|value| iso_date::parse_date(value.as_str()?))
}

/// Commits each block while the next one is received and encrypted.
async fn run_import(
    service: &web::Data<Service>,
    mut source: ImportStream,
    actor: AuditActor,
) -> Result<ImportReport, ApiError> {
    let mut report = ImportReport::default();
    let mut ready = source.next().await?;
    while let Some(SealedBlock { batch, rejected }) = ready {
        report.add_rejected(&rejected);
        let (stored, next) = tokio::join!(ingest::store_batch(service, batch, actor.clone()), source.next());
        report.add_stored(stored?);
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

impl ImportReport {
    fn add_stored(&mut self, stored: ImportSummary) {
        self.imported += stored.imported;
        self.duplicates += stored.duplicates;
    }

    fn add_rejected(&mut self, rejected: &[(u64, LineError)]) {
        self.rejected_count += rejected.len() as u64;
        let remaining = MAX_REJECTIONS.saturating_sub(self.rejected.len());
        let shown = rejected.iter().take(remaining);
        self.rejected.extend(shown.map(|(line, reason)| Rejection {
            line: *line,
            reason: reason.to_string(),
        }));
    }
}

/// An encrypted block, ready to commit.
struct SealedBlock {
    batch: StockBatch,
    rejected: Vec<(u64, LineError)>,
}

/// Turns the request body into encrypted blocks.
struct ImportStream {
    service: web::Data<Service>,
    target: ImportTarget,
    expiry_defaults: ExpiryDefaults,
    payload: web::Payload,
    blocks: BlockSplitter,
    /// Absent while a block is being read.
    format: Option<Format>,
}

impl ImportStream {
    /// Returns the next encrypted block; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<SealedBlock>, ApiError> {
        match self.next_block().await? {
            Some(block) => self.seal(block).await.map(Some),
            None => {
                self.format.as_ref().map_or(Ok(()), Format::finish)?;
                Ok(None)
            }
        }
    }

    async fn next_block(&mut self) -> Result<Option<Block>, ApiError> {
        loop {
            if let Some(block) = self.blocks.take() {
                return Ok(Some(block));
            }
            match tokio::time::timeout(IDLE_LIMIT, self.payload.next()).await {
                Ok(Some(part)) => self
                    .blocks
                    .push(&part.map_err(|error| import_interrupted(&error))?),
                Ok(None) => {
                    self.blocks.finish();
                    return Ok(self.blocks.take());
                }
                Err(_) => {
                    let message =
                        "no data for 10 seconds; committed vouchers stay imported, send the whole file again";
                    return Err(ApiError::new(Code::RequestTimeout, message));
                }
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
        let ids = self.service.store.stock.generate_ids(block.lines).await?;
        let (target, expiry_defaults) = (self.target.clone(), self.expiry_defaults);
        let mut format = self.format.take().ok_or_else(ApiError::unavailable)?;
        let sealing = web::block(move || {
            let ParsedBlock { rows, rejected } = format.read(&block, expiry_defaults)?;
            let batch = ingest::seal_batch(&vault, &target, &rows, ids)
                .map_err(|error| ingest::seal_error(&error))?;
            Ok::<_, ApiError>((SealedBlock { batch, rejected }, format))
        });
        let (sealed, format) = sealing.await.map_err(|_| ApiError::unavailable())??;
        self.format = Some(format);
        Ok(sealed)
    }
}

fn import_interrupted(error: &PayloadError) -> ApiError {
    tracing::warn!(error.message = %error, "stock import interrupted");
    incomplete()
}

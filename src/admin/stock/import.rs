//! `POST /stock`: a file of vouchers, streamed in.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | a block of lines has come | its text, a few MiB at most | what was committed before |
//! | its codes are sealed, off the threads that serve | sealed rows | the same |
//! | it is committed, while the next one is read | the next block | 10,000 lines more |
//! | the shelf is told | counts and the first 1,000 rejections | |
//!
//! Rule: what is committed stays, whatever becomes of the rest; the whole file may be sent again. A line that has not
//! come in whole is never imported.

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Amount, AmountText};
use vouchsafe_actors::domain::product::{ExpiryKind, Product, Sku};

use super::blocks::{Block, Blocks};
use super::intake;
use super::rows::{Calendar, Format, Parsed, Reason, Rejection};
use crate::admin::catalogue::no_product;
use crate::admin::operator::{Operator, Role};
use crate::body::{broken, check_plain, media_type};
use crate::day;
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::{By, ImportTarget, Imported, StockBatch};

/// How long the body may pause (contract §10).
pub(in crate::admin) const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// How many rejections the answer spells out (contract §10).
const MAX_REJECTIONS: usize = 1_000;

/// What became of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ImportReport)]
pub(in crate::admin) struct Report {
    /// Vouchers that are new.
    imported: u64,
    /// Vouchers that were there.
    duplicates: u64,
    /// Lines that will not do.
    rejected_count: u64,
    /// The first thousand of them.
    rejected: Vec<Rejection>,
}

/// `POST /stock?product_id=…&denomination=…`.
pub(in crate::admin) async fn import(
    service: web::Data<Service>,
    operator: Operator,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    check_plain(request.headers())?;
    let format = match media_type(request.headers()).as_deref() {
        Some("text/csv") => Format::Csv(None),
        Some("application/x-ndjson") => Format::Ndjson,
        _ => {
            let message = "send Content-Type: text/csv or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let (target, calendar) = read_target(&service, &request)?;
    let source = Source {
        service: service.clone(),
        target,
        calendar,
        payload,
        blocks: Blocks::new(),
        format: Some(format),
    };
    Ok(HttpResponse::Ok().json(run(&service, source, by).await?))
}

/// Which SKU, and until when its vouchers are valid unless their lines say so.
fn read_target(service: &Service, request: &HttpRequest) -> Result<(ImportTarget, Calendar), ApiError> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let pairs = pairs
        .map_err(|_| ApiError::invalid("query", "expected name=value pairs"))?
        .into_inner();
    let (mut product_id, mut denomination) = (None, None);
    for (name, value) in pairs {
        let place = match name.as_str() {
            "product_id" => &mut product_id,
            "denomination" => &mut denomination,
            _ => return Err(ApiError::invalid(name, "there is no such parameter")),
        };
        if place.replace(value).is_some() {
            return Err(ApiError::invalid(name, "given more than once"));
        }
    }
    let required = |value: Option<String>, name| value.ok_or_else(|| ApiError::invalid(name, "is missing"));
    let product_id = required(product_id, "product_id")?;
    let catalogue = service.catalogue.now();
    let known = product_id
        .parse()
        .ok()
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(no_product)?;
    let denomination = required(denomination, "denomination")?;
    let denomination = read_denomination(known, &AmountText::from(denomination.as_str()))?;
    let sku = Sku {
        product_id: known.product_id.clone(),
        denomination,
    };
    let calendar = Calendar {
        today: service.clock.now().date(),
        otherwise: fixed_date(known),
    };
    Ok((intake::target(known, sku), calendar))
}

/// A face value in the product's currency, also one that it is not sold at any more.
pub(super) fn read_amount(product: &Product, text: &AmountText) -> Result<Amount, ApiError> {
    text.parse(product.currency)
        .map_err(|error| ApiError::invalid("denomination", error.to_string()))
}

/// A face value that the product is sold at.
fn read_denomination(product: &Product, text: &AmountText) -> Result<Amount, ApiError> {
    let amount = read_amount(product, text)?;
    if product.offers(amount) {
        return Ok(amount);
    }
    let message = format!("product {} is not sold at this denomination", product.product_id);
    Err(ApiError::new(Code::DenominationNotAllowed, message))
}

/// Where all vouchers of a product end on one date, a line need not say so.
fn fixed_date(product: &Product) -> Option<time::Date> {
    let policy = &product.expiry_policy;
    let value = policy
        .value
        .as_ref()
        .filter(|_| policy.kind == ExpiryKind::FixedDate);
    value.and_then(|value| day::parse(value.as_str()?))
}

/// Commits each block while the next one is read and sealed.
async fn run(service: &web::Data<Service>, mut source: Source, by: By) -> Result<Report, ApiError> {
    let mut report = Report::default();
    let mut ready = source.next().await?;
    while let Some(Sealed { batch, rejected }) = ready {
        report.reject(&rejected);
        let (stored, next) = tokio::join!(intake::store(service, batch, by.clone()), source.next());
        report.count(stored?);
        ready = next?;
    }
    let Report {
        imported,
        duplicates,
        rejected_count,
        ..
    } = report;
    tracing::info!(
        imported,
        duplicates,
        rejected = rejected_count,
        "an import has ended"
    );
    Ok(report)
}

impl Report {
    fn count(&mut self, stored: Imported) {
        self.imported += stored.imported;
        self.duplicates += stored.duplicates;
    }

    fn reject(&mut self, rejected: &[(u64, Reason)]) {
        self.rejected_count += rejected.len() as u64;
        let room = MAX_REJECTIONS.saturating_sub(self.rejected.len());
        let shown = rejected.iter().take(room);
        self.rejected.extend(shown.map(|(line, reason)| Rejection {
            line: *line,
            reason: reason.to_string(),
        }));
    }
}

/// A block that is ready to be stored.
struct Sealed {
    batch: StockBatch,
    rejected: Vec<(u64, Reason)>,
}

/// The body, on its way to sealed blocks.
struct Source {
    service: web::Data<Service>,
    target: ImportTarget,
    calendar: Calendar,
    payload: web::Payload,
    blocks: Blocks,
    /// Absent while a block is being read.
    format: Option<Format>,
}

impl Source {
    /// The next block, sealed; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<Sealed>, ApiError> {
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
                Ok(Some(part)) => self.blocks.push(&part.map_err(|error| cut_off(&error))?),
                Ok(None) => {
                    self.blocks.finish();
                    return Ok(self.blocks.take());
                }
                Err(_) => {
                    let message =
                        "nothing came for 10 seconds; send the whole file again, what is in stays in";
                    return Err(ApiError::new(Code::RequestTimeout, message));
                }
            }
        }
    }

    /// Reads and seals a block on a thread for work that takes its time.
    async fn seal(&mut self, block: Block) -> Result<Sealed, ApiError> {
        let vault = self.service.keyring.sealing().await.map_err(intake::locked)?;
        let ids = self.service.store.take_stock_ids(block.lines).await?;
        let (target, calendar) = (self.target.clone(), self.calendar);
        let mut format = self.format.take().ok_or_else(ApiError::unavailable)?;
        let worked = web::block(move || {
            let Parsed { rows, rejected } = format.read(&block, calendar)?;
            let batch =
                intake::seal(&vault, &target, &rows, ids).map_err(|error| intake::unsealed(&error))?;
            Ok::<_, ApiError>((Sealed { batch, rejected }, format))
        });
        let (sealed, format) = worked.await.map_err(|_| ApiError::unavailable())??;
        self.format = Some(format);
        Ok(sealed)
    }
}

fn cut_off(error: &PayloadError) -> ApiError {
    tracing::warn!(%error, "an import broke off");
    broken()
}

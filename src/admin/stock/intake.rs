//! From vouchers in the clear to committed stock: sealed off the threads that serve, stored as one transaction, and told
//! to the shelf.

use actix_web::web;
use time::Date;
use vouchsafe_actors::domain::product::{Product, Sku};

use super::rows::Row;
use crate::errors::{ApiError, Code};
use crate::keyring::KeyringError;
use crate::service::Service;
use crate::store::{By, FreshIds, ImportOutcome, ImportTarget, Imported, NewVoucher, StockBatch};
use crate::vault::code::VoucherCode;
use crate::vault::seal::{SealError, Vault};

/// What vouchers of this SKU are imported as.
#[must_use]
pub fn target(product: &Product, sku: Sku) -> ImportTarget {
    ImportTarget { sku, brand: product.brand.clone(), currency: product.currency }
}

/// Takes vouchers into stock, all or none. At most 10,000 at once.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` when the database does not answer or no key can be had: repeat it, nothing comes in twice.
pub async fn take_in(
    service: &web::Data<Service>,
    target: &ImportTarget,
    vouchers: Vec<(VoucherCode, Option<Date>)>,
    by: By,
) -> Result<Imported, ApiError> {
    let rows: Vec<Row> = vouchers.into_iter().map(|(code, expiry)| Row { code, expiry }).collect();
    let vault = service.keyring.sealing().await.map_err(locked)?;
    let ids = service.store.take_stock_ids(rows.len()).await?;
    let batch = seal(&vault, target, &rows, ids).map_err(|error| unsealed(&error))?;
    store(service, batch, by).await
}

/// Seals vouchers. Works for tens of milliseconds: not for a thread that serves.
pub(super) fn seal(
    vault: &Vault,
    target: &ImportTarget,
    rows: &[Row],
    ids: FreshIds,
) -> Result<StockBatch, SealError> {
    let seal = |(row, &code_id): (&Row, _)| {
        Ok(NewVoucher {
            code_id,
            blind_index: vault.blind_index(&target.brand, &row.code),
            sealed: vault.seal(code_id, &target.sku, &row.code)?,
            expiry: row.expiry,
        })
    };
    let vouchers = rows.iter().zip(&ids.codes).map(seal).collect::<Result<_, _>>()?;
    Ok(StockBatch { target: target.clone(), vouchers, stock_ids: ids.stock })
}

/// Stores a batch and tells the shelf, whether or not anybody waits for it.
pub(super) async fn store(
    service: &web::Data<Service>,
    batch: StockBatch,
    by: By,
) -> Result<Imported, ApiError> {
    let (sku, to_the_end) = (batch.target.sku.clone(), service.clone());
    let stored = service.store.to_the_end(async move {
        let outcome = to_the_end.store.import_stock(batch, by).await?;
        if let ImportOutcome::Stored(Imported { earliest: Some(earliest), .. }) = outcome {
            to_the_end.engine.inventory.restocked(&sku, earliest);
        }
        Ok(outcome)
    });
    match stored.await? {
        ImportOutcome::Stored(imported) => Ok(imported),
        ImportOutcome::ProductChanged => {
            Err(ApiError::invalid("product_id", "brand or currency were changed during the import; repeat it"))
        }
    }
}

pub(super) fn locked(error: KeyringError) -> ApiError {
    tracing::error!(%error, "no data key can be had for an import");
    ApiError::unavailable()
}

pub(super) fn unsealed(error: &SealError) -> ApiError {
    tracing::error!(%error, "a code cannot be sealed");
    ApiError::new(Code::InternalError, "the codes could not be sealed; what was committed before stays")
}

//! From vouchers in the clear to committed stock: sealed off the threads that serve, stored as one transaction, and told
//! to the shelf.

use actix_web::web;
use vouchsafe_actors::domain::product::{Product, Sku};

use super::rows::Row;
use crate::errors::{ApiError, Code};
use crate::keyring::KeyringError;
use crate::service::Service;
use crate::store::{By, FreshIds, ImportOutcome, ImportTarget, Imported, NewVoucher, Origin, StockBatch};
use crate::vault::seal::{SealError, Vault};

/// What vouchers of this SKU are imported as.
#[must_use]
pub(in crate::admin) fn target(product: &Product, sku: Sku) -> ImportTarget {
    ImportTarget {
        sku,
        brand: product.brand.clone(),
        currency: product.currency,
    }
}

/// Seals vouchers. Works for tens of milliseconds: not for a thread that serves.
pub(in crate::admin) fn seal(
    vault: &Vault,
    target: &ImportTarget,
    rows: &[Row],
    ids: FreshIds,
) -> Result<StockBatch, SealError> {
    let seal = |(row, &code_id): (&Row, _)| {
        Ok::<_, SealError>(NewVoucher {
            code_id,
            blind_index: vault.blind_index(&target.brand, &row.code),
            sealed: vault.seal(code_id, &target.sku, &row.code)?,
            expiry: row.expiry,
            vendor_reference: None,
        })
    };
    let vouchers = rows
        .iter()
        .zip(&ids.codes)
        .map(seal)
        .collect::<Result<_, SealError>>()?;
    Ok(StockBatch {
        target: target.clone(),
        vouchers,
        stock_ids: ids.stock,
        origin: Origin::Import,
    })
}

/// Stores a batch and tells the shelf, whether or not anybody waits for it.
pub(in crate::admin) async fn store(
    service: &web::Data<Service>,
    batch: StockBatch,
    by: By,
) -> Result<Imported, ApiError> {
    let (sku, to_the_end) = (batch.target.sku.clone(), service.clone());
    let stored = service.store.to_the_end(async move {
        let outcome = to_the_end.store.import_stock(batch, by).await?;
        if let ImportOutcome::Stored(Imported {
            earliest: Some(earliest),
            ..
        }) = outcome
        {
            to_the_end.engine.inventory.restocked(&sku, earliest);
        }
        Ok(outcome)
    });
    match stored.await? {
        ImportOutcome::Stored(imported) => Ok(imported),
        ImportOutcome::ProductChanged => Err(ApiError::invalid(
            "product_id",
            "brand or currency were changed during the import; repeat it",
        )),
    }
}

pub(in crate::admin) fn locked(error: KeyringError) -> ApiError {
    tracing::error!(%error, "no data key can be had for an import");
    ApiError::unavailable()
}

pub(in crate::admin) fn unsealed(error: &SealError) -> ApiError {
    tracing::error!(%error, "a code cannot be sealed");
    ApiError::new(
        Code::InternalError,
        "the codes could not be sealed; what was committed before stays",
    )
}

//! Encrypts vouchers on a blocking thread, commits them as one transaction and notifies the shelf.

use actix_web::web;
use vouchsafe_domain::product::{Product, Sku};
use vouchsafe_security::vault::seal::{SealError, Vault};
use vouchsafe_store::keyring::KeyringError;
use vouchsafe_store::{
    AuditActor, ImportOutcome, ImportSummary, ImportTarget, NewStockIds, NewVoucher, StockBatch, StockOrigin,
};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::row::VoucherRow;

use crate::api::error::ApiError;
use crate::service::Service;

#[must_use]
pub(in crate::api::operator) fn import_target(product: &Product, sku: Sku) -> ImportTarget {
    ImportTarget {
        sku,
        brand: product.brand.clone(),
        currency: product.currency,
        code_identity: product.code_identity,
    }
}

/// Encrypts vouchers. Takes tens of milliseconds: call it on a blocking thread.
pub(in crate::api::operator) fn seal_batch(
    vault: &Vault,
    target: &ImportTarget,
    rows: &[VoucherRow],
    ids: NewStockIds,
    origin: StockOrigin,
) -> Result<StockBatch, SealError> {
    let seal = |(row, &code_id): (&VoucherRow, _)| {
        Ok::<_, SealError>(NewVoucher {
            code_id,
            blind_index: vault.blind_index(&target.brand, &row.code),
            code_index: vault.code_index(&target.brand, &row.code),
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
        origin,
    })
}

/// Commits a batch and notifies the shelf, even if the caller disconnects.
pub(in crate::api::operator) async fn store_batch(
    service: &web::Data<Service>,
    batch: StockBatch,
    actor: AuditActor,
) -> Result<ImportSummary, ApiError> {
    let (sku, owned_service) = (batch.target.sku.clone(), service.clone());
    let stored = service.operator_store.database.run_detached(async move {
        let outcome = owned_service.operator_store.stock.import(batch, actor).await?;
        if let ImportOutcome::Stored(ImportSummary {
            earliest: Some(earliest),
            ..
        }) = &outcome
        {
            owned_service.engine.inventory.notify_restocked(&sku, *earliest);
        }
        Ok(outcome)
    });
    match stored.await? {
        ImportOutcome::Stored(imported) => Ok(imported),
        ImportOutcome::ProductChanged => Err(ApiError::invalid_field(
            "product_id",
            "brand, currency or code_identity changed during the import; repeat the import",
        )),
        ImportOutcome::IndexIncomplete => Err(ApiError::new(
            Code::ServiceUnavailable,
            "codes of an earlier version are being indexed against duplicates; repeat the import in a minute",
        )),
    }
}

pub(in crate::api::operator) fn keyring_error(error: KeyringError) -> ApiError {
    tracing::error!(error.message = %error, "no data key for a stock import");
    ApiError::unavailable()
}

pub(in crate::api::operator) fn seal_error(error: &SealError) -> ApiError {
    tracing::error!(error.message = %error, "cannot encrypt a code");
    ApiError::new(
        Code::InternalError,
        "cannot encrypt the codes; vouchers committed before stay imported",
    )
}

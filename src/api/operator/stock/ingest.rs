//! Encrypts vouchers on a blocking thread, commits them as one transaction and notifies the shelf.

use std::collections::HashSet;

use actix_web::web;
use vouchsafe_domain::product::{CodeIdentity, Product};
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::code::VoucherCode;
use vouchsafe_security::vault::seal::{SealError, Vault};
use vouchsafe_store::keyring::KeyringError;
use vouchsafe_store::{
    AuditActor, CodeMatch, ImportOutcome, ImportSummary, ImportTarget, NewStockIds, NewVoucher, StockBatch,
    StockOrigin,
};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::row::VoucherRow;

use crate::api::error::ApiError;
use crate::api::operator::OperatorState;

/// Which stored codes a code in a list names: the card whatever its PIN, where the product's vouchers are
/// identified by the code.
#[must_use]
pub(in crate::api::operator) fn code_match(
    vault: &Vault,
    product: &Product,
    code: &VoucherCode,
) -> CodeMatch {
    let code_index = match product.code_identity {
        CodeIdentity::Code => Some(vault.code_index(product.code_scope(), code)),
        CodeIdentity::CodeAndPin => None,
    };
    CodeMatch {
        blind_index: vault.blind_index(product.code_scope(), code),
        code_index,
    }
}

/// What storing a code would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api::operator) enum CodeState {
    New,
    /// Stored before, or repeated.
    Duplicate,
    /// The brand has it with another PIN.
    Conflict,
}

/// Codes that came before in a file. Holds at most as many as fit into 64 MiB; beyond that, a repetition
/// counts as new.
#[derive(Default)]
pub(in crate::api::operator) struct KnownCodes(HashSet<BlindIndex>);

const MAX_KNOWN_CODES: usize = 1_000_000;

/// Finds out what storing these vouchers would do.
pub(in crate::api::operator) async fn classify(
    service: &OperatorState,
    target: &ImportTarget,
    rows: &[VoucherRow],
    seen: &mut KnownCodes,
) -> Result<Vec<CodeState>, ApiError> {
    let vault = service.keyring.vault();
    let index = |row: &VoucherRow| {
        let scope = target.code_scope();
        (
            vault.blind_index(scope, &row.code),
            vault.code_index(scope, &row.code),
        )
    };
    let indexes: Vec<_> = rows.iter().map(index).collect();
    let candidates = indexes.iter().flat_map(|(blind, code)| [*blind, *code]).collect();
    let stored = service.store.stock.find_known_codes(candidates).await?;
    if seen.0.len() > MAX_KNOWN_CODES {
        seen.0.clear();
    }
    let states = indexes.into_iter().map(|(blind_index, code_index)| {
        let is_known = |index| stored.contains(index) || seen.0.contains(index);
        if is_known(&blind_index) {
            return CodeState::Duplicate;
        }
        if is_known(&code_index) && target.code_identity == CodeIdentity::Code {
            return CodeState::Conflict;
        }
        seen.0.extend([blind_index, code_index]);
        CodeState::New
    });
    Ok(states.collect())
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
            blind_index: vault.blind_index(target.code_scope(), &row.code),
            code_index: vault.code_index(target.code_scope(), &row.code),
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
    service: &web::Data<OperatorState>,
    batch: StockBatch,
    actor: AuditActor,
) -> Result<ImportSummary, ApiError> {
    let (sku, owned_service) = (batch.target.sku.clone(), service.clone());
    let stored = service.store.database.run_detached(async move {
        let outcome = owned_service.store.stock.import(batch, actor).await?;
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
            "brand, currency, code_identity or code_case changed during the import; repeat the import",
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

//! Import of purchased vouchers into stock: encrypted, and reserved for the purchase.
//!
//! A code of a brand is stored once, ever (a code and PIN, if the product's vouchers are identified by both).
//! A voucher whose code was sold before, to us or under another purchase, is reported to operators by the
//! vendor's reference and never sold.

use std::collections::HashSet;

use vouchsafe_domain::product::Sku;
use vouchsafe_domain::purchase::BuyRequest;
use vouchsafe_store::StoreError;
use vouchsafe_store::{AuditActor, ImportOutcome, ImportTarget, NewVoucher, StockBatch, StockOrigin};

use super::ProcurementService;
use crate::VendorVoucher;

/// Why vouchers cannot be imported, for an internal reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntakeError {
    #[error("database error: {0}")]
    Database(#[from] StoreError),
    #[error("no data key available: {0}")]
    KeyUnavailable(#[from] vouchsafe_store::keyring::KeyringError),
    #[error("cannot encrypt a code: {0}")]
    SealFailed(#[from] vouchsafe_security::vault::seal::SealError),
    /// An operator has changed the product meanwhile.
    #[error("the product has changed in the catalogue or was removed")]
    ProductChanged,
}

impl ProcurementService {
    /// Imports the vouchers that are new, reserved for the order. Returns the vendor's references of those
    /// whose codes were sold before.
    pub(super) async fn import_vouchers(
        &self,
        request: &BuyRequest,
        vouchers: &[VendorVoucher],
    ) -> Result<Vec<String>, IntakeError> {
        let known = self.known_references(request).await?;
        let new: Vec<&VendorVoucher> = vouchers
            .iter()
            .filter(|voucher| !known.contains(voucher.reference.as_str()))
            .collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.seal(request, &new).await?;
        match self.store.stock.import(batch, AuditActor::service()).await? {
            ImportOutcome::Stored(stored) if stored.imported == new.len() as u64 => return Ok(Vec::new()),
            ImportOutcome::Stored(_) => {}
            ImportOutcome::ProductChanged => return Err(IntakeError::ProductChanged),
        }
        let known = self.known_references(request).await?;
        let references = new.into_iter().map(|voucher| voucher.reference.to_string());
        Ok(references
            .filter(|reference| !known.contains(reference))
            .collect())
    }

    async fn known_references(&self, request: &BuyRequest) -> Result<HashSet<String>, StoreError> {
        let references = self.store.purchases.list_bought_references(request.key).await?;
        Ok(references.into_iter().collect())
    }

    async fn seal(
        &self,
        request: &BuyRequest,
        vouchers: &[&VendorVoucher],
    ) -> Result<StockBatch, IntakeError> {
        let catalogue = self.catalogue.current();
        let product = catalogue
            .get(&request.product_id)
            .ok_or(IntakeError::ProductChanged)?;
        let sku = Sku {
            product_id: request.product_id.clone(),
            denomination: request.denomination.amount,
        };
        let target = ImportTarget {
            // Of the purchase: the import fails if the product's is another by now.
            currency: request.denomination.currency,
            ..ImportTarget::new(product, sku)
        };
        let vault = self.keyring.sealing_vault().await?;
        let ids = self.store.stock.generate_ids(vouchers.len()).await?;
        let seal = |(voucher, code_id): (&&VendorVoucher, _)| -> Result<NewVoucher, IntakeError> {
            Ok(NewVoucher {
                code_id,
                blind_index: vault.blind_index(target.code_scope(), &voucher.code),
                code_index: vault.code_index(target.code_scope(), &voucher.code),
                sealed: vault.seal(code_id, &target.sku, &voucher.code)?,
                expiry: voucher.expiry,
                vendor_reference: Some(voucher.reference.to_string()),
            })
        };
        let sealed = vouchers
            .iter()
            .zip(ids.codes)
            .map(seal)
            .collect::<Result<_, _>>()?;
        Ok(StockBatch {
            target,
            vouchers: sealed,
            stock_ids: ids.stock,
            origin: StockOrigin::Purchase(request.key.0),
        })
    }
}

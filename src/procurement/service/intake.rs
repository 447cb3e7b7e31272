//! How do vouchers that a vendor sold become stock? Sealed, and kept for the order of their purchase.
//!
//! Rule: one code and PIN of a brand comes in once, ever. What was sold before, to us or under another purchase, is named to
//! operators by the vendor's reference and never sold.

use std::collections::HashSet;

use vouchsafe_actors::domain::product::Sku;

use super::ProcurementService;
use crate::store::{AuditActor, ImportOutcome, ImportTarget, NewVoucher, StockOrigin, StockBatch};
use crate::procurement::{BuyRequest, VendorVoucher};

/// What keeps vouchers from being taken in, for a reason of ours.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntakeError {
    #[error("the database did not answer: {0}")]
    Database(#[from] sqlx::Error),
    #[error("no data key can be had: {0}")]
    KeyUnavailable(#[from] crate::keyring::KeyringError),
    #[error("a code cannot be sealed: {0}")]
    SealFailed(#[from] crate::vault::seal::SealError),
    /// An operator has changed the product meanwhile.
    #[error("its product is not in the catalogue as it was")]
    ProductChanged,
}

impl ProcurementService {
    /// Makes stock of what is new of these, kept for the order. Gives the vendor's names of those that were sold before.
    pub(super) async fn import_vouchers(
        &self,
        request: &BuyRequest,
        vouchers: &[VendorVoucher],
    ) -> Result<Vec<String>, IntakeError> {
        let taken = self.known_references(request).await?;
        let fresh: Vec<&VendorVoucher> = vouchers
            .iter()
            .filter(|voucher| !taken.contains(voucher.reference.as_str()))
            .collect();
        if fresh.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.seal(request, &fresh).await?;
        match self.store.import_stock(batch, AuditActor::service()).await? {
            ImportOutcome::Stored(_) => {}
            ImportOutcome::ProductChanged => return Err(IntakeError::ProductChanged),
        }
        let taken = self.known_references(request).await?;
        let names = fresh.into_iter().map(|voucher| voucher.reference.to_string());
        Ok(names.filter(|name| !taken.contains(name)).collect())
    }

    async fn known_references(&self, request: &BuyRequest) -> Result<HashSet<String>, sqlx::Error> {
        let names = self.store.list_bought_references(request.key).await?;
        Ok(names.into_iter().collect())
    }

    async fn seal(&self, request: &BuyRequest, vouchers: &[&VendorVoucher]) -> Result<StockBatch, IntakeError> {
        let catalogue = self.catalogue.current();
        let product = catalogue.get(&request.product_id).ok_or(IntakeError::ProductChanged)?;
        let target = ImportTarget {
            sku: Sku {
                product_id: request.product_id.clone(),
                denomination: request.denomination.amount,
            },
            brand: product.brand.clone(),
            currency: request.denomination.currency,
        };
        let vault = self.keyring.sealing_vault().await?;
        let ids = self.store.generate_stock_ids(vouchers.len()).await?;
        let seal = |(voucher, code_id): (&&VendorVoucher, _)| -> Result<NewVoucher, IntakeError> {
            Ok(NewVoucher {
                code_id,
                blind_index: vault.blind_index(&target.brand, &voucher.code),
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

//! What did vendors say last of a SKU? That they have none, as long as that is believed: then no order waits for it.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use crate::domain::product::Sku;

/// The SKUs that cannot be had from their vendors for now, as the last look found them.
#[derive(Debug, Default)]
pub struct LastWords(RwLock<HashSet<Sku>>);

impl LastWords {
    /// Whether the vendor's last word is that it has none.
    #[must_use]
    pub fn out_of_stock(&self, sku: &Sku) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(sku)
    }

    /// All of them, in place of those before.
    pub(super) fn replace(&self, skus: impl IntoIterator<Item = Sku>) {
        let skus = skus.into_iter().collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = skus;
    }
}

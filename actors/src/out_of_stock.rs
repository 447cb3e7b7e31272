//! SKUs that their vendors recently reported as out of stock; orders do not wait for these.

use std::collections::HashSet;

use parking_lot::RwLock;
use vouchsafe_domain::product::Sku;

/// The out-of-stock SKUs as of the last poll.
#[derive(Debug, Default)]
pub struct OutOfStockSkus(RwLock<HashSet<Sku>>);

impl OutOfStockSkus {
    /// Whether the vendor reported the SKU as out of stock.
    #[must_use]
    pub fn contains(&self, sku: &Sku) -> bool {
        let known = self.0.read();
        known.contains(sku)
    }

    /// Replaces the whole set.
    pub(crate) fn replace(&self, skus: impl IntoIterator<Item = Sku>) {
        let skus = skus.into_iter().collect();
        *self.0.write() = skus;
    }
}

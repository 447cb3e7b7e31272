//! Catalogue in memory, shared by all requests.

use std::sync::Arc;

use parking_lot::RwLock;

use super::{Assortment, Catalogue};
use crate::product::Product;
use crate::scope::Scope;

/// The current catalogue. A change replaces it as a whole.
#[derive(Debug, Default)]
pub struct CurrentCatalogue(RwLock<Arc<Catalogue>>);

impl CurrentCatalogue {
    /// A snapshot of all products.
    #[must_use]
    pub fn current(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.read())
    }

    /// A snapshot of the products that a partner with this scope can order.
    #[must_use]
    pub fn assortment_for(&self, scope: Option<&Arc<Scope>>) -> Assortment {
        Assortment::new(self.current(), scope.cloned())
    }

    /// Replaces all products.
    pub fn replace(&self, catalogue: Catalogue) {
        *self.0.write() = Arc::new(catalogue);
    }

    /// Adds or replaces one product.
    pub fn put(&self, product: Product) {
        let mut current = self.0.write();
        *current = Arc::new(current.with_product(product));
    }
}

//! Response body of `GET /categories`.

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::category::Category;

/// A category of the catalogue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Category)]
pub struct CategoryBody {
    /// Identifies the category.
    pub category_id: String,
    /// Name of the category.
    name: String,
    /// Parent category.
    #[schema(required)]
    parent_id: Option<String>,
    /// Number of products in the category that you can order.
    product_count: usize,
}

impl CategoryBody {
    /// A category with this number of products that the partner can order.
    #[must_use]
    pub fn of(category: Category, product_count: usize) -> Self {
        Self {
            category_id: category.category_id,
            name: category.name,
            parent_id: category.parent_id,
            product_count,
        }
    }
}

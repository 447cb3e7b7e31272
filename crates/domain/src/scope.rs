//! Partner scope: the categories and products that a restricted partner may order.
//!
//! The type's JSON is stored in the database, shown in the audit log and sent on the wire.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::product::{MAX_SLUG_LENGTH, Product, ProductId, parse_slug};

/// Maximum number of entries in each list: an operator can still review them, and they are small compared
/// with the partner.
pub const MAX_SCOPE_ENTRIES: usize = 1_000;

/// The products of these categories and these single products. A category does not include its subcategories.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Whole categories.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub categories: BTreeSet<String>,
    /// Single products.
    #[serde(default)]
    #[schema(value_type = Vec<ProductId>)]
    pub products: BTreeSet<ProductId>,
}

impl Scope {
    /// Whether the product is in the scope.
    #[must_use]
    pub fn contains(&self, product: &Product) -> bool {
        self.products.contains(&product.product_id) || self.categories.contains(&product.category_id)
    }

    /// The first validation error, if any.
    #[must_use]
    pub fn validation_error(&self) -> Option<String> {
        if self.categories.len().max(self.products.len()) > MAX_SCOPE_ENTRIES {
            return Some(format!(
                "at most {MAX_SCOPE_ENTRIES} categories and {MAX_SCOPE_ENTRIES} products"
            ));
        }
        let unknown_form = self.categories.iter().any(|id| parse_slug(id) != Ok(id));
        unknown_form
            .then(|| format!("a category id has 1 to {MAX_SLUG_LENGTH} of a-z, 0-9, '-', '_' and '.'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn scope_limits_its_size_and_validates_category_ids() {
        assert_eq!(scope("{}"), Scope::default());
        assert_eq!(
            scope(r#"{"categories":["games"],"products":["card"]}"#).validation_error(),
            None
        );
        assert!(
            scope(r#"{"categories":["Not a slug"]}"#)
                .validation_error()
                .is_some()
        );
        let ids: Vec<String> = (0..=MAX_SCOPE_ENTRIES).map(|n| format!("p{n}")).collect();
        for list in ["categories", "products"] {
            let of = |ids: &[String]| scope(&serde_json::json!({ list: ids }).to_string());
            assert_eq!(of(&ids[1..]).validation_error(), None, "{list}");
            assert!(of(&ids).validation_error().is_some(), "{list}");
        }
    }
}

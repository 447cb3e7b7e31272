//! What a partner may order, where that is not everything: whole categories, and single products.
//!
//! The JSON of the type is what the database keeps, what the trail shows and what is on the wire: one spelling.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::product::{Product, ProductId, check_slug};

/// Most entries in each list: what an operator can still look through, and small beside the partner it belongs to.
pub const MAX_SCOPE_ENTRIES: usize = 1_000;

/// The products in these categories, and these products. A category stands for what is in it, not for what is in the
/// categories below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
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
    /// Whether the product is within.
    #[must_use]
    pub fn admits(&self, product: &Product) -> bool {
        self.products.contains(&product.product_id) || self.categories.contains(&product.category_id)
    }

    /// What is wrong with it, if something is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if self.categories.len().max(self.products.len()) > MAX_SCOPE_ENTRIES {
            return Some("at most 1000 categories and 1000 products");
        }
        let unknown_form = self.categories.iter().any(|id| check_slug(id).is_err());
        unknown_form.then_some("a category id has 1 to 64 of a-z, 0-9, '-', '_' and '.'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_scope_is_small_and_names_categories_by_their_ids() {
        assert_eq!(scope("{}"), Scope::default());
        assert_eq!(
            scope(r#"{"categories":["games"],"products":["card"]}"#).fault(),
            None
        );
        assert!(scope(r#"{"categories":["Not a slug"]}"#).fault().is_some());
        let ids: Vec<String> = (0..=MAX_SCOPE_ENTRIES).map(|n| format!("p{n}")).collect();
        for list in ["categories", "products"] {
            let of = |ids: &[String]| scope(&serde_json::json!({ list: ids }).to_string());
            assert_eq!(of(&ids[1..]).fault(), None, "{list}");
            assert!(of(&ids).fault().is_some(), "{list}");
        }
    }
}

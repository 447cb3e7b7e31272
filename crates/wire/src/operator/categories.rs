//! Request body of `/categories`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::category::Category;
use vouchsafe_domain::product::parse_slug;

use super::text::Name;
use crate::error_body::InvalidRequest;

/// Definition of a category.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct CategoryRequest {
    /// Display name.
    #[arg(long)]
    name: Name,
    /// ID of the parent category.
    #[serde(default)]
    #[arg(long = "parent", value_name = "CATEGORY")]
    parent_id: Option<String>,
}

impl CategoryRequest {
    /// The category with this id.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an invalid id.
    pub fn into_category(self, category_id: &str) -> Result<Category, InvalidRequest> {
        let slug = |field, id: &str| {
            let slug = parse_slug(id).map(ToOwned::to_owned);
            slug.map_err(|error| InvalidRequest::field(field, error.to_string()))
        };
        Ok(Category {
            category_id: slug("category_id", category_id)?,
            name: self.name.into(),
            parent_id: self.parent_id.map(|id| slug("parent_id", &id)).transpose()?,
        })
    }
}

//! Filter of operators' list of products.

use serde::{Deserialize, Serialize};

use crate::text_schema::FilterText;

/// Filter of products; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct ProductSearch {
    /// Filter by a part of the ID, name or brand. ASCII letters match in either case.
    #[param(value_type = Option<FilterText>, inline, example = "acme")]
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Filter by category.
    #[param(value_type = Option<FilterText>, inline, example = "gaming")]
    #[arg(long = "category", value_name = "CATEGORY_ID")]
    pub category_id: Option<String>,
    /// Filter by vendor.
    #[param(value_type = Option<FilterText>, inline, example = "acme-cards")]
    #[arg(long, value_name = "VENDOR_ID")]
    pub vendor: Option<String>,
    /// Filter by whether the product is no longer sold.
    #[param(inline)]
    #[arg(long, value_name = "BOOL")]
    pub discontinued: Option<bool>,
}

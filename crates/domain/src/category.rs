//! Catalogue categories: a tree with an optional parent per category.

use serde::Serialize;

/// A category of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct Category {
    /// Id, chosen by the operator.
    pub category_id: String,
    /// Display name.
    pub name: String,
    /// Id of the parent category; null at the top level.
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub parent_id: Option<String>,
}

//! Catalogue categories: a tree with an optional parent per category.

use serde::Serialize;

/// A category of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct Category {
    /// Id, chosen by the operator.
    pub category_id: String,
    /// Display name.
    pub name: String,
    /// Id of the parent category; null at the top level.
    #[schema(required)]
    pub parent_id: Option<String>,
}

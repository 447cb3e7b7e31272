//! A page of the documentation.

use maud::Markup;

/// A page of the site.
#[derive(Default)]
pub(super) struct Page {
    /// Path below `/docs/`; empty for the overview.
    pub(super) path: String,
    pub(super) name: String,
    /// HTTP method of an endpoint's page.
    pub(super) method: Option<&'static str>,
    /// What the search finds besides the text, such as `GET /orders`.
    pub(super) keywords: String,
    /// Group in the navigation. Pages of a group follow each other.
    pub(super) group: String,
    pub(super) content: Markup,
    /// Examples in the right column.
    pub(super) examples: Option<Markup>,
}

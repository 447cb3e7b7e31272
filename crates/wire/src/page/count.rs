//! Counts of lists: the `count` parameter, and the requests that answer it.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Entries that a list counts at most. A count reads as many; only that of orders reads no entries.
pub const MAX_COUNT: usize = 10_000;

/// Count of the entries of a list that match its filters.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct CountParameter {
    /// Whether the page says how many entries match the filters.
    #[param(inline)]
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        help = "Print how many entries match the filters, up to 10,000"
    )]
    pub count: Option<bool>,
}

/// Whether a parameter of a list concerns the page and not which entries match.
#[must_use]
pub fn is_page_parameter(name: &str) -> bool {
    matches!(name, "limit" | "cursor" | "count")
}

/// What a request wants of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListPurpose {
    #[default]
    Page,
    /// Only the count. Its response is for the service itself.
    Count,
    /// A page that also has this count; `None`: more than [`MAX_COUNT`].
    CountedPage(Option<usize>),
}

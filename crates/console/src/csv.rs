//! Downloads of lists as CSV: the paths of the operator API below `/csv`, because a link cannot ask for a
//! media type.

use maud::{Markup, html};
use vouchsafe_wire::operator::OPERATIONS;
use vouchsafe_wire::page::is_page_parameter;

use crate::template;

const PREFIX: &str = "/csv";

/// The paths of the downloads, with placeholders.
pub fn csv_paths() -> impl Iterator<Item = String> {
    let lists = OPERATIONS.into_iter().flatten().filter(|route| route.is_list);
    lists.map(|route| format!("{PREFIX}{}", route.path))
}

/// The list of the operator API, below `/admin/v1`, whose download has this path.
#[must_use]
pub fn list_of_csv(path: &str) -> Option<&str> {
    path.strip_prefix(PREFIX)
}

/// A link to the whole list of which `target` of the API is a page.
pub(crate) fn download_link(target: &str) -> Markup {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut filters = template::pairs(query.as_bytes());
    filters.retain(|(name, _)| !is_page_parameter(name));
    let query = template::query(&filters);
    let separator = if query.is_empty() { "" } else { "?" };
    html! { a href={ (PREFIX) (path) (separator) (query) } download { "Download CSV" } }
}

//! Query and body of `GET /search`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::identifier::normalize_stored;
use vouchsafe_domain::search::{MAX_RESULTS, SearchResult};
use vouchsafe_domain::text_schema::{FilterText, MAX_FILTER_BYTES};

use crate::page::is_storable_text;

/// Query of a search.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// ID of an object or its first digits, at least four of them; a part of the name of a partner, product,
    /// category, vendor or operator; or reference of an order, or the trace ID of the request that placed it,
    /// also in a whole `traceparent`.
    #[param(value_type = FilterText, inline, example = "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f")]
    #[arg(value_name = "ID_OR_NAME")]
    pub q: SearchText,
}

/// A text to search for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SearchText(String);

#[derive(Debug, thiserror::Error)]
#[error("expected 1 to {MAX_FILTER_BYTES} bytes without NUL characters")]
pub struct InvalidSearchText;

impl FromStr for SearchText {
    type Err = InvalidSearchText;

    fn from_str(text: &str) -> Result<Self, InvalidSearchText> {
        let is_storable = is_storable_text(text.trim(), MAX_FILTER_BYTES);
        let text = &*normalize_stored(text);
        let is_valid = is_storable && !text.is_empty() && text.len() <= MAX_FILTER_BYTES;
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidSearchText)
    }
}

impl TryFrom<String> for SearchText {
    type Error = InvalidSearchText;

    fn try_from(text: String) -> Result<Self, InvalidSearchText> {
        text.parse()
    }
}

impl From<SearchText> for String {
    fn from(text: SearchText) -> Self {
        text.0
    }
}

/// Results of a search.
#[derive(Serialize, ToSchema)]
pub struct SearchResults {
    /// Objects whose ID begins with the text, newest first, or objects with the text in their name; then
    /// orders with the trace ID or the reference, newest first.
    data: Vec<SearchResult>,
    /// Whether there are more.
    has_more: bool,
}

impl SearchResults {
    /// The first [`MAX_RESULTS`] results.
    #[must_use]
    pub fn of(mut found: Vec<SearchResult>) -> Self {
        let has_more = found.len() > MAX_RESULTS;
        found.truncate(MAX_RESULTS);
        Self {
            data: found,
            has_more,
        }
    }
}

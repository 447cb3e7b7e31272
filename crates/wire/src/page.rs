//! Cursor pagination of lists: the `limit` and `cursor` parameters, filters, and the response body.
//!
//! A cursor holds the key of the last entry of a page and a hash of list and filters, so it is valid for no other list. It
//! grants no access: handlers take the partner from authentication, never from the cursor.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error_body::{FieldError, InvalidRequest};
use crate::error_code::Code;

/// Entries of a page without `limit` (contract §3).
pub const DEFAULT_LIMIT: usize = 25;

/// Maximum entries of a page (contract §3).
pub const MAX_LIMIT: usize = 100;

/// Maximum bytes of a filter value: enough for 128 characters of any script and for every id.
pub const MAX_FILTER_BYTES: usize = 512;

/// Maximum bytes of a key in a cursor. The longest one lists a sequence number per wallet of a partner (one per currency).
const MAX_CURSOR_KEY_BYTES: usize = 8_192;

/// Bytes of the truncated hash over list and filters.
const FILTER_HASH_BYTES: usize = 8;

/// A page of a list on the wire (contract §3).
#[derive(Debug, Serialize)]
pub struct PageBody<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// The requested page of a list and its filters.
#[derive(Debug)]
pub struct PageRequest {
    limit: usize,
    after: Option<String>,
    list: String,
    filters: Vec<(String, String)>,
}

impl PageRequest {
    /// Parses `limit`, `cursor` and the given filters from the query string. `list` is the path of the list.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an unknown or repeated parameter, a limit out of range or a filter that is not valid text,
    /// `INVALID_CURSOR` for a cursor of another list or other filters.
    pub fn parse(list: &str, query: &str, filters: &[&str]) -> Result<Self, InvalidRequest> {
        let mut page = Self {
            limit: DEFAULT_LIMIT,
            after: None,
            list: list.to_owned(),
            filters: Vec::new(),
        };
        let mut cursor = None;
        for (name, value) in query_pairs(query)? {
            match name.as_str() {
                "limit" => page.limit = parse_limit(&value)?,
                "cursor" => cursor = Some(value),
                known if filters.contains(&known) => {
                    check_filter(known, &value)?;
                    page.filters.push((name, value));
                }
                _ => return Err(InvalidRequest::field(name, "unknown parameter; remove it")),
            }
        }
        page.filters.sort();
        page.after = cursor.map(|cursor| page.decode_cursor(&cursor)).transpose()?;
        Ok(page)
    }

    /// Maximum number of entries on the page.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Number of entries to fetch: one more than the page has, to see whether another page follows.
    #[must_use]
    pub const fn fetch_limit(&self) -> usize {
        self.limit + 1
    }

    /// The key in the cursor: the page begins after the entry with this key.
    ///
    /// # Errors
    /// `INVALID_CURSOR` if the key does not parse.
    pub fn after<K: FromStr>(&self) -> Result<Option<K>, InvalidRequest> {
        let key = self.after.as_deref().map(str::parse).transpose();
        key.map_err(|_| invalid_cursor())
    }

    /// The text of a filter.
    #[must_use]
    pub fn filter(&self, name: &str) -> Option<&str> {
        let found = self.filters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The parsed value of a filter.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if the value does not parse.
    pub fn parsed_filter<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, InvalidRequest> {
        let value = self.filter(name).map(str::parse).transpose();
        value.map_err(|error: T::Err| InvalidRequest::field(name, error.to_string()))
    }

    /// The value of a filter with a closed set of values.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for any other value.
    pub fn enum_filter<T: Copy>(
        &self,
        name: &str,
        all: &[T],
        label: fn(T) -> &'static str,
    ) -> Result<Option<T>, InvalidRequest> {
        let Some(value) = self.filter(name) else {
            return Ok(None);
        };
        let found = all.iter().copied().find(|one| label(*one) == value);
        let labels = || all.iter().map(|one| label(*one)).collect::<Vec<_>>().join(", ");
        found
            .map(Some)
            .ok_or_else(|| InvalidRequest::field(name, format!("expected one of {}", labels())))
    }

    /// The response body. `entries` holds up to [`Self::fetch_limit`] entries; the extra one is dropped and sets `has_more`.
    pub fn body<T>(&self, mut entries: Vec<T>, key: impl Fn(&T) -> String) -> PageBody<T> {
        let has_more = entries.len() > self.limit;
        entries.truncate(self.limit);
        let next = entries.last().filter(|_| has_more).map(key);
        self.body_with_next(entries, next)
    }

    /// The response body with these entries, and the key of the cursor if another page follows.
    pub fn body_with_next<T>(&self, entries: Vec<T>, next: Option<impl ToString>) -> PageBody<T> {
        PageBody {
            data: entries,
            has_more: next.is_some(),
            next_cursor: next.map(|key| self.encode_cursor(&key.to_string())),
        }
    }

    fn encode_cursor(&self, key: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.filter_hash()[..], key.as_bytes()].concat())
    }

    fn decode_cursor(&self, cursor: &str) -> Result<String, InvalidRequest> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid_cursor())?;
        let key = bytes
            .strip_prefix(&self.filter_hash()[..])
            .and_then(|key| std::str::from_utf8(key).ok())
            .filter(|key| is_storable_text(key, MAX_CURSOR_KEY_BYTES));
        key.map(ToOwned::to_owned).ok_or_else(invalid_cursor)
    }

    fn filter_hash(&self) -> [u8; FILTER_HASH_BYTES] {
        let filters = self.filters.iter().flat_map(|(name, value)| [name, value]);
        let mut hash = Sha256::new();
        for part in [&self.list].into_iter().chain(filters) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let mut short = [0; FILTER_HASH_BYTES];
        short.copy_from_slice(&hash.finalize()[..FILTER_HASH_BYTES]);
        short
    }
}

/// Whether Postgres can store the value as text.
fn is_storable_text(value: &str, max: usize) -> bool {
    value.len() <= max && !value.contains('\0')
}

fn check_filter(name: &str, value: &str) -> Result<(), InvalidRequest> {
    if is_storable_text(value, MAX_FILTER_BYTES) {
        return Ok(());
    }
    let message = format!("expected at most {MAX_FILTER_BYTES} bytes without NUL characters");
    Err(InvalidRequest::field(name, message))
}

fn invalid_cursor() -> InvalidRequest {
    let message =
        "the cursor is invalid or belongs to another list or other filters; start again without `cursor`";
    InvalidRequest::new(Code::InvalidCursor, message)
}

fn parse_limit(value: &str) -> Result<usize, InvalidRequest> {
    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| InvalidRequest::field("limit", format!("expected 1 to {MAX_LIMIT}")))
}

/// Splits a query string; a name may occur more than once.
///
/// # Errors
/// `VALIDATION_FAILED` if it does not consist of `name=value` pairs.
pub fn split_pairs(query: &str) -> Result<Vec<(String, String)>, InvalidRequest> {
    serde_urlencoded::from_str(query).map_err(|_| InvalidRequest::field("query", "expected name=value pairs"))
}

fn query_pairs(query: &str) -> Result<Vec<(String, String)>, InvalidRequest> {
    let pairs = split_pairs(query)?;
    let repeated = |(index, (name, _)): (usize, &(String, String))| {
        pairs[..index]
            .iter()
            .any(|(earlier, _)| earlier == name)
            .then(|| name.clone())
    };
    let duplicate = pairs.iter().enumerate().find_map(repeated);
    match duplicate {
        Some(field) => Err(InvalidRequest::fields(vec![FieldError {
            field,
            message: "given more than once".to_owned(),
        }])),
        None => Ok(pairs),
    }
}

#[cfg(test)]
mod tests;

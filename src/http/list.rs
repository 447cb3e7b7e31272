//! What every list has in common: its envelope, its `limit`, its filters, its opaque cursor.
//!
//! Rule: a cursor says after which entry the next page begins, and carries a hash of its list and filters, so that it is
//! good for no other. It gives no right: whose entries are listed is never taken from it.

use std::fmt::Display;
use std::str::FromStr;

use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::errors::{ApiError, Code, Detail};

/// How many a page has unless `limit` says otherwise (contract §3).
pub(crate) const DEFAULT_LIMIT: usize = 25;

/// Most that a page has (contract §3).
pub(crate) const MAX_LIMIT: usize = 100;

/// Longest value of a filter: enough for 128 characters of any script and for every id. Bytes.
pub(crate) const MAX_FILTER: usize = 512;

/// Longest key that a cursor carries: a number for each wallet of a partner, of which there is one a currency. Bytes.
const MAX_KEY: usize = 8_192;

/// How much of the hash over list and filters a cursor carries. Bytes.
const FILTER_HASH: usize = 8;

/// A page on the wire (contract §3).
#[derive(Debug, Serialize)]
pub struct Envelope<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// Which page of a list is asked for, under which filters.
#[derive(Debug)]
pub struct Page {
    limit: usize,
    after: Option<String>,
    list: String,
    filters: Vec<(String, String)>,
}

impl Page {
    /// Reads `limit`, `cursor` and the filters of this list from the query; anything else is refused.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an unknown or repeated parameter, a limit out of range or a filter that is no text,
    /// `INVALID_CURSOR` for a cursor that is not of this list with these filters.
    pub fn read(request: &HttpRequest, filters: &[&str]) -> Result<Self, ApiError> {
        Self::of(request.path(), pairs_of(request.query_string())?, filters)
    }

    fn of(list: &str, pairs: Vec<(String, String)>, filters: &[&str]) -> Result<Self, ApiError> {
        let mut page = Self {
            limit: DEFAULT_LIMIT,
            after: None,
            list: list.to_owned(),
            filters: Vec::new(),
        };
        let mut cursor = None;
        for (name, value) in pairs {
            match name.as_str() {
                "limit" => page.limit = parse_limit(&value)?,
                "cursor" => cursor = Some(value),
                known if filters.contains(&known) => {
                    check(known, &value)?;
                    page.filters.push((name, value));
                }
                _ => return Err(ApiError::invalid(name, "this list has no such parameter")),
            }
        }
        page.filters.sort();
        page.after = cursor.map(|cursor| page.open(&cursor)).transpose()?;
        Ok(page)
    }

    /// How many are shown.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// How many to fetch: one more than are shown, which says whether there are more.
    #[must_use]
    pub const fn fetch(&self) -> usize {
        self.limit + 1
    }

    /// After which entry: what its key was.
    ///
    /// # Errors
    /// `INVALID_CURSOR` for what is no key of this list.
    pub fn after<K: FromStr>(&self) -> Result<Option<K>, ApiError> {
        let key = self.after.as_deref().map(str::parse).transpose();
        key.map_err(|_| foreign_cursor())
    }

    /// The value of a filter.
    #[must_use]
    pub fn filter(&self, name: &str) -> Option<&str> {
        let found = self.filters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a filter that is more than text.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for what cannot be read.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let value = self.filter(name).map(str::parse).transpose();
        value.map_err(|error: T::Err| ApiError::invalid(name, error.to_string()))
    }

    /// The value of a filter that is one of some words.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for another one.
    pub fn one_of<T: Copy>(
        &self,
        name: &str,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.filter(name) else {
            return Ok(None);
        };
        let found = all.iter().copied().find(|one| word(*one) == value);
        let words = || all.iter().map(|one| word(*one)).collect::<Vec<_>>().join(", ");
        found
            .map(Some)
            .ok_or_else(|| ApiError::invalid(name, format!("expected one of {}", words())))
    }

    /// The page: `entries` has up to one more than is shown, and the one too many says that there are more.
    pub fn envelope<T>(&self, mut entries: Vec<T>, key: impl Fn(&T) -> String) -> Envelope<T> {
        let has_more = entries.len() > self.limit;
        entries.truncate(self.limit);
        let next = entries.last().filter(|_| has_more).map(key);
        self.ending(entries, next)
    }

    /// The page with these entries, and the key by which the next one begins, if there is one.
    pub fn ending<T>(&self, entries: Vec<T>, next: Option<impl ToString>) -> Envelope<T> {
        Envelope {
            data: entries,
            has_more: next.is_some(),
            next_cursor: next.map(|key| self.seal(&key.to_string())),
        }
    }

    /// The page as an answer.
    pub fn answer<T: Serialize>(&self, entries: Vec<T>, key: impl Fn(&T) -> String) -> HttpResponse {
        HttpResponse::Ok().json(self.envelope(entries, key))
    }

    fn seal(&self, key: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.filter_hash()[..], key.as_bytes()].concat())
    }

    fn open(&self, cursor: &str) -> Result<String, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| foreign_cursor())?;
        let key = bytes
            .strip_prefix(&self.filter_hash()[..])
            .and_then(|key| std::str::from_utf8(key).ok())
            .filter(|key| is_text(key, MAX_KEY));
        key.map(ToOwned::to_owned).ok_or_else(foreign_cursor)
    }

    fn filter_hash(&self) -> [u8; FILTER_HASH] {
        let filters = self.filters.iter().flat_map(|(name, value)| [name, value]);
        let mut hash = Sha256::new();
        for part in [&self.list].into_iter().chain(filters) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let mut short = [0; FILTER_HASH];
        short.copy_from_slice(&hash.finalize()[..FILTER_HASH]);
        short
    }
}

/// What the database takes for a text.
fn is_text(value: &str, max: usize) -> bool {
    value.len() <= max && !value.contains('\0')
}

fn check(name: &str, value: &str) -> Result<(), ApiError> {
    if is_text(value, MAX_FILTER) {
        return Ok(());
    }
    let message = format!("expected at most {MAX_FILTER} bytes, none of them NUL");
    Err(ApiError::invalid(name, message))
}

fn foreign_cursor() -> ApiError {
    let message = "the cursor belongs to another list or other filters; begin without one";
    ApiError::new(Code::InvalidCursor, message)
}

fn parse_limit(value: &str) -> Result<usize, ApiError> {
    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| ApiError::invalid("limit", format!("expected 1 to {MAX_LIMIT}")))
}

fn pairs_of(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = actix_web::web::Query::<Vec<(String, String)>>::from_query(query);
    let pairs = pairs
        .map_err(|_| ApiError::invalid("query", "expected name=value pairs"))?
        .into_inner();
    let repeated = |(index, (name, _)): (usize, &(String, String))| {
        pairs[..index]
            .iter()
            .any(|(earlier, _)| earlier == name)
            .then(|| name.clone())
    };
    let wrong = pairs.iter().enumerate().find_map(repeated);
    match wrong {
        Some(field) => Err(ApiError::invalid_fields(vec![Detail {
            field,
            message: "given more than once".to_owned(),
        }])),
        None => Ok(pairs),
    }
}

#[cfg(test)]
mod tests;

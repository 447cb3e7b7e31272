//! Cursor pagination of lists: the `limit` and `cursor` parameters, filters, and the response body.
//!
//! A cursor holds the key of the last entry of a page and a hash of list and filters, so it is valid for no
//! other list. It grants no access: handlers take the partner from authentication, never from the cursor.

mod count;

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::{RefOr, Schema};
use vouchsafe_domain::period::{Period, parse_timestamp};
use vouchsafe_domain::text_schema::MAX_FILTER_BYTES;

use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::ListFilter;
use crate::limit::PageLimit;
use crate::query;

pub use self::count::{CountParameter, ListPurpose, MAX_COUNT, is_page_parameter};

/// Maximum bytes of a key in a cursor. The longest one lists a sequence number per wallet of a partner (one
/// per currency).
const MAX_CURSOR_KEY_BYTES: usize = 8_192;

/// Bytes of the entries of a page, unless one entry alone has more. A page of 100 orders with 1,000 vouchers
/// each would have 15 MB, which a client that reads slowly keeps in memory.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Entries that a list with large ones fetches at once: two steps fill the default page, and 16 orders with
/// 1,000 vouchers each have 2.4 MB. Steps do not grow after small entries, because large ones may follow.
const STEP: usize = 16;

/// Bytes of the truncated hash over list and filters.
const FILTER_HASH_BYTES: usize = 8;

/// Limit and position of a page.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct PageParameters {
    /// Maximum number of entries on the page.
    #[serde(default)]
    #[param(inline, required = false)]
    #[arg(long, value_name = "N", default_value_t = PageLimit::HIGHEST, help = PageLimit::help("entries"))]
    limit: PageLimit,
    /// `next_cursor` of the previous page. It is valid only for the same list with the same filters.
    // A cursor is base64url, which may begin with a hyphen.
    #[arg(
        long,
        allow_hyphen_values = true,
        help = "Cursor of the next page, from the output of the previous one"
    )]
    #[param(min_length = 1)]
    cursor: Option<String>,
}

impl PageParameters {
    /// The parameters of a list with this filter.
    #[must_use]
    pub fn of<F: ListFilter>() -> Vec<Parameter> {
        let mut parameters = Self::into_params(|| None);
        let limit = parameters.iter_mut().find(|parameter| parameter.name == "limit");
        if let Some(limit) = limit
            && let Some(RefOr::T(Schema::Object(schema))) = &mut limit.schema
        {
            schema.default = F::DEFAULT_LIMIT.map(Into::into);
            if F::DEFAULT_LIMIT.is_none() {
                limit.description = Some(
                    "Maximum number of entries on the page; without it, the list is complete.".to_owned(),
                );
            }
        }
        parameters
    }
}

/// A page of a list on the wire (contract §3).
#[derive(Debug, Serialize)]
pub struct PageBody {
    data: Vec<Box<RawValue>>,
    has_more: bool,
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Option<usize>>,
}

/// The serialized entries of a page, up to [`MAX_PAGE_BYTES`].
#[derive(Debug, Default)]
pub struct PageEntries {
    data: Vec<Box<RawValue>>,
    bytes: usize,
}

impl PageEntries {
    /// Adds an entry if it fits; the first one always does. Returns whether it was added.
    ///
    /// # Errors
    /// If the entry cannot be serialized, which is a bug.
    pub fn push<T: Serialize>(&mut self, entry: &T) -> Result<bool, serde_json::Error> {
        let json = to_raw_value(entry)?;
        let bytes = self.bytes + json.get().len();
        let fits = bytes <= MAX_PAGE_BYTES || self.data.is_empty();
        if fits {
            self.bytes = bytes;
            self.data.push(json);
        }
        Ok(fits)
    }
}

/// The requested page of a list.
#[derive(Debug)]
pub struct PageRequest {
    limit: usize,
    after: Option<String>,
    filter_hash: [u8; FILTER_HASH_BYTES],
    purpose: ListPurpose,
}

impl PageRequest {
    /// Parses the query string of a list, with its filter. `list` is the path of the list.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an unknown or repeated parameter, a limit out of range or a filter that does
    /// not parse, `INVALID_CURSOR` for a cursor of another list or other filters.
    pub fn parse<F: ListFilter>(list: &str, query: &str) -> Result<(Self, F), InvalidRequest> {
        let is_page_parameter = |(name, _): &(String, String)| name == "limit" || name == "cursor";
        let (page, mut filters): (query::Pairs, query::Pairs) =
            query::split(query)?.into_iter().partition(is_page_parameter);
        filters.iter_mut().for_each(capitalize_code);
        filters.sort();
        let has_limit = page.iter().any(|(name, _)| name == "limit");
        let PageParameters { limit, cursor } = query::parse(&page)?;
        let limit = Some(limit.get()).filter(|_| has_limit).or(F::DEFAULT_LIMIT);
        check_filters(&filters)?;
        let filter = query::parse(&filters)?;
        check_period(&filters)?;
        let filter_hash = hash_filters(list, &filters);
        let after = cursor.map(|cursor| decode_cursor(&cursor, filter_hash));
        let page = Self {
            limit: limit.unwrap_or(usize::MAX),
            after: after.transpose()?,
            filter_hash,
            purpose: ListPurpose::Page,
        };
        Ok((page, filter))
    }

    /// The same page for another purpose.
    #[must_use]
    pub fn with_purpose(self, purpose: ListPurpose) -> Self {
        let limit = if purpose == ListPurpose::Count {
            MAX_COUNT
        } else {
            self.limit
        };
        Self {
            limit,
            purpose,
            ..self
        }
    }

    /// The most entries to count, and one more, if only their count is asked for.
    #[must_use]
    pub fn count_limit(&self) -> Option<usize> {
        (self.purpose == ListPurpose::Count).then_some(MAX_COUNT + 1)
    }

    /// The response body with a count up to [`Self::count_limit`].
    #[must_use]
    pub fn body_of_count(&self, count: usize) -> PageBody {
        PageBody {
            data: Vec::new(),
            has_more: false,
            next_cursor: None,
            count: Some(Some(count).filter(|count| *count <= MAX_COUNT)),
        }
    }

    /// Maximum number of entries on the page.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Number of entries to fetch: one more than the page has, to see whether another page follows.
    #[must_use]
    pub const fn fetch_limit(&self) -> usize {
        self.limit.saturating_add(1)
    }

    /// The key in the cursor: the page begins after the entry with this key.
    ///
    /// # Errors
    /// `INVALID_CURSOR` if the key does not parse.
    pub fn after<K: FromStr>(&self) -> Result<Option<K>, InvalidRequest> {
        let key = self.after.as_deref().map(str::parse).transpose();
        key.map_err(|_| invalid_cursor())
    }

    /// The response body. `entries` holds up to [`Self::fetch_limit`] entries; the extra one is dropped and
    /// sets `has_more`.
    ///
    /// # Errors
    /// If an entry cannot be serialized, which is a bug.
    pub fn body<T: Serialize>(
        &self,
        mut entries: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<PageBody, serde_json::Error> {
        if self.count_limit().is_some() {
            return Ok(self.body_of_count(entries.len()));
        }
        let has_more = entries.len() > self.limit;
        entries.truncate(self.limit);
        self.body_of_part(&entries, has_more, |entries| entries.last().map(key))
    }

    /// The response body with these entries, or as many of them as fit into [`MAX_PAGE_BYTES`], but at least
    /// one. `has_more`: others follow after them. `key` returns the key of the cursor after these entries.
    ///
    /// # Errors
    /// If an entry cannot be serialized, which is a bug.
    pub fn body_of_part<T: Serialize>(
        &self,
        entries: &[T],
        mut has_more: bool,
        key: impl FnOnce(&[T]) -> Option<String>,
    ) -> Result<PageBody, serde_json::Error> {
        if self.count_limit().is_some() {
            return Ok(self.body_of_count(entries.len() + usize::from(has_more)));
        }
        let mut page = PageEntries::default();
        for entry in entries {
            if !page.push(entry)? {
                has_more = true;
                break;
            }
        }
        let next = if has_more {
            key(&entries[..page.data.len()])
        } else {
            None
        };
        Ok(self.body_with_next(page.data, next))
    }

    /// The response body of a list whose entries may be large. `fetch` returns up to so many entries after a
    /// key, `push` adds an entry to the page. It fetches in steps until the page is full, so that no more
    /// than the page and a step are in memory.
    ///
    /// # Errors
    /// `INVALID_CURSOR` if the key in the cursor does not parse; errors of `fetch` and `push`.
    pub async fn body_in_steps<T, K, E>(
        &self,
        mut fetch: impl AsyncFnMut(Option<K>, usize) -> Result<Vec<T>, E>,
        push: impl Fn(&mut PageEntries, &T) -> Result<bool, E>,
        key: impl Fn(&T) -> K,
    ) -> Result<PageBody, E>
    where
        K: FromStr + ToString + Clone,
        E: From<InvalidRequest>,
    {
        let mut page = PageEntries::default();
        let mut last: Option<K> = self.after()?;
        loop {
            let missing = self.fetch_limit() - page.data.len();
            let step = STEP.min(missing);
            let entries = fetch(last.clone(), step).await?;
            let is_end = entries.len() < step;
            for entry in &entries {
                if page.data.len() == self.limit || !push(&mut page, entry)? {
                    return Ok(self.body_with_next(page.data, last.map(|key| key.to_string())));
                }
                last = Some(key(entry));
            }
            if is_end {
                return Ok(self.body_with_next(page.data, None));
            }
        }
    }

    /// The response body with entries of limited size, and the key of the cursor if another page follows.
    ///
    /// # Errors
    /// If an entry cannot be serialized, which is a bug.
    pub fn body_of_small<T: Serialize>(
        &self,
        entries: &[T],
        next: Option<impl ToString>,
    ) -> Result<PageBody, serde_json::Error> {
        if self.count_limit().is_some() {
            return Ok(self.body_of_count(entries.len() + usize::from(next.is_some())));
        }
        let data = entries.iter().map(to_raw_value).collect::<Result<_, _>>()?;
        Ok(self.body_with_next(data, next.map(|key| key.to_string())))
    }

    fn body_with_next(&self, data: Vec<Box<RawValue>>, next: Option<String>) -> PageBody {
        PageBody {
            data,
            has_more: next.is_some(),
            next_cursor: next.map(|key| self.encode_cursor(&key)),
            count: match self.purpose {
                ListPurpose::CountedPage(count) => Some(count),
                ListPurpose::Page | ListPurpose::Count => None,
            },
        }
    }

    fn encode_cursor(&self, key: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.filter_hash[..], key.as_bytes()].concat())
    }
}

fn decode_cursor(cursor: &str, filter_hash: [u8; FILTER_HASH_BYTES]) -> Result<String, InvalidRequest> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid_cursor())?;
    let key = bytes
        .strip_prefix(&filter_hash[..])
        .and_then(|key| std::str::from_utf8(key).ok())
        .filter(|key| is_storable_text(key, MAX_CURSOR_KEY_BYTES));
    key.map(ToOwned::to_owned).ok_or_else(invalid_cursor)
}

/// Hash of a list and its filters in the order of their names.
fn hash_filters(list: &str, filters: &[(String, String)]) -> [u8; FILTER_HASH_BYTES] {
    let filters = filters.iter().flat_map(|(name, value)| [name.as_str(), value]);
    let mut hash = Sha256::new();
    for part in std::iter::once(list).chain(filters) {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let mut short = [0; FILTER_HASH_BYTES];
    short.copy_from_slice(&hash.finalize()[..FILTER_HASH_BYTES]);
    short
}

/// Whether Postgres can store the value as text.
pub(crate) fn is_storable_text(value: &str, max: usize) -> bool {
    value.len() <= max && !value.contains('\0')
}

/// Currencies and countries are accepted in either case.
fn capitalize_code((name, value): &mut (String, String)) {
    if name == "currency" || name == "country" {
        value.make_ascii_uppercase();
    }
}

fn check_filters(filters: &[(String, String)]) -> Result<(), InvalidRequest> {
    let is_invalid = |(_, value): &&(String, String)| !is_storable_text(value, MAX_FILTER_BYTES);
    let Some((name, _)) = filters.iter().find(is_invalid) else {
        return Ok(());
    };
    let message = format!("expected at most {MAX_FILTER_BYTES} bytes without NUL characters");
    Err(InvalidRequest::field(name, message))
}

/// A list of a time range that ends before it begins would say that there is nothing.
fn check_period(filters: &[(String, String)]) -> Result<(), InvalidRequest> {
    let bound = |wanted: &str| {
        let found = filters.iter().find(|(name, _)| name == wanted);
        found.and_then(|(_, value)| parse_timestamp(value))
    };
    let period = Period {
        from: bound("from"),
        to: bound("to"),
    };
    period
        .check()
        .map_err(|error| InvalidRequest::field("to", error.to_string()))
}

fn invalid_cursor() -> InvalidRequest {
    let message =
        "the cursor is invalid or belongs to another list or other filters; start again without `cursor`";
    InvalidRequest::new(Code::InvalidCursor, message)
}

#[cfg(test)]
mod tests;

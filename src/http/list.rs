//! What every list has in common: its envelope, its `limit`, its opaque cursor.

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

/// How much of the hash over list and filters a cursor carries. Bytes.
const FILTER_HASH: usize = 8;

#[derive(Debug, Serialize)]
struct Envelope<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// Which page of a list is asked for, under which filters.
#[derive(Debug)]
pub struct Page {
    /// How many.
    pub limit: usize,
    /// After which entry: what its `key` was.
    pub after: Option<String>,
    list: String,
    filters: Vec<(String, String)>,
}

impl Page {
    /// Reads `limit`, `cursor` and the filters of this list from the query; anything else is refused.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an unknown or repeated parameter or a limit out of range, `INVALID_CURSOR` for a cursor
    /// that is not of this list with these filters.
    pub fn read(request: &HttpRequest, filters: &[&str]) -> Result<Self, ApiError> {
        let pairs = query_pairs(request)?;
        let list = request.path().to_owned();
        let mut page = Self {
            limit: DEFAULT_LIMIT,
            after: None,
            list,
            filters: Vec::new(),
        };
        let mut cursor = None;
        for (name, value) in pairs {
            match name.as_str() {
                "limit" => page.limit = parse_limit(&value)?,
                "cursor" => cursor = Some(value),
                known if filters.contains(&known) => page.filters.push((name, value)),
                _ => return Err(ApiError::invalid(name, "this list has no such parameter")),
            }
        }
        page.filters.sort();
        page.after = cursor.map(|cursor| page.open(&cursor)).transpose()?;
        Ok(page)
    }

    /// The value of a filter.
    #[must_use]
    pub fn filter(&self, name: &str) -> Option<&str> {
        self.filters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The answer: `entries` has up to one more than `limit`, and the one too many says that there is more.
    pub fn answer<T: Serialize>(&self, mut entries: Vec<T>, key: impl Fn(&T) -> String) -> HttpResponse {
        let has_more = entries.len() > self.limit;
        entries.truncate(self.limit);
        let next_cursor = entries
            .last()
            .filter(|_| has_more)
            .map(|last| self.seal(&key(last)));
        HttpResponse::Ok().json(Envelope {
            data: entries,
            has_more,
            next_cursor,
        })
    }

    fn seal(&self, key: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.filter_hash()[..], key.as_bytes()].concat())
    }

    fn open(&self, cursor: &str) -> Result<String, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let key = bytes
            .as_deref()
            .and_then(|bytes| bytes.strip_prefix(&self.filter_hash()[..]));
        let key = key
            .and_then(|key| std::str::from_utf8(key).ok())
            .map(ToOwned::to_owned);
        let message = "the cursor belongs to another list or other filters; begin without one";
        key.ok_or_else(|| ApiError::new(Code::InvalidCursor, message))
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

fn parse_limit(value: &str) -> Result<usize, ApiError> {
    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| ApiError::invalid("limit", format!("expected 1 to {MAX_LIMIT}")))
}

fn query_pairs(request: &HttpRequest) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = actix_web::web::Query::<Vec<(String, String)>>::from_query(request.query_string());
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
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn read(query: &str) -> Result<Page, ApiError> {
        let request = TestRequest::with_uri(&format!("/list{query}")).to_http_request();
        Page::read(&request, &["currency", "country"])
    }

    #[test]
    fn limits_are_1_to_100() {
        assert_eq!(read("").unwrap().limit, 25);
        assert_eq!(read("?limit=100").unwrap().limit, 100);
        for query in [
            "?limit=0",
            "?limit=101",
            "?limit=-1",
            "?limit=x",
            "?limit=1&limit=2",
            "?colour=red",
        ] {
            assert_eq!(read(query).unwrap_err().code, Code::ValidationFailed, "{query}");
        }
    }

    #[test]
    fn a_cursor_is_bound_to_its_filters() {
        let cursor = read("?currency=USD&country=DE").unwrap().seal("entry-7");
        let same = read(&format!("?country=DE&currency=USD&cursor={cursor}")).unwrap();
        assert_eq!(same.after.as_deref(), Some("entry-7"));
        for query in
            ["?currency=EUR&country=DE", "?currency=USD", "?x=1"].map(|q| format!("{q}&cursor={cursor}"))
        {
            assert!(read(&query).is_err(), "{query}");
        }
        let other = TestRequest::with_uri(&format!("/other?country=DE&currency=USD&cursor={cursor}"))
            .to_http_request();
        assert_eq!(
            Page::read(&other, &["currency", "country"]).unwrap_err().code,
            Code::InvalidCursor
        );
        assert_eq!(read("?cursor=%21").unwrap_err().code, Code::InvalidCursor);
        assert_eq!(read("?cursor=AAAA").unwrap_err().code, Code::InvalidCursor);
    }
}

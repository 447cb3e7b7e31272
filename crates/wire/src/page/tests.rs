//! Unit and property tests of pages, filters and cursors.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::filter::{NoFilter, WholeList};
use crate::partner::products::ProductFilter;

#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
struct TestFilter {
    currency: Option<String>,
    country: Option<String>,
}

impl ListFilter for TestFilter {}

fn read(query: &str) -> Result<PageRequest, InvalidRequest> {
    let query = query.strip_prefix('?').unwrap_or(query);
    PageRequest::parse::<TestFilter>("/list", query).map(|(page, _)| page)
}

#[test]
fn limit_outside_1_to_100_is_rejected() {
    assert_eq!(read("").unwrap().fetch_limit(), 26);
    assert_eq!(read("?limit=100").unwrap().fetch_limit(), 101);
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
fn cursor_with_other_list_or_filters_is_rejected() {
    let cursor = read("?currency=USD&country=DE").unwrap().encode_cursor("entry-7");
    let same = read(&format!("?country=DE&currency=USD&cursor={cursor}")).unwrap();
    assert_eq!(same.after().unwrap(), Some("entry-7".to_owned()));
    let other_limit = read(&format!("?currency=USD&country=DE&limit=3&cursor={cursor}")).unwrap();
    assert_eq!(other_limit.after().unwrap(), Some("entry-7".to_owned()));
    for query in ["?currency=EUR&country=DE", "?currency=USD", "?x=1"].map(|q| format!("{q}&cursor={cursor}"))
    {
        assert!(read(&query).is_err(), "{query}");
    }
    let other = format!("country=DE&currency=USD&cursor={cursor}");
    let other = PageRequest::parse::<TestFilter>("/other", &other);
    assert_eq!(other.unwrap_err().code, Code::InvalidCursor);
    assert_eq!(read("?cursor=%21").unwrap_err().code, Code::InvalidCursor);
    assert_eq!(read("?cursor=AAAA").unwrap_err().code, Code::InvalidCursor);
}

#[test]
fn filter_too_long_or_with_nul_is_rejected() {
    let longest = "x".repeat(MAX_FILTER_BYTES);
    assert!(read(&format!("?country={longest}")).is_ok());
    for query in [format!("?country={longest}x"), "?country=a%00b".to_owned()] {
        assert_eq!(read(&query).unwrap_err().details[0].field, "country", "{query}");
    }
}

#[test]
fn extra_entry_sets_has_more_and_next_cursor() {
    let page = read("?limit=2").unwrap();
    let envelope = page.body(vec![9, 8, 7], ToString::to_string).unwrap();
    let next = read(&format!(
        "?limit=2&cursor={}",
        envelope.next_cursor.as_ref().unwrap()
    ))
    .unwrap();
    assert_eq!((data(&envelope), envelope.has_more), (json!([9, 8]), true));
    assert_eq!(next.after().unwrap(), Some(8));
    let last = next.body(vec![7], ToString::to_string).unwrap();
    assert_eq!(
        (data(&last), last.has_more, last.next_cursor),
        (json!([7]), false, None)
    );
}

fn data(page: &PageBody) -> Value {
    serde_json::to_value(&page.data).unwrap()
}

#[test]
fn page_ends_before_the_entry_that_exceeds_its_size() {
    let page = read("?limit=3").unwrap();
    // As JSON each has two bytes more.
    let half = "x".repeat(MAX_PAGE_BYTES / 2 - 2);
    let fits = page
        .body(vec![half.clone(), half.clone()], |_| "key".to_owned())
        .unwrap();
    assert_eq!((fits.data.len(), fits.has_more), (2, false));
    let entries = vec![half.clone(), half.clone() + "x", "last".to_owned()];
    let bounded = page.body(entries, |entry| entry.len().to_string()).unwrap();
    assert_eq!((bounded.data.len(), bounded.has_more), (1, true));
    let next = read(&format!("?cursor={}", bounded.next_cursor.unwrap())).unwrap();
    assert_eq!(next.after().unwrap(), Some(half.len()));
    // A larger entry has a page of its own: a list never stops.
    let alone = page
        .body(vec![half.repeat(3), half], |_| "key".to_owned())
        .unwrap();
    assert_eq!((alone.data.len(), alone.has_more), (1, true));
}

#[test]
fn list_without_limit_has_the_default_of_its_filter() {
    fn limit<F: ListFilter>(query: &str) -> usize {
        PageRequest::parse::<F>("/list", query).unwrap().0.limit()
    }
    assert_eq!(limit::<NoFilter>(""), 25);
    assert_eq!(
        (limit::<ProductFilter>(""), limit::<ProductFilter>("limit=7")),
        (100, 7)
    );
    assert_eq!(
        (limit::<WholeList>(""), limit::<WholeList>("limit=7")),
        (usize::MAX, 7)
    );
}

proptest! {
    #[test]
    fn cursor_round_trips_and_is_rejected_with_other_filters(
        currency in "[a-z]{0,8}",
        country in "[a-z]{0,8}",
        other in "[a-z]{0,8}",
        key in "[^\0]{0,40}",
    ) {
        let page = read(&format!("?currency={currency}&country={country}")).unwrap();
        let cursor = page.encode_cursor(&key);
        let next = |currency: &str, country: &str| {
            read(&format!("?cursor={cursor}&country={country}&currency={currency}"))
        };
        prop_assert_eq!(next(&currency, &country).unwrap().after().unwrap(), Some(key));
        if other != currency {
            prop_assert_eq!(next(&other, &country).unwrap_err().code, Code::InvalidCursor);
        }
        // An absent filter differs from an empty one.
        let without = format!("?cursor={cursor}&currency={currency}");
        prop_assert!(read(&without).is_err());
    }

    #[test]
    fn forged_cursor_is_rejected(cursor in "[A-Za-z0-9_-]{0,60}", limit in 1..=100_usize) {
        let refused = read(&format!("?limit={limit}&cursor={cursor}")).unwrap_err();
        prop_assert_eq!(refused.code, Code::InvalidCursor);
    }

    #[test]
    fn any_query_is_parsed_or_rejected(query in "\\PC{0,80}") {
        match read(&query) {
            Ok(page) => prop_assert!((1..=PageLimit::HIGHEST.get()).contains(&page.limit)),
            Err(error) => prop_assert!(error.code.status() < 500),
        }
    }
}

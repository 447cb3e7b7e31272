//! Unit and property tests of pages, filters and cursors.

use futures_util::FutureExt as _;
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

/// Reads a list of entries with these numbers of bytes as JSON, page by page. Returns the numbers of entries
/// of its pages, and the maximum of bytes that were fetched for one.
fn read_in_steps(sizes: &[usize], limit: usize) -> (Vec<usize>, usize) {
    let entries: Vec<(usize, String)> = sizes
        .iter()
        .map(|bytes| "x".repeat(bytes - 2))
        .enumerate()
        .collect();
    let (mut cursor, mut counts, mut max_fetched) = (String::new(), Vec::new(), 0);
    loop {
        let page = read(&format!("?limit={limit}{cursor}")).unwrap();
        let mut fetched = 0;
        let body = page.body_in_steps(
            async |after: Option<usize>, step| -> Result<_, InvalidRequest> {
                let rest = entries.iter().skip(after.map_or(0, |after| after + 1));
                let step: Vec<_> = rest.take(step).collect();
                fetched += step.iter().map(|(_, entry)| entry.len()).sum::<usize>();
                Ok(step)
            },
            |page, (_, entry)| Ok(page.push(entry).unwrap()),
            |(number, _)| *number,
        );
        let body = body.now_or_never().unwrap().unwrap();
        let bytes: usize = body.data.iter().map(|entry| entry.get().len()).sum();
        assert!(bytes <= MAX_PAGE_BYTES || body.data.len() == 1, "{bytes} bytes");
        counts.push(body.data.len());
        max_fetched = max_fetched.max(fetched);
        assert_eq!(body.has_more, body.next_cursor.is_some());
        let Some(next) = body.next_cursor else {
            return (counts, max_fetched);
        };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn page_in_steps_fetches_little_more_than_it_has() {
    let tenth = MAX_PAGE_BYTES / 10;
    let (counts, max_fetched) = read_in_steps(&[tenth; 100], 100);
    assert_eq!(counts, [10; 10]);
    assert!(max_fetched < 2 * MAX_PAGE_BYTES, "{max_fetched} bytes");
    let (counts, max_fetched) = read_in_steps(&[2 * MAX_PAGE_BYTES; 3], 100);
    assert_eq!(counts, [1; 3]);
    assert!(max_fetched <= STEP * 2 * MAX_PAGE_BYTES, "{max_fetched} bytes");
}

#[test]
fn page_in_steps_ends_at_its_limit_or_the_end_of_the_list() {
    for (entries, limit, expected) in [
        (0, 25, &[0][..]),
        (1, 1, &[1]),
        (2, 1, &[1, 1]),
        (9, 25, &[9]),
        (25, 25, &[25]),
        (26, 25, &[25, 1]),
        (230, 100, &[100, 100, 30]),
    ] {
        assert_eq!(
            read_in_steps(&vec![100; entries], limit).0,
            expected,
            "{entries} by {limit}"
        );
    }
    let half = MAX_PAGE_BYTES / 2;
    let sizes = [vec![100; 50], vec![half; 50]].concat();
    let (counts, max_fetched) = read_in_steps(&sizes, 100);
    assert_eq!(counts[..3], [51, 2, 2]);
    assert!(max_fetched <= STEP * half, "{max_fetched} bytes");
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

#[test]
fn count_is_exact_up_to_10000_and_null_above() {
    let counting = || read("").unwrap().with_purpose(ListPurpose::Count);
    assert_eq!(counting().fetch_limit(), 10_001);
    assert_eq!(counting().count_limit(), Some(10_001));
    for (entries, count) in [(0, json!(0)), (10_000, json!(10_000)), (10_001, Value::Null)] {
        let counted = counting().body(vec![1; entries], ToString::to_string).unwrap();
        let body = serde_json::to_value(&counted).unwrap();
        assert_eq!((&body["data"], &body["count"]), (&json!([]), &count), "{entries}");
        let page = read("limit=1")
            .unwrap()
            .with_purpose(ListPurpose::CountedPage((entries <= 10_000).then_some(entries)));
        let body = serde_json::to_value(page.body(vec![1], ToString::to_string).unwrap()).unwrap();
        assert_eq!((&body["data"], body.get("count")), (&json!([1]), Some(&count)));
    }
    let page = read("").unwrap();
    assert_eq!(page.count_limit(), None);
    let body = serde_json::to_value(page.body(vec![1], ToString::to_string).unwrap()).unwrap();
    assert_eq!(body.get("count"), None);
}

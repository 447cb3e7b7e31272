//! Pages, filters and cursors: what is read, what is refused, and what belongs together.

use actix_web::test::TestRequest;
use proptest::prelude::*;

use super::*;

fn read(query: &str) -> Result<Page, ApiError> {
    let request = TestRequest::with_uri(&format!("/list{query}")).to_http_request();
    Page::read(&request, &["currency", "country"])
}

#[test]
fn limits_are_1_to_100() {
    assert_eq!(read("").unwrap().fetch(), 26);
    assert_eq!(read("?limit=100").unwrap().fetch(), 101);
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
    assert_eq!(same.after().unwrap(), Some("entry-7".to_owned()));
    let other_limit = read(&format!("?currency=USD&country=DE&limit=3&cursor={cursor}")).unwrap();
    assert_eq!(other_limit.after().unwrap(), Some("entry-7".to_owned()));
    for query in ["?currency=EUR&country=DE", "?currency=USD", "?x=1"].map(|q| format!("{q}&cursor={cursor}"))
    {
        assert!(read(&query).is_err(), "{query}");
    }
    let other =
        TestRequest::with_uri(&format!("/other?country=DE&currency=USD&cursor={cursor}")).to_http_request();
    assert_eq!(
        Page::read(&other, &["currency", "country"]).unwrap_err().code,
        Code::InvalidCursor
    );
    assert_eq!(read("?cursor=%21").unwrap_err().code, Code::InvalidCursor);
    assert_eq!(read("?cursor=AAAA").unwrap_err().code, Code::InvalidCursor);
}

#[test]
fn a_filter_is_a_text_of_some_length() {
    let longest = "x".repeat(MAX_FILTER);
    assert!(read(&format!("?country={longest}")).is_ok());
    for query in [format!("?country={longest}x"), "?country=a%00b".to_owned()] {
        assert_eq!(read(&query).unwrap_err().details[0].field, "country", "{query}");
    }
}

#[test]
fn a_filter_is_read_or_named() {
    let page = read("?currency=25&country=b").unwrap();
    let word = |letter: char| if letter == 'a' { "a" } else { "b" };
    assert_eq!(page.parsed::<u32>("currency").unwrap(), Some(25));
    assert_eq!(page.one_of("country", &['a', 'b'], word).unwrap(), Some('b'));
    for refused in [
        page.parsed::<u32>("country").map(drop),
        page.one_of("country", &['a'], word).map(drop),
    ] {
        assert_eq!(refused.unwrap_err().details[0].field, "country");
    }
    assert_eq!(page.parsed::<u32>("absent").unwrap(), None);
    assert_eq!(page.one_of("absent", &['a'], word).unwrap(), None);
}

#[test]
fn the_entry_too_many_says_that_there_are_more() {
    let page = read("?limit=2").unwrap();
    let envelope = page.envelope(vec![9, 8, 7], ToString::to_string);
    let next = read(&format!("?limit=2&cursor={}", envelope.next_cursor.unwrap())).unwrap();
    assert_eq!((envelope.data, envelope.has_more), (vec![9, 8], true));
    assert_eq!(next.after().unwrap(), Some(8));
    let last = next.envelope(vec![7], ToString::to_string);
    assert_eq!(
        (last.data, last.has_more, last.next_cursor),
        (vec![7], false, None)
    );
}

proptest! {
    #[test]
    fn a_cursor_reads_back_and_is_good_for_no_other_filters(
        currency in "[a-z]{0,8}",
        country in "[a-z]{0,8}",
        other in "[a-z]{0,8}",
        key in "[^\0]{0,40}",
    ) {
        let page = read(&format!("?currency={currency}&country={country}")).unwrap();
        let cursor = page.seal(&key);
        let next = |currency: &str, country: &str| {
            read(&format!("?cursor={cursor}&country={country}&currency={currency}"))
        };
        prop_assert_eq!(next(&currency, &country).unwrap().after().unwrap(), Some(key));
        if other != currency {
            prop_assert_eq!(next(&other, &country).unwrap_err().code, Code::InvalidCursor);
        }
        // What is not given is another filter than what is empty.
        let without = format!("?cursor={cursor}&currency={currency}");
        prop_assert!(read(&without).is_err());
    }

    #[test]
    fn a_made_up_cursor_is_refused(cursor in "[A-Za-z0-9_-]{0,60}", limit in 1..=100_usize) {
        let refused = read(&format!("?limit={limit}&cursor={cursor}")).unwrap_err();
        prop_assert_eq!(refused.code, Code::InvalidCursor);
    }

    #[test]
    fn any_query_is_read_or_refused(query in "\\PC{0,80}") {
        match pairs_of(&query).and_then(|pairs| Page::of("/list", pairs, &["currency"])) {
            Ok(page) => prop_assert!((1..=MAX_LIMIT).contains(&page.limit)),
            Err(error) => prop_assert!(error.code.status() < 500),
        }
    }
}

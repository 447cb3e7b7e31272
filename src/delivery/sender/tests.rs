//! What a receiver may say and what becomes of it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::header::HeaderValue;
use time::macros::datetime;

use super::*;
use crate::access::environment::Environment;
use crate::delivery::resolver::HostLookup;

#[test]
fn a_receiver_may_ask_for_seconds_or_for_a_moment() {
    let now = datetime!(2026-11-20 12:00 UTC);
    for (text, expected) in [
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("Fri, 20 Nov 2026 12:00:30 GMT", Some(30)),
        ("Fri, 20 Nov 2026 11:00:00 GMT", None),
        ("soon", None),
        ("-1", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        assert_eq!(
            retry_after(&headers, now),
            expected.map(Duration::from_secs),
            "{text}"
        );
    }
}

#[test]
fn what_is_kept_of_an_answer_can_be_stored_and_shown() {
    assert_eq!(printable(b"ok\n\0\x1b[31m\xff"), "ok\n  [31m\u{fffd}");
}

#[tokio::test]
async fn a_name_that_is_public_first_and_private_later_is_refused_later() {
    let asked = Arc::new(AtomicUsize::new(0));
    let look_up: HostLookup = Arc::new(move |_| {
        let first = asked.fetch_add(1, Ordering::Relaxed) == 0;
        let address: IpAddr = if first { "1.1.1.1" } else { "127.0.0.1" }.parse().unwrap();
        Box::pin(async move { vec![address] })
    });
    let grounds = UrlPolicy::new(Environment::Production, &[]);
    let resolver = Resolver::new(grounds, look_up);
    assert!(resolver.resolve_host("shop.example", Some(443)).await.is_ok());
    let client = http_client::client_builder("http:")
        .unwrap()
        .dns_resolver(Arc::new(resolver))
        .build()
        .unwrap();
    let refused = client.post("http://shop.example:9/").send().await.unwrap_err();
    assert_eq!(fault_of_error(&refused), DeliveryFault::Forbidden);
}

//! Tests that every message can be split in one way, for parts near each boundary.

use proptest::prelude::*;

use super::*;

/// The owned parts of a request: timestamp, method, path, body.
type Tuple = (Vec<u8>, String, String, Vec<u8>);

fn accepted(tuple: &Tuple) -> Option<[Vec<u8>; 2]> {
    let (timestamp, method, path, body) = tuple;
    let request = SignedRequest { method, path, body };
    let framed = CanonicalRequest::new(Timestamp::parse(timestamp)?, request).ok()?;
    Some([framed.as_received().concat(), framed.without_prefix().concat()])
}

/// Every accepted request whose message equals these bytes, found by trying every boundary.
fn decodings(message: &[u8]) -> Vec<Tuple> {
    let mut decoded = Vec::new();
    for (a, b, c) in boundaries(message.len()).filter(|&(a, ..)| Timestamp::parse(&message[..a]).is_some()) {
        let (Ok(method), Ok(path)) = (
            std::str::from_utf8(&message[a..b]),
            std::str::from_utf8(&message[b..c]),
        ) else {
            continue;
        };
        for path in [path.to_owned(), format!("{API_PREFIX}{path}")] {
            let tuple = (
                message[..a].to_vec(),
                method.to_owned(),
                path,
                message[c..].to_vec(),
            );
            if accepted(&tuple).is_some_and(|messages| messages.iter().any(|m| m == message)) {
                decoded.push(tuple);
            }
        }
    }
    decoded
}

fn boundaries(len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..=len).flat_map(move |a| (a..=len).flat_map(move |b| (b..=len).map(move |c| (a, b, c))))
}

/// Strings built from boundary characters, so that near misses are frequent.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "{",
        "}",
        "api",
        "v1",
        "/api/v1",
        "orders",
        "POST",
        "GET",
        "DELETE",
        "PUT",
        "0",
        "1763640000",
        ".",
        "..",
        "_",
        "%7B",
        "?",
        " ",
        "a",
    ]);
    prop::collection::vec(piece, 0..4).prop_map(|parts| parts.concat())
}

fn tuples() -> impl Strategy<Value = Tuple> {
    let method = prop::sample::select(vec!["GET", "POST", "PUT", "DELETE", "PATCH", "post", ""]);
    let path = prop_oneof![pieces().prop_map(|tail| format!("/api/v1/a{tail}")), pieces()];
    let body = prop_oneof![
        Just(String::new()),
        pieces().prop_map(|tail| format!("{{{tail}")),
        pieces()
    ];
    let timestamp = prop_oneof![4 => Just("1763640000".to_owned()), 1 => "[0-9]{9,11}"];
    (timestamp, method, path, body).prop_map(|(timestamp, method, path, body)| {
        (timestamp.into_bytes(), method.to_owned(), path, body.into_bytes())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn accepted_requests_have_distinct_messages(tuple in tuples()) {
        for message in accepted(&tuple).into_iter().flatten() {
            prop_assert_eq!(decodings(&message), vec![tuple.clone()]);
        }
    }

    #[test]
    fn message_of_any_bytes_has_at_most_one_decoding(tail in pieces(), method in "GET|POST") {
        let message = format!("1763640000{method}/{tail}");
        prop_assert!(decodings(message.as_bytes()).len() <= 1);
    }

    #[test]
    fn timestamp_round_trips_or_is_refused(text in prop::collection::vec(any::<u8>(), 0..12), s in any::<i64>()) {
        if let Some(timestamp) = Timestamp::parse(&text) {
            prop_assert_eq!(timestamp.digits(), &text[..]);
        }
        if let Some(timestamp) = Timestamp::from_unix_s(s) {
            prop_assert_eq!(timestamp.unix_s(), s);
        }
    }
}

#[test]
fn decodings_of_a_valid_request_find_it() {
    let tuple = (
        b"1763640000".to_vec(),
        "POST".to_owned(),
        "/api/v1/orders".to_owned(),
        b"{}".to_vec(),
    );
    let [received, short] = accepted(&tuple).unwrap();
    assert_eq!(received, b"1763640000POST/api/v1/orders{}");
    assert_eq!(short, b"1763640000POST/orders{}");
    assert_eq!(decodings(&received), std::slice::from_ref(&tuple));
    assert_eq!(decodings(&short), [tuple]);
}

#[test]
fn timestamp_other_than_ten_digits_is_refused() {
    for (text, seconds) in [
        ("1763640000", Some(1_763_640_000)),
        ("0000000000", Some(0)),
        ("0763640000", Some(763_640_000)),
        ("9999999999", Some(9_999_999_999)),
        ("", None),
        ("176364000", None),
        ("17636400000", None),
        ("+763640000", None),
        ("-763640000", None),
        (" 763640000", None),
        ("176364000 ", None),
        ("1763640000 ", None),
        ("176364000.", None),
        ("0x63640000", None),
        ("9223372036854775808", None),
        ("١٢٣٤٥", None),
    ] {
        assert_eq!(
            Timestamp::parse(text.as_bytes()).map(Timestamp::unix_s),
            seconds,
            "{text:?}"
        );
    }
    for seconds in [i64::MIN, -1, 0, 999_999_999, 10_000_000_000, i64::MAX] {
        assert_eq!(Timestamp::from_unix_s(seconds), None, "{seconds}");
    }
}

#[test]
fn ambiguous_parts_are_refused() {
    use FramingError::{Body, Method, Path};
    let orders = "/api/v1/orders";
    for (method, path, body, expected) in [
        ("POST", orders, "{}", Ok(())),
        ("POST", orders, "", Ok(())),
        ("GET", "/api/v1/orders/ord_0198/vouchers", "", Ok(())),
        ("DELETE", "/api/v1/webhooks/wh-1.x", "", Ok(())),
        ("PUT", "/api/v1/api/v2", "{", Ok(())),
        ("PATCH", orders, "", Err(Method)),
        ("post", orders, "", Err(Method)),
        ("POST ", orders, "", Err(Method)),
        ("POST/api/v1", orders, "", Err(Method)),
        ("", orders, "", Err(Method)),
        ("POST", "", "", Err(Path)),
        ("POST", "/orders", "", Err(Path)),
        ("POST", "/api/v1", "", Err(Path)),
        ("POST", "/api/v1/", "", Err(Path)),
        ("POST", "/api/v1orders", "", Err(Path)),
        ("POST", "/api/v1/api/v1/orders", "", Err(Path)),
        ("POST", "/api/v1/api/v1", "", Err(Path)),
        ("POST", "/api/v1//orders", "", Err(Path)),
        ("POST", "/api/v1/orders/", "", Err(Path)),
        ("POST", "/api/v1/./orders", "", Err(Path)),
        ("POST", "/api/v1/../orders", "", Err(Path)),
        ("POST", "/api/v1/orders/..", "", Err(Path)),
        ("POST", "/api/v1/orders?x=1", "", Err(Path)),
        ("POST", "/api/v1/orders%2f", "", Err(Path)),
        ("POST", "/api/v1/orders{", "", Err(Path)),
        ("POST", "/api/v1/orders x", "", Err(Path)),
        ("POST", "/api/v1/órders", "", Err(Path)),
        ("POST", "http://evil/api/v1/orders", "", Err(Path)),
        ("POST", orders, "[]", Err(Body)),
        ("POST", orders, " {}", Err(Body)),
        ("POST", orders, "\u{feff}{}", Err(Body)),
        ("POST", orders, "/x{}", Err(Body)),
    ] {
        let request = SignedRequest {
            method,
            path,
            body: body.as_bytes(),
        };
        let framed = CanonicalRequest::new(Timestamp::parse(b"1763640000").unwrap(), request);
        assert_eq!(framed.map(|_| ()), expected, "{method} {path} {body}");
    }
}

#[test]
fn bytes_moved_between_path_and_body_are_refused() {
    let whole = "/api/v1/orders/ord_1/cancel{\"reason\":\"x\"}";
    let brace = whole.find('{').unwrap();
    for cut in (1..whole.len()).filter(|&cut| cut != brace) {
        let (path, body) = whole.split_at(cut);
        let request = SignedRequest {
            method: "POST",
            path,
            body: body.as_bytes(),
        };
        assert!(
            CanonicalRequest::new(Timestamp::parse(b"1763640000").unwrap(), request).is_err(),
            "{path} | {body}"
        );
    }
}

//! Bearer tokens of requests.

use actix_web::http::header::HeaderValue;

use super::*;

fn presented(values: &[&str]) -> Option<Vec<u8>> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
    }
    bearer_token(&headers).map(<[u8]>::to_vec)
}

#[test]
fn bearer_token_must_occur_once() {
    assert_eq!(presented(&["Bearer abc"]).as_deref(), Some(&b"abc"[..]));
    assert_eq!(presented(&["bearer abc"]).as_deref(), Some(&b"abc"[..]));
    for values in [
        &[][..],
        &["Bearer "],
        &["Bearer"],
        &["Basic abc"],
        &["abc"],
        &["Bearer a", "Bearer a"],
    ] {
        assert_eq!(presented(values), None, "{values:?}");
    }
}

//! Header values that are formatted per response, and media types that a client accepts.

use std::fmt;
use std::io::Write as _;

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header as _, HeaderValue, Quality};

/// Maximum bytes of a value.
const MAX_BYTES: usize = 128;

/// Formats a header value on the stack, then allocates it once. `None` if it is longer than 128 bytes or not
/// a valid value.
pub(super) fn header_value(text: fmt::Arguments<'_>) -> Option<HeaderValue> {
    let mut buffer = [0; MAX_BYTES];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text).ok()?;
    let length = MAX_BYTES - rest.len();
    HeaderValue::from_bytes(buffer.get(..length)?).ok()
}

/// Whether `Accept` names this media type.
pub(super) fn accepts(request: &HttpRequest, media_type: &str) -> bool {
    Accept::parse(request).is_ok_and(|accept| {
        let mut ranges = accept.iter();
        ranges.any(|range| range.item.essence_str() == media_type && range.quality > Quality::ZERO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_value_too_long_or_invalid_is_none() {
        let value = header_value(format_args!(r#""{}";q={}"#, "orders", 100)).unwrap();
        assert_eq!(value, r#""orders";q=100"#);
        let longest = "x".repeat(MAX_BYTES);
        assert_eq!(header_value(format_args!("{longest}")).unwrap(), longest);
        assert!(header_value(format_args!("{longest}x")).is_none());
        assert!(header_value(format_args!("a\nb")).is_none());
    }
}

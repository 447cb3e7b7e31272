//! Values of headers that are made for each answer.

use std::fmt;
use std::io::Write as _;

use actix_web::http::header::HeaderValue;

/// Longest value that is made here. Bytes.
const MAX_BYTES: usize = 128;

/// A value, written on the stack first and then allocated once, at its length. None where it is longer than 128 bytes, or
/// has something that no header may have.
pub(super) fn header_value(text: fmt::Arguments<'_>) -> Option<HeaderValue> {
    let mut buffer = [0; MAX_BYTES];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text).ok()?;
    let length = MAX_BYTES - rest.len();
    HeaderValue::from_bytes(buffer.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_was_written_and_what_cannot_be_one_is_none() {
        let value = header_value(format_args!(r#""{}";q={}"#, "orders", 100)).unwrap();
        assert_eq!(value, r#""orders";q=100"#);
        let longest = "x".repeat(MAX_BYTES);
        assert_eq!(header_value(format_args!("{longest}")).unwrap(), longest);
        assert!(header_value(format_args!("{longest}x")).is_none());
        assert!(header_value(format_args!("a\nb")).is_none());
    }
}

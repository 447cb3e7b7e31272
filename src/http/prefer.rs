//! `Prefer: wait=N`: for how long would the caller rather wait than be answered at once?
//!
//! RFC 7240. A preference is a wish, so nothing about it is an error: what is malformed is as if it were not there, what is
//! more than can be had is cut to that, others than `wait` are not known here. Of several the first counts.

use std::time::Duration;

use actix_web::http::header::{HeaderMap, HeaderName};

/// Longest wait (contract §3). Seconds.
pub const MAX_WAIT_S: u64 = 30;

/// What the caller would like.
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What it was given.
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// A wish to wait, as long as it can be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    seconds: u64,
}

impl Wait {
    /// Reads the wish out of the headers of a request.
    #[must_use]
    pub fn wished(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(PREFER).filter_map(|line| line.to_str().ok());
        let mut preferences = lines.flat_map(|line| split(line, ',')).map(preference);
        let (_, value) = preferences.find(|(name, _)| name.eq_ignore_ascii_case("wait"))?;
        seconds(value?).map(|seconds| Self { seconds })
    }

    /// For how long.
    #[must_use]
    pub const fn patience(self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The header that says that it was granted.
    #[must_use]
    pub fn applied(self) -> (HeaderName, String) {
        (PREFERENCE_APPLIED, format!("wait={}", self.seconds))
    }
}

/// Name and value of a preference, without its parameters.
fn preference(text: &str) -> (&str, Option<&str>) {
    let text = split(text, ';').next().unwrap_or_default();
    match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    }
}

/// A count of seconds, which may stand in quotes.
fn seconds(value: &str) -> Option<u64> {
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let digits = quoted.unwrap_or(value);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // What is too large for a number is too long as well.
    all_digits.then(|| digits.parse().unwrap_or(MAX_WAIT_S).min(MAX_WAIT_S))
}

/// Splits where the separator stands outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        let splits = c == separator && !quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        splits
    })
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn wished(lines: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(PREFER, HeaderValue::from_str(line).unwrap());
        }
        Wait::wished(&headers).map(|wait| wait.seconds)
    }

    #[test]
    fn a_wish_is_read_and_cut_to_what_can_be_had() {
        for (lines, expected) in [
            (&["wait=10"][..], Some(10)),
            (&["wait=0"], Some(0)),
            (&["wait=30"], Some(30)),
            (&["wait=31"], Some(30)),
            (&["wait=99999999999999999999999"], Some(30)),
            (&["WAIT = 007"], Some(7)),
            (&["wait=\"5\""], Some(5)),
            (&["respond-async, wait=10"], Some(10)),
            (&["respond-async", "wait=10"], Some(10)),
            (&["wait=10; foo=bar;baz"], Some(10)),
            (&["return=minimal; note=\"a, wait=1; \\\" b\", wait=4"], Some(4)),
            (&["wait=3, wait=4"], Some(3)),
            (&["wait=3", "wait=4"], Some(3)),
            (&[",, ,wait=6"], Some(6)),
        ] {
            assert_eq!(wished(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn what_is_no_wish_is_not_there() {
        for lines in [
            &[][..],
            &[""],
            &["respond-async"],
            &["wait"],
            &["wait="],
            &["wait=\"\""],
            &["wait=-1"],
            &["wait=+1"],
            &["wait=1.5"],
            &["wait=ten"],
            &["wait=1 0"],
            &["wait=\"10"],
            &["waiting=10"],
            &["await=10"],
            &["x; wait=10"],
            &["x=\"wait=10\""],
            // The first counts, whatever it says.
            &["wait=ten, wait=10"],
        ] {
            assert_eq!(wished(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn what_was_granted_is_said() {
        let (name, value) = Wait { seconds: 12 }.applied();
        assert_eq!((name.as_str(), value.as_str()), ("preference-applied", "wait=12"));
    }

    proptest! {
        #[test]
        fn any_header_is_read_within_the_limit(line in "[ -~]{0,60}") {
            prop_assert!(wished(&[&line]).is_none_or(|seconds| seconds <= MAX_WAIT_S));
        }

        #[test]
        fn a_wish_is_found_behind_any_other_preference(
            other in "[a-v]{1,8}(=([a-z]{1,8}|\"[ !#-\\[\\]-~]{0,8}\"))?( ?; ?[a-z]{1,8}(=\"[ !#-\\[\\]-~]{0,8}\")?){0,2}",
            wait in 0..100_u64,
        ) {
            prop_assert_eq!(wished(&[&format!("{other}, wait={wait}")]), Some(wait.min(MAX_WAIT_S)));
        }
    }
}

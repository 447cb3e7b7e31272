//! The `Prefer: wait=N` request header (RFC 7240), which asks for long polling.
//!
//! A preference never causes an error: a malformed one is ignored, a wait beyond the maximum is shortened to
//! it, and preferences other than `wait` are ignored. The first `wait` counts.

use std::time::Duration;

/// Maximum wait in seconds (contract §3).
pub const MAX_WAIT_S: u64 = 30;

/// Request header with the preferences.
pub const PREFER: &str = "prefer";

/// Response header with the preferences that were applied.
pub const PREFERENCE_APPLIED: &str = "preference-applied";

/// The requested wait, at most [`MAX_WAIT_S`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitPreference {
    seconds: u64,
    /// Whether to wait for the end of the order (`until=closed`), and not for its next status.
    pub until_closed: bool,
}

impl WaitPreference {
    /// Parses the first `wait` preference in the lines of the header.
    #[must_use]
    pub fn requested<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut preferences = lines
            .into_iter()
            .flat_map(|line| split_unquoted(line, ','))
            .map(|text| (parse_preference(text), text));
        let is_wait = |((name, _), _): &((&str, Option<&str>), &str)| name.eq_ignore_ascii_case("wait");
        let ((_, value), text) = preferences.find(is_wait)?;
        let mut parameters = split_unquoted(text, ';').skip(1).map(parse_preference);
        let until_closed = parameters.any(|(name, value)| {
            name.eq_ignore_ascii_case("until")
                && value.is_some_and(|value| value.eq_ignore_ascii_case("closed"))
        });
        parse_seconds(value?).map(|seconds| Self {
            seconds,
            until_closed,
        })
    }

    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The value of the [`PREFERENCE_APPLIED`] header.
    #[must_use]
    pub fn applied(self) -> String {
        let until = if self.until_closed { "; until=closed" } else { "" };
        format!("wait={}{until}", self.seconds)
    }
}

/// Splits a preference into name and value, without its parameters.
fn parse_preference(text: &str) -> (&str, Option<&str>) {
    let text = split_unquoted(text, ';').next().unwrap_or_default();
    match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    }
}

/// Parses digits, optionally quoted.
fn parse_seconds(value: &str) -> Option<u64> {
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let digits = quoted.unwrap_or(value);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that overflow u64 also exceed the maximum.
    all_digits.then(|| digits.parse().unwrap_or(MAX_WAIT_S).min(MAX_WAIT_S))
}

/// Splits at separators outside of quoted strings.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
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
    use proptest::prelude::*;

    use super::*;

    fn requested_seconds(lines: &[&str]) -> Option<u64> {
        WaitPreference::requested(lines.iter().copied()).map(|wait| wait.seconds)
    }

    #[test]
    fn wait_beyond_the_maximum_is_shortened() {
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
            assert_eq!(requested_seconds(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn malformed_preference_is_ignored() {
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
            // The first `wait` counts, even if it is malformed.
            &["wait=ten, wait=10"],
        ] {
            assert_eq!(requested_seconds(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn applied_header_names_the_wait() {
        for (line, applied) in [
            ("wait=12", "wait=12"),
            ("wait=12; until=closed", "wait=12; until=closed"),
            ("wait=12;foo;Until = CLOSED", "wait=12; until=closed"),
            ("wait=12; until=delivered", "wait=12"),
            ("until=closed, wait=12", "wait=12"),
        ] {
            assert_eq!(
                WaitPreference::requested([line]).unwrap().applied(),
                applied,
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_header_yields_at_most_the_maximum(line in "[ -~]{0,60}") {
            prop_assert!(requested_seconds(&[&line]).is_none_or(|seconds| seconds <= MAX_WAIT_S));
        }

        #[test]
        fn wait_after_any_other_preference_is_found(
            other in "[a-v]{1,8}(=([a-z]{1,8}|\"[ !#-\\[\\]-~]{0,8}\"))?( ?; ?[a-z]{1,8}(=\"[ !#-\\[\\]-~]{0,8}\")?){0,2}",
            wait in 0..100_u64,
        ) {
            prop_assert_eq!(requested_seconds(&[&format!("{other}, wait={wait}")]), Some(wait.min(MAX_WAIT_S)));
        }
    }
}

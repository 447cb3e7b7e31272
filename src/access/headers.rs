//! Which headers decide about access, and does each of them appear exactly once?
//!
//! The rule: a repeated header is refused like a wrong one. Proxies and frameworks disagree about whether the first or
//! the last value counts, so neither does.

use std::fmt;

/// The partner's key, on every request.
pub const X_API_KEY: &str = "x-api-key";
/// The partner's secret, on every request.
pub const X_API_SECRET: &str = "x-api-secret";
/// Unix time in seconds, on signed requests.
pub const X_TIMESTAMP: &str = "x-timestamp";
/// `t=<timestamp>,v1=<hex>`, on signed requests.
pub const X_SIGNATURE: &str = "x-signature";
/// The partner's name for one order or payout, so that a retry is not a second one.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What a request says under one header name.
///
/// Its `Debug` text names the case and never the value: the values are secrets, or come close.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Once<'a> {
    /// The header is not there.
    Missing,
    /// It is there once, with this value.
    One(&'a [u8]),
    /// It is there more than once.
    Repeated,
}

impl<'a> Once<'a> {
    /// Counts the values of one header name.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }

    /// The value, where there is exactly one.
    #[must_use]
    pub const fn one(self) -> Option<&'a [u8]> {
        match self {
            Self::One(value) => Some(value),
            Self::Missing | Self::Repeated => None,
        }
    }
}

impl fmt::Debug for Once<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "Missing",
            Self::One(_) => "One(***)",
            Self::Repeated => "Repeated",
        })
    }
}

/// The headers of one request that decide about access.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    pub api_key: Once<'a>,
    pub api_secret: Once<'a>,
    pub timestamp: Once<'a>,
    pub signature: Once<'a>,
    pub idempotency_key: Once<'a>,
}

impl<'a> Presented<'a> {
    /// Collects them; `values_of` gives all values of a (lower-case) header name in the order of the wire.
    pub fn collect<V>(values_of: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'a [u8]>,
    {
        let once = |name| Once::of(values_of(name));
        Self {
            api_key: once(X_API_KEY),
            api_secret: once(X_API_SECRET),
            timestamp: once(X_TIMESTAMP),
            signature: once(X_SIGNATURE),
            idempotency_key: once(IDEMPOTENCY_KEY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_only_when_it_appears_once() {
        let (a, b): (&[u8], &[u8]) = (b"canary-a", b"canary-b");
        for (values, expected) in [
            (vec![], Once::Missing),
            (vec![a], Once::One(a)),
            (vec![a, b], Once::Repeated),
            (vec![a, a], Once::Repeated),
            (vec![a, a, b], Once::Repeated),
        ] {
            let once = Once::of(values);
            assert_eq!(once, expected);
            assert_eq!(once.one().is_some(), matches!(expected, Once::One(_)));
        }
    }

    #[test]
    fn each_header_lands_in_its_own_place() {
        let presented = Presented::collect(|name| match name {
            X_TIMESTAMP => vec![],
            X_SIGNATURE => vec![b"s1".as_slice(), b"s2"],
            other => vec![other.as_bytes()],
        });
        assert_eq!(presented.api_key, Once::One(b"x-api-key"));
        assert_eq!(presented.api_secret, Once::One(b"x-api-secret"));
        assert_eq!(presented.timestamp, Once::Missing);
        assert_eq!(presented.signature, Once::Repeated);
        assert_eq!(presented.idempotency_key, Once::One(b"idempotency-key"));
    }

    #[test]
    fn debug_text_never_shows_a_value() {
        let presented = Presented::collect(|_| [b"canary".as_slice()]);
        assert!(!format!("{presented:?}").contains("canary"));
        assert!(!format!("{presented:?}").contains("99, 97, 110"), "nor its bytes");
    }
}

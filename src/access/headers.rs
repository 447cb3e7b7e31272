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
pub enum UniqueHeader<'a> {
    /// The header is not there.
    Missing,
    /// It is there once, with this value.
    Single(&'a [u8]),
    /// It is there more than once.
    Repeated,
}

impl<'a> UniqueHeader<'a> {
    /// Counts the values of one header name.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => Self::Single(value),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }

    /// The value, where there is exactly one.
    #[must_use]
    pub const fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Single(value) => Some(value),
            Self::Missing | Self::Repeated => None,
        }
    }
}

impl fmt::Debug for UniqueHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "Missing",
            Self::Single(_) => "One(***)",
            Self::Repeated => "Repeated",
        })
    }
}

/// The headers of one request that decide about access.
#[derive(Debug, Clone, Copy)]
pub struct AuthHeaders<'a> {
    pub api_key: UniqueHeader<'a>,
    pub api_secret: UniqueHeader<'a>,
    pub timestamp: UniqueHeader<'a>,
    pub signature: UniqueHeader<'a>,
    pub idempotency_key: UniqueHeader<'a>,
}

impl<'a> AuthHeaders<'a> {
    /// Collects them; `values_of` gives all values of a (lower-case) header name in the order of the wire.
    pub fn collect<V>(values_of: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'a [u8]>,
    {
        let once = |name| UniqueHeader::from_values(values_of(name));
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
            (vec![], UniqueHeader::Missing),
            (vec![a], UniqueHeader::Single(a)),
            (vec![a, b], UniqueHeader::Repeated),
            (vec![a, a], UniqueHeader::Repeated),
            (vec![a, a, b], UniqueHeader::Repeated),
        ] {
            let once = UniqueHeader::from_values(values);
            assert_eq!(once, expected);
            assert_eq!(once.value().is_some(), matches!(expected, UniqueHeader::Single(_)));
        }
    }

    #[test]
    fn each_header_lands_in_its_own_place() {
        let presented = AuthHeaders::collect(|name| match name {
            X_TIMESTAMP => vec![],
            X_SIGNATURE => vec![b"s1".as_slice(), b"s2"],
            other => vec![other.as_bytes()],
        });
        assert_eq!(presented.api_key, UniqueHeader::Single(b"x-api-key"));
        assert_eq!(presented.api_secret, UniqueHeader::Single(b"x-api-secret"));
        assert_eq!(presented.timestamp, UniqueHeader::Missing);
        assert_eq!(presented.signature, UniqueHeader::Repeated);
        assert_eq!(presented.idempotency_key, UniqueHeader::Single(b"idempotency-key"));
    }

    #[test]
    fn debug_text_never_shows_a_value() {
        let presented = AuthHeaders::collect(|_| [b"canary".as_slice()]);
        assert!(!format!("{presented:?}").contains("canary"));
        assert!(!format!("{presented:?}").contains("99, 97, 110"), "nor its bytes");
    }
}

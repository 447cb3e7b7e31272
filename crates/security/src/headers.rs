//! Authentication headers, each of which must occur exactly once.
//!
//! A repeated header is refused like a wrong one: proxies and frameworks disagree about whether its first or
//! its last value counts.

use std::fmt;

/// The partner's API key, on every request.
pub const X_API_KEY: &str = "x-api-key";
/// The partner's API secret, on every request.
pub const X_API_SECRET: &str = "x-api-secret";
/// Unix time in seconds, on signed requests.
pub const X_TIMESTAMP: &str = "x-timestamp";
/// `t=<timestamp>,v1=<hex>`, on signed requests.
pub const X_SIGNATURE: &str = "x-signature";
/// Identifies an order or payout, so that a retry does not create a second one.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The value of a header that must occur once.
///
/// `Debug` prints the case and never the value, which may be a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UniqueHeader<'a> {
    Missing,
    Single(&'a [u8]),
    Repeated,
}

impl<'a> UniqueHeader<'a> {
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => Self::Single(value),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }

    /// The value, if the header occurs exactly once.
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
            Self::Single(_) => "Single(***)",
            Self::Repeated => "Repeated",
        })
    }
}

/// The headers of a request that authentication reads.
#[derive(Debug, Clone, Copy)]
pub struct AuthHeaders<'a> {
    pub api_key: UniqueHeader<'a>,
    pub api_secret: UniqueHeader<'a>,
    pub timestamp: UniqueHeader<'a>,
    pub signature: UniqueHeader<'a>,
    pub idempotency_key: UniqueHeader<'a>,
}

impl<'a> AuthHeaders<'a> {
    /// Collects the headers; `values_of` returns all values of a lower-case header name in wire order.
    pub fn collect<V>(values_of: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'a [u8]>,
    {
        let unique = |name| UniqueHeader::from_values(values_of(name));
        Self {
            api_key: unique(X_API_KEY),
            api_secret: unique(X_API_SECRET),
            timestamp: unique(X_TIMESTAMP),
            signature: unique(X_SIGNATURE),
            idempotency_key: unique(IDEMPOTENCY_KEY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_repeated_has_no_value() {
        let (a, b): (&[u8], &[u8]) = (b"canary-a", b"canary-b");
        for (values, expected) in [
            (vec![], UniqueHeader::Missing),
            (vec![a], UniqueHeader::Single(a)),
            (vec![a, b], UniqueHeader::Repeated),
            (vec![a, a], UniqueHeader::Repeated),
            (vec![a, a, b], UniqueHeader::Repeated),
        ] {
            let unique = UniqueHeader::from_values(values);
            assert_eq!(unique, expected);
            assert_eq!(
                unique.value().is_some(),
                matches!(expected, UniqueHeader::Single(_))
            );
        }
    }

    #[test]
    fn auth_headers_collected_match_their_names() {
        let headers = AuthHeaders::collect(|name| match name {
            X_TIMESTAMP => vec![],
            X_SIGNATURE => vec![b"s1".as_slice(), b"s2"],
            other => vec![other.as_bytes()],
        });
        assert_eq!(headers.api_key, UniqueHeader::Single(b"x-api-key"));
        assert_eq!(headers.api_secret, UniqueHeader::Single(b"x-api-secret"));
        assert_eq!(headers.timestamp, UniqueHeader::Missing);
        assert_eq!(headers.signature, UniqueHeader::Repeated);
        assert_eq!(headers.idempotency_key, UniqueHeader::Single(b"idempotency-key"));
    }

    #[test]
    fn debug_output_hides_values() {
        let headers = AuthHeaders::collect(|_| [b"canary".as_slice()]);
        assert!(!format!("{headers:?}").contains("canary"));
        assert!(!format!("{headers:?}").contains("99, 97, 110"), "nor its bytes");
    }
}

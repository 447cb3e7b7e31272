//! Webhook URLs in the audit log: origin and keyed hash. The path or the query of a URL may hold a secret of
//! the receiver.

use serde::Serialize;
use url::Url;

use super::vault::fingerprint::FingerprintKey;

/// The URL of an endpoint, as the audit log shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditedUrl {
    /// Scheme, host and port, such as `https://shop.example`.
    origin: String,
    /// HMAC-SHA-256 of the whole URL in hexadecimal digits: equal URLs have equal hashes.
    url_hash: String,
}

impl AuditedUrl {
    #[must_use]
    pub fn of(url: &str, key: &FingerprintKey) -> Self {
        Self {
            origin: origin(url),
            url_hash: key.hash_url(url),
        }
    }

    /// Whether scheme, host or port differ. What is no URL has no origin: it differs from every URL.
    #[must_use]
    pub fn has_other_origin(&self, other: &Self) -> bool {
        self.origin != other.origin
    }
}

fn origin(url: &str) -> String {
    Url::parse(url)
        .map(|url| url.origin().ascii_serialization())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_scheme_host_and_port() {
        let key = FingerprintKey::from_bytes([1; 32]);
        let of = |url| AuditedUrl::of(url, &key);
        let first = of("https://shop.example/hook?token=secret");
        assert_eq!(first.origin, "https://shop.example");
        assert!(!format!("{first:?}").contains("secret"));
        for (url, is_other) in [
            ("https://shop.example/other", false),
            ("https://SHOP.example:443/hook", false),
            ("https://shop.example:8443/hook?token=secret", true),
            ("http://shop.example/hook?token=secret", true),
            ("https://shop.example.evil.example/hook", true),
            ("shop.example", true),
        ] {
            assert_eq!(first.has_other_origin(&of(url)), is_other, "{url}");
            assert_ne!(first.url_hash, of(url).url_hash, "{url}");
        }
        assert_ne!(
            first.url_hash,
            AuditedUrl::of(
                "https://shop.example/hook?token=secret",
                &FingerprintKey::from_bytes([2; 32])
            )
            .url_hash
        );
    }
}

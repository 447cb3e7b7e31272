//! Validated vendor URL, to which a credential may be sent.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use vouchsafe_http_client::url_policy::MAX_URL_BYTES;
use vouchsafe_security::secure_url::is_secure;

/// https, or http to this machine; without a trailing slash, so that paths can be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorUrl(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVendorUrl {
    #[error("expected a URL such as https://vendor.example/api of at most {MAX_URL_BYTES} bytes")]
    NotAUrl,
    #[error("expected https; http is allowed for this machine only (localhost, 127.0.0.1, [::1])")]
    NotSecure,
    #[error("expected a URL without user, password, query or fragment; the credential is a separate field")]
    ForbiddenPart,
}

impl VendorUrl {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a path of the protocol.
    pub(super) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl FromStr for VendorUrl {
    type Err = InvalidVendorUrl;

    fn from_str(text: &str) -> Result<Self, InvalidVendorUrl> {
        let url = Url::parse(text)
            .ok()
            .filter(|url| url.has_host() && text.len() <= MAX_URL_BYTES);
        let url = url.ok_or(InvalidVendorUrl::NotAUrl)?;
        if !is_secure(&url) {
            return Err(InvalidVendorUrl::NotSecure);
        }
        let has_no_user = url.username().is_empty() && url.password().is_none();
        if !has_no_user || url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidVendorUrl::ForbiddenPart);
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for VendorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_url_requires_https_or_loopback() {
        use InvalidVendorUrl::{ForbiddenPart, NotAUrl, NotSecure};
        for (text, expected) in [
            ("https://vendor.example", Ok("https://vendor.example")),
            ("https://vendor.example/", Ok("https://vendor.example")),
            ("HTTPS://Vendor.Example/api/", Ok("https://vendor.example/api")),
            (
                "https://vendor.example:8443/a/b",
                Ok("https://vendor.example:8443/a/b"),
            ),
            ("http://127.0.0.1:9400", Ok("http://127.0.0.1:9400")),
            ("http://127.9.9.9", Ok("http://127.9.9.9")),
            ("http://[::1]:9400", Ok("http://[::1]:9400")),
            ("http://localhost:9400/", Ok("http://localhost:9400")),
            ("http://vendor.example", Err(NotSecure)),
            ("http://localhost.example", Err(NotSecure)),
            ("http://10.0.0.1", Err(NotSecure)),
            ("ftp://vendor.example", Err(NotSecure)),
            ("https://user@vendor.example", Err(ForbiddenPart)),
            ("https://user:password@vendor.example", Err(ForbiddenPart)),
            ("https://vendor.example?key=1", Err(ForbiddenPart)),
            ("https://vendor.example#a", Err(ForbiddenPart)),
            ("vendor.example", Err(NotAUrl)),
            ("https://", Err(NotAUrl)),
            ("file:///etc/passwd", Err(NotAUrl)),
            ("", Err(NotAUrl)),
        ] {
            let url = text.parse::<VendorUrl>();
            assert_eq!(
                url.as_ref().map(VendorUrl::as_str),
                expected.as_ref().copied(),
                "{text}"
            );
        }
        let long = format!("https://vendor.example/{}", "a".repeat(MAX_URL_BYTES));
        assert_eq!(long.parse::<VendorUrl>(), Err(NotAUrl));
    }
}

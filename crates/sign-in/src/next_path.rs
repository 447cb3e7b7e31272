//! The local path that a browser returns to after signing in; other addresses are ignored, so that no link
//! redirects elsewhere.

use std::fmt;

use url::{Url, form_urlencoded};

/// Longer paths are ignored: the path is repeated in links and headers.
const MAX_LENGTH: usize = 2000;

/// A path of this host, with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPath(String);

impl NextPath {
    /// The path, or `/` if the text is not a path of this host.
    #[must_use]
    pub fn parse_or_root(text: &str) -> Self {
        Self(if is_local_path(text) { text } else { "/" }.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sign-in page that leads here.
    #[must_use]
    pub fn sign_in_url(&self) -> String {
        self.query_of("/sign-in")
    }

    /// The sign-in at the identity provider that leads here.
    #[must_use]
    pub fn provider_url(&self) -> String {
        self.query_of("/sign-in/oidc")
    }

    fn query_of(&self, page: &str) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("next", &self.0)
            .finish();
        format!("{page}?{query}")
    }
}

impl Default for NextPath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl fmt::Display for NextPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Browsers read `//host` and `/\host` as another host, and ignore tabs and line breaks within them.
fn is_local_path(text: &str) -> bool {
    let is_path = text.len() <= MAX_LENGTH
        && text.starts_with('/')
        && !text.starts_with("//")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // The parser of browsers has the last word. The host is one that no one can own.
    let base = Url::parse("http://console.invalid").ok();
    is_path
        && base.is_some_and(|base| {
            base.join(text)
                .is_ok_and(|joined| joined.origin() == base.origin())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_path_stays_on_this_host() {
        for local in ["/", "/orders?status=PENDING&a=%2F", "/a//b", "/@evil.example"] {
            assert_eq!(NextPath::parse_or_root(local).as_str(), local);
        }
        let long = format!("/{}", "a".repeat(MAX_LENGTH));
        for other in [
            "",
            "orders",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            " //evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            "/a b",
            "/ü",
            &long,
        ] {
            assert_eq!(NextPath::parse_or_root(other).as_str(), "/", "{other:?}");
        }
    }

    #[test]
    fn sign_in_url_carries_path_and_query() {
        assert_eq!(
            NextPath::parse_or_root("/orders?status=PENDING&a=b").sign_in_url(),
            "/sign-in?next=%2Forders%3Fstatus%3DPENDING%26a%3Db"
        );
    }
}

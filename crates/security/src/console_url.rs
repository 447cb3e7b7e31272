//! Public URL of the operators' console: the origin of its links, cookies and form submissions.

use std::fmt;
use std::str::FromStr;

use url::Url;

use super::environment::Environment;
use super::listener::{Listener, Transport};
use super::secure_url::{is_loopback, is_secure};

/// The origin at which browsers reach the console: `https://HOST`, or `http://` on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleUrl {
    /// Value of the header `Origin`.
    origin: String,
    is_https: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an https URL such as https://console.example.com, without a path; http is permitted on loopback only"
)]
pub struct InvalidConsoleUrl;

impl ConsoleUrl {
    /// The URL without a setting. A listener that has no TLS and is not bound to loopback has a TLS proxy
    /// before it, if sign-in is to work: browsers send no session cookie to it over plain HTTP.
    #[must_use]
    pub fn of_listener(listener: Listener) -> Self {
        let is_https = listener.transport == Transport::Tls || !listener.address.ip().is_loopback();
        let address = listener.connectable_address();
        let scheme = if is_https { "https" } else { "http" };
        let origin = format!("{scheme}://{address}");
        Self { origin, is_https }
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    #[must_use]
    pub const fn is_https(&self) -> bool {
        self.is_https
    }

    /// Whether browsers may keep the token of a session. Over plain HTTP on loopback they would send it to
    /// every port of the machine, on which another local user can listen.
    #[must_use]
    pub fn permits_sessions(&self, environment: Environment) -> bool {
        self.is_https || environment == Environment::Sandbox
    }

    /// Whether responses have `Strict-Transport-Security`, which makes browsers use https only. Other
    /// services of a loopback host may use http.
    #[must_use]
    pub fn requires_strict_transport(&self) -> bool {
        let is_loopback = Url::parse(&self.origin).is_ok_and(|url| is_loopback(&url));
        self.is_https && !is_loopback
    }

    /// Whether a browser sent the request from a page of the console, by its headers `Sec-Fetch-Site` and
    /// `Origin`. Only a browser that sends no `Sec-Fetch-Site` is judged by its `Origin`.
    #[must_use]
    pub fn is_same_origin(&self, fetch_site: Option<&[u8]>, origin: Option<&[u8]>) -> bool {
        match fetch_site {
            Some(site) => site == b"same-origin",
            None => origin == Some(self.origin.as_bytes()),
        }
    }

    /// The page that redeems a sign-in link. The query reaches the server, so that the page works without
    /// script; the page sends no `Referer`, and the request log has no queries.
    #[must_use]
    pub fn sign_in_link(&self, token: &str) -> String {
        format!("{}/sign-in/link?token={token}", self.origin)
    }
}

impl FromStr for ConsoleUrl {
    type Err = InvalidConsoleUrl;

    fn from_str(text: &str) -> Result<Self, InvalidConsoleUrl> {
        let url = Url::parse(text).map_err(|_| InvalidConsoleUrl)?;
        let is_https = url.scheme() == "https";
        let is_origin = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let origin = url.origin().ascii_serialization();
        (is_origin && is_secure(&url))
            .then_some(Self { origin, is_https })
            .ok_or(InvalidConsoleUrl)
    }
}

impl fmt::Display for ConsoleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_url_is_https_or_on_loopback() {
        for (text, origin, is_https) in [
            ("https://console.example.com", "https://console.example.com", true),
            (
                "https://Console.example.com:443/",
                "https://console.example.com",
                true,
            ),
            ("https://10.0.0.5:8443", "https://10.0.0.5:8443", true),
            ("http://localhost:8081", "http://localhost:8081", false),
            ("http://127.0.0.1:8081/", "http://127.0.0.1:8081", false),
            ("http://[::1]:8081", "http://[::1]:8081", false),
        ] {
            let url: ConsoleUrl = text.parse().unwrap();
            assert_eq!((url.origin(), url.is_https()), (origin, is_https), "{text}");
        }
        for text in [
            "",
            "console.example.com",
            "http://console.example.com",
            "http://10.0.0.5:8081",
            "https://console.example.com/console",
            "https://console.example.com/?a=b",
            "https://console.example.com/#a",
            "https://user@console.example.com",
            "ftp://console.example.com",
        ] {
            assert_eq!(text.parse::<ConsoleUrl>(), Err(InvalidConsoleUrl), "{text}");
        }
    }

    #[test]
    fn sessions_of_production_and_strict_transport_require_https() {
        for (text, in_production, is_strict) in [
            ("https://console.example.com", true, true),
            ("https://10.0.0.5:8443", true, true),
            ("https://localhost:8081", true, false),
            ("https://127.0.0.1:8081", true, false),
            ("http://127.0.0.1:8081", false, false),
        ] {
            let url: ConsoleUrl = text.parse().unwrap();
            assert_eq!(
                url.permits_sessions(Environment::Production),
                in_production,
                "{text}"
            );
            assert!(url.permits_sessions(Environment::Sandbox), "{text}");
            assert_eq!(url.requires_strict_transport(), is_strict, "{text}");
        }
    }

    #[test]
    fn listener_with_tls_or_off_loopback_has_an_https_console() {
        for (address, transport, origin) in [
            ("127.0.0.1:8081", Transport::Plain, "http://127.0.0.1:8081"),
            ("127.0.0.1:8081", Transport::Tls, "https://127.0.0.1:8081"),
            ("0.0.0.0:8081", Transport::Plain, "https://127.0.0.1:8081"),
            ("[::]:8081", Transport::Plain, "https://[::1]:8081"),
            ("10.0.0.5:8081", Transport::Tls, "https://10.0.0.5:8081"),
        ] {
            let address = address.parse().unwrap();
            let url = ConsoleUrl::of_listener(Listener { address, transport });
            assert_eq!(
                (url.origin(), url.is_https()),
                (origin, origin.starts_with("https"))
            );
        }
    }

    #[test]
    fn origin_counts_only_without_fetch_metadata() {
        let console: ConsoleUrl = "https://console.example.com".parse().unwrap();
        let own = Some(&b"https://console.example.com"[..]);
        for (fetch_site, origin, expected) in [
            (Some(&b"same-origin"[..]), None, true),
            (Some(b"same-origin"), Some(&b"null"[..]), true),
            (Some(b"same-site"), own, false),
            (Some(b"cross-site"), own, false),
            (Some(b"none"), own, false),
            (None, own, true),
            (None, Some(b"https://console.example.com.evil.example"), false),
            (None, Some(b"null"), false),
            (None, None, false),
        ] {
            assert_eq!(
                console.is_same_origin(fetch_site, origin),
                expected,
                "{fetch_site:?}"
            );
        }
    }
}

//! URLs to which secrets may be sent.

use url::{Host, Url};

/// Whether the network cannot read what is sent to the URL: https, or http to this machine.
#[must_use]
pub fn is_secure(url: &Url) -> bool {
    url.has_host()
        && match url.scheme() {
            "https" => true,
            "http" => is_loopback(url),
            _ => false,
        }
}

/// Whether the host of a URL is this machine: `localhost`, or an address of the loopback interface.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secure_url_is_https_or_on_loopback() {
        for (text, expected) in [
            ("https://a.example", true),
            ("https://10.0.0.1:8443/a", true),
            ("http://localhost:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://a.example", false),
            ("http://10.0.0.1", false),
            ("http://localhost.example", false),
            ("ftp://localhost", false),
            ("mailto:a@localhost", false),
        ] {
            assert_eq!(is_secure(&text.parse().unwrap()), expected, "{text}");
        }
    }
}

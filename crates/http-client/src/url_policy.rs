//! SSRF guard for URLs of webhooks and vendors: checked at registration and again at each connection.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;

use super::address::{is_loopback, is_public};

/// Longest URL.
pub const MAX_URL_BYTES: usize = 2_048;

/// Which URLs and addresses requests may be sent to.
#[derive(Debug, Clone)]
pub struct UrlPolicy {
    loopback: LoopbackTargets,
    /// Ports of this program's own listeners.
    own_ports: Vec<u16>,
}

/// Whether requests may be sent to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopbackTargets {
    /// Suits a sandbox on the developer's machine. `http` is allowed then.
    Allowed,
    /// A partner could otherwise probe the ports of the host.
    Refused,
}

/// Why a URL is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlRejection {
    #[error("expected a URL such as https://shop.example/webhooks of at most {MAX_URL_BYTES} bytes")]
    NotAUrl,
    #[error("expected https")]
    NotSecure,
    #[error(
        "expected https; this sandbox allows http for receivers on its machine only (localhost, 127.0.0.1, [::1])"
    )]
    NotSecureHere,
    #[error("expected a URL without user, password or fragment")]
    ForbiddenPart,
    #[error("the host must have public addresses only")]
    NotPublic,
    #[error("cannot resolve the host; check its name")]
    Unresolved,
}

impl UrlPolicy {
    /// `own` are this program's listeners, to which nothing is sent.
    #[must_use]
    pub fn new(loopback: LoopbackTargets, own: &[SocketAddr]) -> Self {
        Self {
            loopback,
            own_ports: own.iter().map(SocketAddr::port).collect(),
        }
    }

    /// Parses and checks a URL, without resolving its host.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub fn parse(&self, text: &str) -> Result<Url, UrlRejection> {
        // The normalized URL is stored, and may be longer.
        let fits = |url: &Url| text.len().max(url.as_str().len()) <= MAX_URL_BYTES;
        let url = Url::parse(text).ok().filter(|url| url.has_host() && fits(url));
        let url = url.ok_or(UrlRejection::NotAUrl)?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(UrlRejection::ForbiddenPart);
        }
        match (url.scheme(), self.loopback) {
            ("https", _) => {}
            ("http", LoopbackTargets::Allowed) if is_this_machine(&url) => {}
            ("http", LoopbackTargets::Allowed) => return Err(UrlRejection::NotSecureHere),
            ("http", LoopbackTargets::Refused) => return Err(UrlRejection::NotSecure),
            _ => return Err(UrlRejection::NotAUrl),
        }
        match literal_address(&url) {
            Some(address) if !self.is_allowed(address, url.port_or_known_default()) => {
                Err(UrlRejection::NotPublic)
            }
            _ => Ok(url),
        }
    }

    /// Whether the URL has the port of one of this program's listeners.
    #[must_use]
    pub fn is_own_port(&self, url: &Url) -> bool {
        url.port_or_known_default()
            .is_some_and(|port| self.own_ports.contains(&port))
    }

    /// Whether a request may be sent to an address. The program's own listeners may not, where loopback is
    /// allowed.
    #[must_use]
    pub fn is_allowed(&self, address: IpAddr, port: Option<u16>) -> bool {
        let own = port.is_some_and(|port| self.own_ports.contains(&port));
        is_public(address) || (self.loopback == LoopbackTargets::Allowed && is_loopback(address) && !own)
    }

    /// Checks every address of a host: a single non-public one rejects the host.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub fn check_addresses(&self, addresses: &[IpAddr], port: Option<u16>) -> Result<(), UrlRejection> {
        if addresses.is_empty() {
            return Err(UrlRejection::Unresolved);
        }
        let allowed = addresses.iter().all(|address| self.is_allowed(*address, port));
        allowed.then_some(()).ok_or(UrlRejection::NotPublic)
    }
}

/// The IP literal in a URL, in any notation.
#[must_use]
pub fn literal_address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_this_machine(url: &Url) -> bool {
    url.host_str() == Some("localhost") || literal_address(url).is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(loopback: LoopbackTargets) -> UrlPolicy {
        UrlPolicy::new(loopback, &["127.0.0.1:8080".parse().unwrap()])
    }

    #[test]
    fn policy_without_loopback_requires_https_to_a_public_host() {
        let policy = policy(LoopbackTargets::Refused);
        for (text, expected) in [
            ("https://shop.example/hooks?token=1", None),
            ("https://shop.example:8443/", None),
            ("https://1.1.1.1/", None),
            ("http://shop.example/", Some(UrlRejection::NotSecure)),
            ("http://127.0.0.1:9/", Some(UrlRejection::NotSecure)),
            ("ftp://shop.example/", Some(UrlRejection::NotAUrl)),
            ("shop.example", Some(UrlRejection::NotAUrl)),
            ("https:///", Some(UrlRejection::NotAUrl)),
            ("https://me@shop.example/", Some(UrlRejection::ForbiddenPart)),
            ("https://shop.example/#here", Some(UrlRejection::ForbiddenPart)),
            ("https://127.0.0.1/", Some(UrlRejection::NotPublic)),
            ("https://2130706433/", Some(UrlRejection::NotPublic)),
            ("https://0x7f.1/", Some(UrlRejection::NotPublic)),
            ("https://0177.0.0.1/", Some(UrlRejection::NotPublic)),
            ("https://[::1]/", Some(UrlRejection::NotPublic)),
            ("https://[::ffff:127.0.0.1]/", Some(UrlRejection::NotPublic)),
            ("https://169.254.169.254/latest", Some(UrlRejection::NotPublic)),
        ] {
            assert_eq!(policy.parse(text).err(), expected, "{text}");
        }
        for long in [
            format!("https://shop.example/{}", "a".repeat(MAX_URL_BYTES)),
            format!("https://shop.example/{}", "é".repeat(MAX_URL_BYTES / 3)),
        ] {
            assert_eq!(policy.parse(&long).err(), Some(UrlRejection::NotAUrl));
        }
    }

    #[test]
    fn policy_with_loopback_excludes_own_listeners() {
        let policy = policy(LoopbackTargets::Allowed);
        for (text, expected) in [
            ("http://127.0.0.1:9000/hooks", None),
            ("http://localhost:9000/hooks", None),
            ("https://[::1]:9000/", None),
            ("http://shop.example/", Some(UrlRejection::NotSecureHere)),
            ("http://10.0.0.1/", Some(UrlRejection::NotSecureHere)),
            ("https://10.0.0.1/", Some(UrlRejection::NotPublic)),
            (
                "http://127.0.0.1:8080/api/v1/orders",
                Some(UrlRejection::NotPublic),
            ),
        ] {
            assert_eq!(policy.parse(text).err(), expected, "{text}");
        }
    }

    #[test]
    fn single_private_address_rejects_the_host() {
        let policy = policy(LoopbackTargets::Refused);
        let check = |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            policy.check_addresses(&addresses, Some(443)).err()
        };
        assert_eq!(check(&["1.1.1.1", "8.8.8.8"]), None);
        assert_eq!(check(&["1.1.1.1", "10.0.0.1"]), Some(UrlRejection::NotPublic));
        assert_eq!(check(&[]), Some(UrlRejection::Unresolved));
    }
}

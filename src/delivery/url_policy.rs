//! Where may an endpoint be? At a URL on public ground: checked when it is registered, and again at each attempt.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;

use super::address::{is_loopback, is_public};
use crate::access::environment::Environment;

/// Longest URL. Bytes.
pub(crate) const MAX_URL_BYTES: usize = 2_048;

/// On which ground endpoints may be.
#[derive(Debug, Clone)]
pub(crate) struct UrlPolicy {
    environment: Environment,
    /// Ports of this program's own listeners.
    own_ports: Vec<u16>,
}

/// Why a URL is none for an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlRejection {
    #[error("expected a URL such as https://shop.example/webhooks, of at most {MAX_URL_BYTES} bytes")]
    NotAUrl,
    #[error("expected https")]
    NotSecure,
    #[error(
        "expected https; http is for receivers on this machine alone (localhost, 127.0.0.1, [::1]), and for the sandbox"
    )]
    NotSecureHere,
    #[error("expected no user, password or fragment")]
    ForbiddenPart,
    #[error("the address of the host must be a public one")]
    NotPublic,
    #[error("the host has no address; check its name")]
    Unresolved,
}

impl UrlPolicy {
    /// Those of this environment; the listeners of this program are none.
    pub(crate) fn new(environment: Environment, own: &[SocketAddr]) -> Self {
        Self {
            environment,
            own_ports: own.iter().map(SocketAddr::port).collect(),
        }
    }

    /// Reads a URL, as far as its text tells.
    pub(crate) fn parse(&self, text: &str) -> Result<Url, UrlRejection> {
        let url = Url::parse(text)
            .ok()
            .filter(|url| url.has_host() && text.len() <= MAX_URL_BYTES);
        let url = url.ok_or(UrlRejection::NotAUrl)?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(UrlRejection::ForbiddenPart);
        }
        match (url.scheme(), self.environment) {
            ("https", _) => {}
            ("http", Environment::Sandbox) if is_this_machine(&url) => {}
            ("http", Environment::Sandbox) => return Err(UrlRejection::NotSecureHere),
            ("http", Environment::Production) => return Err(UrlRejection::NotSecure),
            _ => return Err(UrlRejection::NotAUrl),
        }
        match literal_address(&url) {
            Some(address) if !self.is_allowed(address, url.port_or_known_default()) => Err(UrlRejection::NotPublic),
            _ => Ok(url),
        }
    }

    /// Whether one of this program's listeners could be meant.
    pub(super) fn is_own_port(&self, url: &Url) -> bool {
        url.port_or_known_default()
            .is_some_and(|port| self.own_ports.contains(&port))
    }

    /// Whether an address may be delivered to. In the sandbox this machine may, but for its own listeners.
    pub(super) fn is_allowed(&self, address: IpAddr, port: Option<u16>) -> bool {
        let own = port.is_some_and(|port| self.own_ports.contains(&port));
        is_public(address) || (self.environment == Environment::Sandbox && is_loopback(address) && !own)
    }

    /// Checks every address that a host was found at: one that is not public condemns all.
    pub(super) fn check_addresses(&self, found: &[IpAddr], port: Option<u16>) -> Result<(), UrlRejection> {
        if found.is_empty() {
            return Err(UrlRejection::Unresolved);
        }
        let admitted = found.iter().all(|address| self.is_allowed(*address, port));
        admitted.then_some(()).ok_or(UrlRejection::NotPublic)
    }
}

/// The address that stands in a URL for a host, however it is written.
pub(super) fn literal_address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_this_machine(url: &Url) -> bool {
    url.host_str() == Some("localhost") || literal_address(url).is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grounds(environment: Environment) -> UrlPolicy {
        UrlPolicy::new(environment, &["127.0.0.1:8080".parse().unwrap()])
    }

    #[test]
    fn in_production_a_url_is_https_to_a_public_host() {
        let grounds = grounds(Environment::Production);
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
            assert_eq!(grounds.parse(text).err(), expected, "{text}");
        }
        let long = format!("https://shop.example/{}", "a".repeat(MAX_URL_BYTES));
        assert_eq!(grounds.parse(&long).err(), Some(UrlRejection::NotAUrl));
    }

    #[test]
    fn in_the_sandbox_this_machine_may_listen_but_for_our_own_listeners() {
        let grounds = grounds(Environment::Sandbox);
        for (text, expected) in [
            ("http://127.0.0.1:9000/hooks", None),
            ("http://localhost:9000/hooks", None),
            ("https://[::1]:9000/", None),
            ("http://shop.example/", Some(UrlRejection::NotSecureHere)),
            ("http://10.0.0.1/", Some(UrlRejection::NotSecureHere)),
            ("https://10.0.0.1/", Some(UrlRejection::NotPublic)),
            ("http://127.0.0.1:8080/api/v1/orders", Some(UrlRejection::NotPublic)),
        ] {
            assert_eq!(grounds.parse(text).err(), expected, "{text}");
        }
    }

    #[test]
    fn one_address_that_is_not_public_condemns_all() {
        let grounds = grounds(Environment::Production);
        let check = |addresses: &[&str]| {
            let found: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            grounds.check_addresses(&found, Some(443)).err()
        };
        assert_eq!(check(&["1.1.1.1", "8.8.8.8"]), None);
        assert_eq!(check(&["1.1.1.1", "10.0.0.1"]), Some(UrlRejection::NotPublic));
        assert_eq!(check(&[]), Some(UrlRejection::Unresolved));
    }
}

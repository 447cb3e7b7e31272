//! Access to the metrics: by token, or from networks.

use std::net::IpAddr;

use vouchsafe_domain::allowlist::Allowlist;

use crate::environment::Environment;
use crate::operator_token::OperatorTokenHash;

/// Which requests receive the metrics.
#[derive(Debug, Clone)]
pub struct MetricsAccess {
    pub token: Option<OperatorTokenHash>,
    /// Networks of clients.
    pub networks: Allowlist,
    pub environment: Environment,
}

/// What decides about a request for the metrics.
#[derive(Debug)]
pub struct Scrape<'a> {
    pub token: Option<&'a [u8]>,
    /// `None` if a proxy forwarded something that is not an address.
    pub client: Option<IpAddr>,
    /// Whether a proxy forwarded it.
    pub is_forwarded: bool,
}

impl MetricsAccess {
    #[must_use]
    pub fn is_permitted(&self, scrape: &Scrape<'_>) -> bool {
        if scrape.client.is_some_and(|client| self.networks.contains(client)) {
            return true;
        }
        if let Some(expected) = &self.token {
            return scrape
                .token
                .is_some_and(|token| OperatorTokenHash::of(token).matches(expected));
        }
        let is_open = self.networks.networks().is_empty();
        match self.environment {
            Environment::Sandbox => is_open,
            // A proxy on this machine that is not a trusted one forwards the requests of others.
            Environment::Production => {
                is_open && !scrape.is_forwarded && scrape.client.is_some_and(|client| client.is_loopback())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_address::parse_networks;

    const TOKEN: &[u8] = b"a token of thirty-two characters";

    fn permits(access: &MetricsAccess, client: &str, is_forwarded: bool, token: Option<&[u8]>) -> bool {
        access.is_permitted(&Scrape {
            token,
            client: client.parse().ok(),
            is_forwarded,
        })
    }

    fn access(token: Option<&[u8]>, networks: &str, environment: Environment) -> MetricsAccess {
        MetricsAccess {
            token: token.map(OperatorTokenHash::of),
            networks: parse_networks(networks).unwrap(),
            environment,
        }
    }

    #[test]
    fn metrics_require_token_or_network() {
        use Environment::{Production, Sandbox};
        let default = access(None, "", Production);
        assert!(permits(&default, "127.0.0.1", false, None));
        assert!(
            !permits(&default, "127.0.0.1", true, None),
            "by a proxy on this machine"
        );
        assert!(!permits(&default, "10.0.0.1", false, None));
        assert!(!permits(&default, "unreadable", true, None));
        assert!(permits(&access(None, "", Sandbox), "10.0.0.1", true, None));
        for environment in [Production, Sandbox] {
            let listed = access(None, "10.0.0.0/8", environment);
            assert!(permits(&listed, "10.0.0.1", true, None));
            assert!(!permits(&listed, "127.0.0.1", false, None));
            let with_token = access(Some(TOKEN), "10.0.0.0/8", environment);
            assert!(permits(&with_token, "192.0.2.1", true, Some(TOKEN)));
            assert!(permits(&with_token, "10.0.0.1", false, None));
            assert!(!permits(&with_token, "127.0.0.1", false, None));
            assert!(!permits(&with_token, "127.0.0.1", false, Some(b"another")));
        }
    }
}

//! DNS resolver of the SSRF guard: connections use exactly the addresses that were checked.
//!
//! The host is resolved for every connection, so a name that resolves to a public address at registration and
//! to a private one later is refused later.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::url_policy::{UrlPolicy, UrlRejection, literal_address};

/// Resolves a host name.
pub type HostLookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;

/// Resolves to no address if the host has none.
pub type LookupFuture = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// Resolves hosts and refuses those with a non-public address.
#[derive(Clone)]
pub struct Resolver {
    policy: UrlPolicy,
    lookup: HostLookup,
}

impl Resolver {
    #[must_use]
    pub fn new(policy: UrlPolicy, lookup: HostLookup) -> Self {
        Self { policy, lookup }
    }

    #[must_use]
    pub const fn policy(&self) -> &UrlPolicy {
        &self.policy
    }

    /// The addresses of a host, all of which are allowed.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub async fn resolve_host(&self, host: &str, port: Option<u16>) -> Result<Vec<IpAddr>, UrlRejection> {
        let addresses = (self.lookup)(host.to_owned()).await;
        self.policy.check_addresses(&addresses, port)?;
        Ok(addresses)
    }

    /// Checks a URL with every address of its host, before a request is sent to it. A host that does not
    /// resolve within `timeout` is accepted: it is resolved again at each connection.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub async fn check(&self, text: &str, timeout: Duration) -> Result<Url, UrlRejection> {
        let url = self.policy.parse(text)?;
        let resolved = tokio::time::timeout(timeout, self.resolve_url(&url)).await;
        match resolved {
            Ok(Err(rejection)) if rejection != UrlRejection::Unresolved => Err(rejection),
            _ => Ok(url),
        }
    }

    /// Resolves the host of a URL; all its addresses must be allowed.
    ///
    /// # Errors
    /// [`UrlRejection`].
    pub async fn resolve_url(&self, url: &Url) -> Result<(), UrlRejection> {
        match (literal_address(url), url.host_str()) {
            (Some(_), _) => Ok(()),
            (None, Some(host)) => self
                .resolve_host(host, url.port_or_known_default())
                .await
                .map(drop),
            (None, None) => Err(UrlRejection::NotAUrl),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.resolve_host(name.as_str(), None).await?;
            // The connector sets the port.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// The operating system's resolver.
#[must_use]
pub fn system_lookup() -> HostLookup {
    Arc::new(|host| {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host.as_str(), 0)).await;
            addresses.map_or_else(
                |_| Vec::new(),
                |addresses| addresses.map(|address| address.ip()).collect(),
            )
        })
    })
}

//! DNS resolver for webhooks: connections use exactly the addresses that were checked.
//!
//! The host is resolved for every connection, so a name that resolves to a public address at registration and to a
//! private one later is refused later.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::url_policy::{UrlPolicy, UrlRejection};

/// Resolves a host name.
pub(super) type HostLookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;

/// Empty if the host has no address.
type LookupFuture = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// Resolves hosts and refuses those with a non-public address.
#[derive(Clone)]
pub(super) struct Resolver {
    policy: UrlPolicy,
    lookup: HostLookup,
}

impl Resolver {
    pub(super) fn new(policy: UrlPolicy, lookup: HostLookup) -> Self {
        Self { policy, lookup }
    }

    /// The addresses of a host, all of which are allowed.
    pub(super) async fn resolve_host(
        &self,
        host: &str,
        port: Option<u16>,
    ) -> Result<Vec<IpAddr>, UrlRejection> {
        let addresses = (self.lookup)(host.to_owned()).await;
        self.policy.check_addresses(&addresses, port)?;
        Ok(addresses)
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
pub(super) fn system_lookup() -> HostLookup {
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

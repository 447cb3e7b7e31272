//! At which addresses is a host? Looked up for each connection, and connected to as they were checked.
//!
//! Rule: the addresses that are checked are those that are connected to. A name that is public when it is registered and
//! private later is refused later.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::url_policy::{UrlPolicy, UrlRejection};

/// Finds the addresses of a host.
pub(super) type HostLookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;

/// The addresses of a host; none where it has none.
type LookupFuture = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// What finds the addresses of hosts, and refuses those that are not public.
#[derive(Clone)]
pub(super) struct Resolver {
    policy: UrlPolicy,
    lookup: HostLookup,
}

impl Resolver {
    pub(super) fn new(policy: UrlPolicy, lookup: HostLookup) -> Self {
        Self { policy, lookup }
    }

    /// The addresses of a host, all of which may be delivered to.
    pub(super) async fn resolve_host(&self, host: &str, port: Option<u16>) -> Result<Vec<IpAddr>, UrlRejection> {
        let found = (self.lookup)(host.to_owned()).await;
        self.policy.check_addresses(&found, port)?;
        Ok(found)
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.resolve_host(name.as_str(), None).await?;
            // The port is put in by who connects.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// As the machine finds them.
pub(super) fn system_lookup() -> HostLookup {
    Arc::new(|host| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await;
            found.map_or_else(
                |_| Vec::new(),
                |found| found.map(|address| address.ip()).collect(),
            )
        })
    })
}

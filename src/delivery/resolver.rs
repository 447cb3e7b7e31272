//! At which addresses is a host? Looked up for each connection, and connected to as they were checked.
//!
//! Rule: the addresses that are checked are those that are connected to. A name that is public when it is registered and
//! private later is refused later.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::url::{Grounds, RefusedUrl};

/// Finds the addresses of a host.
pub(super) type LookUp = Arc<dyn Fn(String) -> Found + Send + Sync>;

/// The addresses of a host; none where it has none.
type Found = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// What finds the addresses of hosts, and refuses those that are not public.
#[derive(Clone)]
pub(super) struct Resolver {
    grounds: Grounds,
    look_up: LookUp,
}

impl Resolver {
    pub(super) fn new(grounds: Grounds, look_up: LookUp) -> Self {
        Self { grounds, look_up }
    }

    /// The addresses of a host, all of which may be delivered to.
    pub(super) async fn find(&self, host: &str, port: Option<u16>) -> Result<Vec<IpAddr>, RefusedUrl> {
        let found = (self.look_up)(host.to_owned()).await;
        self.grounds.check(&found, port)?;
        Ok(found)
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.find(name.as_str(), None).await?;
            // The port is put in by who connects.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// As the machine finds them.
pub(super) fn system() -> LookUp {
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

//! Address and transport of a listener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A listener of the service, as its settings describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    pub address: SocketAddr,
    pub transport: Transport,
}

/// What the listener expects of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP: a proxy before the listener ends TLS, or the clients are on this machine.
    Plain,
    /// HTTPS.
    Tls,
}

impl Listener {
    /// The URL at which processes of this machine reach the listener, without a path. One that listens on all
    /// addresses is reachable on loopback.
    #[must_use]
    pub fn url(self) -> String {
        let scheme = match self.transport {
            Transport::Plain => "http",
            Transport::Tls => "https",
        };
        format!("{scheme}://{}", self.connectable_address())
    }

    pub(crate) fn connectable_address(self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }
}

//! Limits of clients by their address, and of connections.

use clap::Args;

use crate::connections::ClientLimits;

/// Limits of connections and of requests in flight.
#[derive(Debug, Clone, Copy, Args)]
pub struct ClientSettings {
    /// Connections of the partner listener [default: 10,000 per thread, or as many as the limit of open files
    /// permits].
    #[arg(long, env = "VOUCHSAFE_MAX_CONNECTIONS", value_name = "CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: Option<u32>,

    /// Connections of the operator listener [default: 1,000, or as many as the limit of open files permits].
    #[arg(long, env = "VOUCHSAFE_ADMIN_MAX_CONNECTIONS", value_name = "CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub admin_max_connections: Option<u32>,

    /// Connections of one client address at each listener, trusted proxies excepted [default: a quarter of
    /// the listener's].
    #[arg(long, env = "VOUCHSAFE_MAX_CONNECTIONS_PER_ADDRESS", value_name = "CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections_per_address: Option<u32>,

    /// Requests in flight of one client address at the partner listener.
    #[arg(long, env = "VOUCHSAFE_MAX_IN_FLIGHT_PER_ADDRESS", default_value_t = 4096, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_in_flight_per_address: u32,

    /// Requests in flight of one client address at the operator listener.
    #[arg(long, env = "VOUCHSAFE_ADMIN_MAX_IN_FLIGHT_PER_ADDRESS", default_value_t = 256, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub admin_max_in_flight_per_address: u32,
}

impl ClientSettings {
    /// Limits of the clients of the partner listener, which has so many connections.
    pub(crate) fn partners(&self, max_connections: usize) -> ClientLimits {
        self.limits(max_connections, self.max_in_flight_per_address)
    }

    /// Limits of the operator listener.
    pub(crate) fn operators(&self, max_connections: usize) -> ClientLimits {
        self.limits(max_connections, self.admin_max_in_flight_per_address)
    }

    fn limits(&self, max_connections: usize, max_requests: u32) -> ClientLimits {
        let setting = self
            .max_connections_per_address
            .and_then(|max| usize::try_from(max).ok());
        let per_address = setting.unwrap_or_else(|| (max_connections / 4).max(1));
        ClientLimits::new(per_address, usize::try_from(max_requests).unwrap_or(usize::MAX))
    }
}

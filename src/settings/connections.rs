//! Sizes of the connection pools for requests of partners and operators.

use clap::Args;
use vouchsafe_store::ConnectionSettings;

/// Database connections for requests other than orders.
#[derive(Debug, Clone, Copy, Args)]
pub struct PoolSettings {
    /// Database connections for requests of partners other than orders.
    #[arg(long, env = "VOUCHSAFE_PARTNER_CONNECTIONS", default_value_t = ConnectionSettings::DEFAULT.partners, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub partner_connections: u32,

    /// Database connections for requests of operators.
    #[arg(long, env = "VOUCHSAFE_OPERATOR_CONNECTIONS", default_value_t = ConnectionSettings::DEFAULT.operators, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub operator_connections: u32,
}

impl PoolSettings {
    #[must_use]
    pub const fn sizes(self) -> ConnectionSettings {
        ConnectionSettings {
            partners: self.partner_connections,
            operators: self.operator_connections,
        }
    }
}

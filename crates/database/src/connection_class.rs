//! Connection classes: bulkheads between the parts of a node that wait for the database.
//!
//! Each class has a pool with limits of its own, so that long lists of one reader delay neither orders nor
//! the lease. Lanes and batch workers have a connection each and belong to no pool.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::connection_pool::{ACQUIRE_TIMEOUT, DEADLINE, PoolLimits, PoolMetrics};
use super::transaction::TransactionMetrics;

/// Connections of batch workers: two each of claims, code retrievals and order lookups, one each of wallet
/// and feed lookups, rate limits and new purchases.
const BATCH_CONNECTIONS: u32 = 10;

/// Reconciliation keeps a connection while it receives a vendor's records, and a node one for the locks of
/// the SKUs whose reserved stock it distributes.
const DETACHED_CONNECTIONS: u32 = 2;

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionClass {
    /// The node's lease and the readiness probe, which wait for nothing else.
    Lease,
    /// What orders need outside their lanes: keys, wallets, counters of caps.
    Control,
    /// Stock claims that wait for the locks of another node: orders of other SKUs need nothing of these.
    Claims,
    /// Background jobs: purchases, cache refresh, expiry, purging, audit checkpoints.
    Jobs,
    Deliveries,
    /// Requests of partners other than orders.
    Partners,
    /// Requests of operators.
    Operators,
}

/// Sizes of the pools that serve requests.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSettings {
    pub partners: u32,
    pub operators: u32,
}

impl ConnectionSettings {
    pub const DEFAULT: Self = Self {
        partners: 6,
        operators: 4,
    };

    /// Connections of a node with this number of lanes.
    #[must_use]
    pub fn total(self, lanes: u16) -> u32 {
        let pools = ConnectionClass::ALL
            .iter()
            .map(|class| class.limits(self).connections);
        pools.sum::<u32>() + BATCH_CONNECTIONS + DETACHED_CONNECTIONS + u32::from(lanes)
    }
}

impl ConnectionClass {
    pub const ALL: [Self; 7] = [
        Self::Lease,
        Self::Control,
        Self::Claims,
        Self::Jobs,
        Self::Deliveries,
        Self::Partners,
        Self::Operators,
    ];

    /// Label of the metrics, and part of `application_name` in `pg_stat_activity`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Control => "control",
            Self::Claims => "claims",
            Self::Jobs => "jobs",
            Self::Deliveries => "deliveries",
            Self::Partners => "partners",
            Self::Operators => "operators",
        }
    }

    /// The timeout of statements, as Postgres parses it.
    pub const fn statement_timeout(self) -> &'static str {
        match self {
            Self::Lease => "1s",
            Self::Control | Self::Claims => "5s",
            Self::Partners => "10s",
            Self::Jobs | Self::Deliveries | Self::Operators => "15s",
        }
    }

    /// How statements with parameters are planned. Rare statements over many rows are planned for each
    /// execution: a plan that was made while tables were small would scan them until the next `ANALYZE`.
    pub const fn plan_cache_mode(self) -> &'static str {
        match self {
            Self::Jobs | Self::Operators => "force_custom_plan",
            Self::Lease | Self::Control | Self::Claims | Self::Deliveries | Self::Partners => "auto",
        }
    }

    pub const fn limits(self, settings: ConnectionSettings) -> PoolLimits {
        let connections = match self {
            // One would do for the lease: the second keeps a hanging probe from delaying a renewal.
            Self::Lease | Self::Claims => 2,
            Self::Control | Self::Jobs => 4,
            // The permits of the outbox, one for the poller and one for the log of attempts.
            Self::Deliveries => 7,
            Self::Partners => settings.partners,
            Self::Operators => settings.operators,
        };
        match self {
            // A dead connection is replaced before a lease ends.
            Self::Lease => PoolLimits {
                connections,
                acquire_timeout: Duration::from_secs(1),
                deadline: Duration::from_secs(3),
            },
            _ => PoolLimits {
                connections,
                acquire_timeout: ACQUIRE_TIMEOUT,
                deadline: DEADLINE,
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: &'static str,
}

/// Metrics of the connection classes and of transactions.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    in_use: Family<ClassLabels, Gauge>,
    waiting: Family<ClassLabels, Gauge>,
    wait_seconds: Family<ClassLabels, Histogram>,
    timeouts: Family<ClassLabels, Counter>,
    transactions: TransactionMetrics,
}

impl Default for ConnectionMetrics {
    fn default() -> Self {
        Self {
            in_use: Family::default(),
            waiting: Family::default(),
            wait_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_25, 4.0, 8))
            }),
            timeouts: Family::default(),
            transactions: TransactionMetrics::default(),
        }
    }
}

impl ConnectionMetrics {
    /// Registers the metrics, with a series per class.
    pub fn register(&self, registry: &mut Registry) {
        for class in ConnectionClass::ALL {
            drop(self.of(class));
        }
        registry.register(
            "database_connections_in_use",
            "Database connections in use, by class",
            self.in_use.clone(),
        );
        registry.register(
            "database_connections_waiting",
            "Operations that wait for a database connection, by class",
            self.waiting.clone(),
        );
        registry.register_with_unit(
            "database_connection_wait",
            "Time that an operation waited for a database connection, by class",
            Unit::Seconds,
            self.wait_seconds.clone(),
        );
        registry.register(
            "database_connection_timeouts",
            "Operations rejected because no database connection became free, by class",
            self.timeouts.clone(),
        );
        registry.register_with_unit(
            "database_transaction",
            "Duration of a named transaction, with the wait for a connection, by outcome",
            Unit::Seconds,
            self.transactions.family(),
        );
    }

    pub(crate) const fn transactions(&self) -> &TransactionMetrics {
        &self.transactions
    }

    pub fn of(&self, class: ConnectionClass) -> PoolMetrics {
        let labels = ClassLabels { class: class.name() };
        PoolMetrics {
            in_use: self.in_use.get_or_create(&labels).clone(),
            waiting: self.waiting.get_or_create(&labels).clone(),
            wait_seconds: self.wait_seconds.get_or_create(&labels).clone(),
            timeouts: self.timeouts.get_or_create(&labels).clone(),
        }
    }
}

//! Resource usage of the processes under test, and the conditions of a measurement.

pub mod conditions;
pub mod costs;
pub mod database;
pub(crate) mod environment;
pub mod other_work;
pub mod proc;
pub mod server;
pub(crate) mod service_metrics;
pub mod usage_series;

use self::server::MonitoredServer;

/// Processes and server whose usage the resource monitor of a run reads.
#[derive(Clone, Debug, Default)]
pub struct MonitorTarget {
    /// Processes of the service; empty if they are not on this machine.
    pub pids: Vec<u32>,
    pub server: Option<MonitoredServer>,
    /// Admin URL with `/metrics`, if any.
    pub admin_url: Option<String>,
}

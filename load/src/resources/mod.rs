//! Resource usage of the processes under test, and the conditions of a measurement.

pub(crate) mod build_info;
pub mod conditions;
pub mod costs;
pub mod database;
pub(crate) mod environment;
pub(crate) mod journal_batches;
pub mod other_work;
pub mod proc;
pub mod server;

use self::server::MonitoredServer;

/// Processes and server whose usage the resource monitor of a run reads.
#[derive(Clone, Debug)]
pub struct MonitorTarget {
    /// Service processes: one, or all nodes that share the load.
    pub pids: Vec<u32>,
    pub server: Option<MonitoredServer>,
    /// Admin URL with `/metrics`, if any.
    pub admin_url: Option<String>,
}

//! Load run: arrivals, load driver, progress, resource monitor, result and metrics.

pub mod arrivals;
pub mod driver;
pub mod event_arrivals;
pub mod measurement;
pub mod metrics;
pub mod progress;
pub mod resource_monitor;
pub mod result;
mod send_schedule;
pub(crate) mod stack_sampler;

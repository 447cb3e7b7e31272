//! A load run with its metrics and the resources that it used.

use super::driver::{LoadPlan, run_load};
use super::metrics::{RunMetrics, Setup};
use super::progress::Progress;
use super::resource_monitor::{ResourceMonitor, ResourceUsage};
use super::result::RunResult;
use crate::resources::MonitorTarget;

pub struct Measurement {
    pub result: RunResult,
    pub metrics: RunMetrics,
    pub usage: ResourceUsage,
}

/// Loads a service and monitors `target` meanwhile. `order` and `forms` describe the orders in the report.
/// Blocks.
///
/// # Errors
/// If the run or its monitor could not start. Errors of the service are in the tally.
pub fn measure(
    plan: LoadPlan,
    order: String,
    forms: Vec<String>,
    target: MonitorTarget,
) -> anyhow::Result<Measurement> {
    let setup = Setup {
        url: plan.base_url.clone(),
        order,
        pace: plan.pace.to_string(),
        seed: plan.seed,
        forms,
        threads: plan.threads,
        warm_up_s: plan.warm_up.as_secs(),
        length: plan.length.to_string(),
    };
    let progress = Progress::default();
    let monitor = ResourceMonitor::start(target, &progress, plan.length)?;
    let result = run_load(plan, &progress)?;
    Ok(Measurement {
        metrics: RunMetrics::from_run(setup, &result),
        usage: monitor.stop()?,
        result,
    })
}

//! One turn of one contender: load, audit, and load average of the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use vouchsafe_api_client::DEFAULT_TIMEOUT;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use super::audit_method::AuditMethod;
use crate::audit::Audit;
use crate::resources::MonitorTarget;
use crate::resources::costs::OrderCosts;
use crate::resources::machine::Machine;
use crate::run::driver::{LoadPlan, SigningTime, run_load};
use crate::run::metrics::{RunMetrics, Setup};
use crate::run::progress::Progress;
use crate::run::resource_monitor::ResourceMonitor;
use crate::run::result::{RunError, RunResult};
use crate::tally::run_history::RunHistory;
use crate::traffic::generator::Traffic;
use crate::traffic::pace::{Pace, RunLength};
use crate::traffic::workload::Workload;

/// Maximum number of orders that the audit reads back and replays.
const SAMPLES: usize = 100;
const SIGNING: SigningTime = SigningTime::OnDemand;
/// All contenders get the same arrivals.
const SEED: u64 = 1;
/// The only allowed outcome in a turn that counts.
const SOLD: &str = "201";

/// Target of a load run.
#[derive(Clone, Debug)]
pub struct Target {
    /// Base URL.
    pub url: String,
    pub credentials: Credentials,
    /// Product id, at denomination 25.
    pub product: String,
    pub audit_method: AuditMethod,
    pub monitored: MonitorTarget,
}

/// Load of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadSettings {
    /// Loop type and connections.
    pub pace: Pace,
    /// Generator threads.
    pub threads: usize,
    pub warm_up_s: u64,
    /// Measured part, in seconds.
    pub seconds: u64,
}

/// Results of one turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// Acknowledged orders per second.
    pub orders_per_s: f64,
    /// Acknowledged orders.
    pub orders: u64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// 99th percentile, in microseconds.
    pub p99_us: u64,
    /// 99.9th percentile, in microseconds.
    pub p99_9_us: u64,
    /// Outcomes of the measured part by status and error code.
    pub outcomes: BTreeMap<String, u64>,
    /// `None` if not measured.
    pub costs: Option<OrderCosts>,
    pub audit: Audit,
    pub machine: Machine,
}

impl Turn {
    /// Orders per second, if the turn counts: the audit passed and every measured order was sold.
    #[must_use]
    pub fn counted_rate(&self) -> Option<f64> {
        self.rejection_reason().is_none().then_some(self.orders_per_s)
    }

    /// Reason for a turn that does not count.
    #[must_use]
    pub fn rejection_reason(&self) -> Option<String> {
        if let Some(check) = self.audit.checks.iter().find(|check| !check.passed) {
            return Some(format!("{}: {}", check.name, check.detail));
        }
        let other = self.outcomes.iter().find(|(outcome, _)| *outcome != SOLD);
        other.map(|(outcome, count)| format!("{count} × {outcome}"))
    }
}

/// Loads and audits one target. Blocks the thread during the load.
///
/// # Errors
/// If the target cannot be loaded or audited.
pub async fn run_turn(target: &Target, load: LoadSettings) -> anyhow::Result<Turn> {
    let mut turns =
        run_concurrent_turns(std::slice::from_ref(target), target.monitored.clone(), load).await?;
    turns.pop().context("one target has one turn")
}

/// Loads all targets concurrently with the same load and audits them. Costs per order cover all orders and all
/// monitored processes, and are repeated in each turn. Blocks as [`run_turn`] does.
///
/// # Errors
/// If a target cannot be loaded or audited.
pub async fn run_concurrent_turns(
    targets: &[Target],
    subject: MonitorTarget,
    load: LoadSettings,
) -> anyhow::Result<Vec<Turn>> {
    let mut auditors = Vec::with_capacity(targets.len());
    let mut plans = Vec::with_capacity(targets.len());
    for target in targets {
        let mut auditor = PartnerClient::new(&target.url, target.credentials.clone())?;
        let opening = target.audit_method.capture_baseline(&mut auditor).await?;
        auditors.push((target, auditor, opening));
        plans.push(load_plan(target, load)?);
    }
    let machine = Machine::observe_before();
    let progress = Progress::default();
    let monitor = ResourceMonitor::start(subject, &progress, Duration::from_secs(load.seconds))?;
    let result = run_all(plans, &progress)?;
    let usage = monitor.stop()?;
    let machine = machine.observe_after();
    let mut turns = Vec::with_capacity(targets.len());
    for ((target, mut auditor, opening), result) in auditors.into_iter().zip(result) {
        let figures = RunMetrics::from_run(describe_setup(target, load), &result);
        let audit = target
            .audit_method
            .audit(&mut auditor, opening, result.tally.acknowledgements)
            .await?;
        turns.push(Turn {
            orders_per_s: figures.orders_per_s,
            orders: figures.orders,
            p50_us: figures.latency_us.p50,
            p99_us: figures.latency_us.p99,
            p99_9_us: figures.latency_us.p99_9,
            outcomes: figures.outcomes,
            costs: usage.costs.clone(),
            audit,
            machine,
        });
    }
    Ok(turns)
}

/// Runs all plans concurrently.
fn run_all(plans: Vec<LoadPlan>, progress: &Progress) -> Result<Vec<RunResult>, RunError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .into_iter()
            .map(|load_plan| scope.spawn(|| run_load(load_plan, progress)))
            .collect();
        let results = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        results.collect()
    })
}

fn describe_setup(target: &Target, load: LoadSettings) -> Setup {
    Setup {
        url: target.url.clone(),
        order: format!("1 × {} at 25", target.product),
        pace: load.pace.to_string(),
        signing: SIGNING.description(),
        seed: SEED,
        forms: Vec::new(),
        threads: load.threads,
        warm_up_s: load.warm_up_s,
    }
}

fn load_plan(target: &Target, load: LoadSettings) -> anyhow::Result<LoadPlan> {
    Ok(LoadPlan {
        base_url: target.url.clone(),
        partners: vec![target.credentials.clone()],
        traffic: Traffic::single(Workload::one_sku(&target.product, "25", 1)?),
        pace: load.pace,
        signing: SIGNING,
        seed: SEED,
        threads: load.threads,
        warm_up: Duration::from_secs(load.warm_up_s),
        length: RunLength::Time(Duration::from_secs(load.seconds)),
        timeout: DEFAULT_TIMEOUT,
        samples: SAMPLES,
        history: RunHistory::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Check;

    fn turn(passed: bool, outcomes: &[(&str, u64)]) -> Turn {
        let result = if passed { Ok("fine") } else { Err("twice") };
        let result = result.map(str::to_owned).map_err(str::to_owned);
        Turn {
            orders_per_s: 10.0,
            orders: 10,
            p50_us: 1,
            p99_us: 2,
            p99_9_us: 3,
            outcomes: outcomes
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            costs: None,
            audit: Audit {
                checks: vec![Check::new("vouchers unique", result)],
            },
            machine: Machine::observe_before(),
        }
    }

    #[test]
    fn turn_counts_with_passed_audit_and_sales_only() {
        assert_eq!(turn(true, &[("201", 10)]).counted_rate(), Some(10.0));
        let failed = turn(false, &[("201", 10)]);
        assert_eq!(
            (failed.counted_rate(), failed.rejection_reason().unwrap().as_str()),
            (None, "vouchers unique: twice")
        );
        let sold_out = turn(true, &[("201", 10), ("409 INSUFFICIENT_INVENTORY", 3)]);
        assert_eq!(sold_out.counted_rate(), None);
        assert_eq!(
            sold_out.rejection_reason().unwrap(),
            "3 × 409 INSUFFICIENT_INVENTORY"
        );
    }
}

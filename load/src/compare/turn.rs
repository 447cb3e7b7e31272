//! What does one turn of one contender come to? A load on it, its audit, and what else the machine did.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::audit_method::AuditMethod;
use crate::audit::Audit;
use crate::client::DEFAULT_TIMEOUT;
use crate::costs::OrderCosts;
use crate::load_run::{LoadPlan, SigningTime, run_load};
use crate::run_history::RunHistory;
use crate::machine::Machine;
use crate::partner::PartnerClient;
use crate::progress::Progress;
use crate::report::{RunMetrics, Setup};
use crate::run::{RunLength, RunResult, RunError};
use crate::scenario::Pace;
use crate::signer::Credentials;
use crate::traffic::Traffic;
use crate::resource_monitor::{MonitorTarget, ResourceMonitor};
use crate::workload::Workload;

/// Orders that are read back and replayed after a turn, at most.
const SAMPLES: usize = 100;
/// When requests are signed.
const SIGNING: SigningTime = SigningTime::OnDemand;
/// The same arrivals for everybody.
const SEED: u64 = 1;
/// The only outcome of an order in a turn that counts.
const SOLD: &str = "201";

/// Who is loaded.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it serves, with the prefix.
    pub url: String,
    pub credentials: Credentials,
    /// What it sells, at 25.
    pub product: String,
    /// How it is audited.
    pub audit_method: AuditMethod,
    /// Whose use of the machine is read meanwhile.
    pub monitored: MonitorTarget,
}

/// How it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadSettings {
    /// When orders leave, over how many connections.
    pub pace: Pace,
    /// Threads of the generator.
    pub threads: usize,
    /// Seconds before anything is measured.
    pub warm_up_s: u64,
    /// Seconds that are measured.
    pub seconds: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// Acknowledged orders a second.
    pub orders_per_s: f64,
    /// How many those were.
    pub orders: u64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// 99th percentile, in microseconds.
    pub p99_us: u64,
    /// 99.9th percentile, in microseconds.
    pub p99_9_us: u64,
    /// Measured outcomes by status and error code.
    pub outcomes: BTreeMap<String, u64>,
    /// What an order cost; `None`: not measured.
    pub costs: Option<OrderCosts>,
    /// Whether it did what it acknowledged.
    pub audit: Audit,
    pub machine: Machine,
}

impl Turn {
    /// Orders a second, if they count: the audit passed and nothing but sales was measured.
    #[must_use]
    pub fn counted_rate(&self) -> Option<f64> {
        self.rejection_reason().is_none().then_some(self.orders_per_s)
    }

    /// Why they do not count.
    #[must_use]
    pub fn rejection_reason(&self) -> Option<String> {
        if let Some(check) = self.audit.checks.iter().find(|check| !check.passed) {
            return Some(format!("{}: {}", check.name, check.detail));
        }
        let other = self.outcomes.iter().find(|(outcome, _)| *outcome != SOLD);
        other.map(|(outcome, count)| format!("{count} × {outcome}"))
    }
}

/// Loads and audits. Blocks while it loads: whoever calls has nothing else to do.
///
/// # Errors
/// When it could not be loaded or audited at all.
pub async fn run_turn(target: &Target, load: LoadSettings) -> anyhow::Result<Turn> {
    let mut turns = run_concurrent_turns(std::slice::from_ref(target), target.monitored.clone(), load).await?;
    turns.pop().context("one target has one turn")
}

/// Loads all of them at the same time, each with this load, and audits them. What an order cost is of all orders and of all
/// that is watched, and stands in each turn. Blocks as [`turn`] does.
///
/// # Errors
/// When one of them could not be loaded or audited at all.
pub async fn run_concurrent_turns(targets: &[Target], subject: MonitorTarget, load: LoadSettings) -> anyhow::Result<Vec<Turn>> {
    let mut auditors = Vec::with_capacity(targets.len());
    let mut plans = Vec::with_capacity(targets.len());
    for target in targets {
        let mut auditor = PartnerClient::new(&target.url, target.credentials.clone())?;
        let opening = target.audit_method.capture_baseline(&mut auditor).await?;
        auditors.push((target, auditor, opening));
        plans.push(plan(target, load)?);
    }
    let machine = Machine::observe_before();
    let progress = Progress::default();
    let watch = ResourceMonitor::start(subject, &progress, Duration::from_secs(load.seconds))?;
    let ran = driven(plans, &progress)?;
    let watched = watch.stop()?;
    let machine = machine.observe_after();
    let mut turns = Vec::with_capacity(targets.len());
    for ((target, mut auditor, opening), ran) in auditors.into_iter().zip(ran) {
        let figures = RunMetrics::from_run(setup(target, load), &ran);
        let audit = target.audit_method.audit(&mut auditor, opening, ran.tally.acknowledgements).await?;
        turns.push(Turn {
            orders_per_s: figures.orders_per_s,
            orders: figures.orders,
            p50_us: figures.latency_us.p50,
            p99_us: figures.latency_us.p99,
            p99_9_us: figures.latency_us.p99_9,
            outcomes: figures.outcomes,
            costs: watched.costs.clone(),
            audit,
            machine,
        });
    }
    Ok(turns)
}

/// Carries out all of the plans at the same time.
fn driven(plans: Vec<LoadPlan>, progress: &Progress) -> Result<Vec<RunResult>, RunError> {
    std::thread::scope(|scope| {
        let begun: Vec<_> = plans
            .into_iter()
            .map(|plan| scope.spawn(|| run_load(plan, progress)))
            .collect();
        let ended = begun.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect()
    })
}

fn setup(target: &Target, load: LoadSettings) -> Setup {
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

fn plan(target: &Target, load: LoadSettings) -> anyhow::Result<LoadPlan> {
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
                checks: vec![Check::new("no voucher twice", result)],
            },
            machine: Machine::observe_before(),
        }
    }

    #[test]
    fn a_figure_counts_with_its_audit_and_sales_alone() {
        assert_eq!(turn(true, &[("201", 10)]).counted_rate(), Some(10.0));
        let cheat = turn(false, &[("201", 10)]);
        assert_eq!(
            (cheat.counted_rate(), cheat.rejection_reason().unwrap().as_str()),
            (None, "no voucher twice: twice")
        );
        let sold_out = turn(true, &[("201", 10), ("409 INSUFFICIENT_INVENTORY", 3)]);
        assert_eq!(sold_out.counted_rate(), None);
        assert_eq!(sold_out.rejection_reason().unwrap(), "3 × 409 INSUFFICIENT_INVENTORY");
    }
}

//! What does one turn of one contender come to? A load on it, its audit, and what else the machine did.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::proof::Proof;
use crate::audit::Audit;
use crate::client::DEFAULT_TIMEOUT;
use crate::costs::Costs;
use crate::drive::{Drive, Signing, drive};
use crate::keeps::Keeps;
use crate::machine::Machine;
use crate::partner::PartnerClient;
use crate::progress::Progress;
use crate::report::{Figures, Setup};
use crate::run::{Length, Ran, RunError};
use crate::scenario::Pace;
use crate::signer::Credentials;
use crate::traffic::Traffic;
use crate::watch::{Subject, Watch};
use crate::workload::Workload;

/// Orders that are read back and replayed after a turn, at most.
const SAMPLES: usize = 100;
/// When requests are signed.
const SIGNING: Signing = Signing::OnTheFly;
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
    pub proof: Proof,
    /// Whose use of the machine is read meanwhile.
    pub subject: Subject,
}

/// How it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
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
    pub costs: Option<Costs>,
    /// Whether it did what it acknowledged.
    pub audit: Audit,
    pub machine: Machine,
}

impl Turn {
    /// Orders a second, if they count: the audit passed and nothing but sales was measured.
    #[must_use]
    pub fn counted(&self) -> Option<f64> {
        self.why_not().is_none().then_some(self.orders_per_s)
    }

    /// Why they do not count.
    #[must_use]
    pub fn why_not(&self) -> Option<String> {
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
pub async fn turn(target: &Target, load: Load) -> anyhow::Result<Turn> {
    let mut turns = at_once(std::slice::from_ref(target), target.subject.clone(), load).await?;
    turns.pop().context("one target has one turn")
}

/// Loads all of them at the same time, each with this load, and audits them. What an order cost is of all orders and of all
/// that is watched, and stands in each turn. Blocks as [`turn`] does.
///
/// # Errors
/// When one of them could not be loaded or audited at all.
pub async fn at_once(targets: &[Target], subject: Subject, load: Load) -> anyhow::Result<Vec<Turn>> {
    let mut auditors = Vec::with_capacity(targets.len());
    let mut plans = Vec::with_capacity(targets.len());
    for target in targets {
        let mut auditor = PartnerClient::new(&target.url, target.credentials.clone())?;
        let opening = target.proof.open(&mut auditor).await?;
        auditors.push((target, auditor, opening));
        plans.push(plan(target, load)?);
    }
    let machine = Machine::before();
    let progress = Progress::default();
    let watch = Watch::over(subject, &progress, Duration::from_secs(load.seconds))?;
    let ran = driven(plans, &progress)?;
    let watched = watch.end()?;
    let machine = machine.after();
    let mut turns = Vec::with_capacity(targets.len());
    for ((target, mut auditor, opening), ran) in auditors.into_iter().zip(ran) {
        let figures = Figures::of(setup(target, load), &ran);
        let audit = target.proof.close(&mut auditor, opening, ran.tally.books).await?;
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
fn driven(plans: Vec<Drive>, progress: &Progress) -> Result<Vec<Ran>, RunError> {
    std::thread::scope(|scope| {
        let begun: Vec<_> = plans
            .into_iter()
            .map(|plan| scope.spawn(|| drive(plan, progress)))
            .collect();
        let ended = begun.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect()
    })
}

fn setup(target: &Target, load: Load) -> Setup {
    Setup {
        url: target.url.clone(),
        order: format!("1 × {} at 25", target.product),
        pace: load.pace.to_string(),
        signing: SIGNING.in_words(),
        seed: SEED,
        forms: Vec::new(),
        threads: load.threads,
        warm_up_s: load.warm_up_s,
    }
}

fn plan(target: &Target, load: Load) -> anyhow::Result<Drive> {
    Ok(Drive {
        base_url: target.url.clone(),
        partners: vec![target.credentials.clone()],
        traffic: Traffic::one(Workload::one_sku(&target.product, "25", 1)?),
        pace: load.pace,
        signing: SIGNING,
        seed: SEED,
        threads: load.threads,
        warm_up: Duration::from_secs(load.warm_up_s),
        length: Length::Time(Duration::from_secs(load.seconds)),
        timeout: DEFAULT_TIMEOUT,
        samples: SAMPLES,
        keeps: Keeps::default(),
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
            machine: Machine::before(),
        }
    }

    #[test]
    fn a_figure_counts_with_its_audit_and_sales_alone() {
        assert_eq!(turn(true, &[("201", 10)]).counted(), Some(10.0));
        let cheat = turn(false, &[("201", 10)]);
        assert_eq!(
            (cheat.counted(), cheat.why_not().unwrap().as_str()),
            (None, "no voucher twice: twice")
        );
        let sold_out = turn(true, &[("201", 10), ("409 INSUFFICIENT_INVENTORY", 3)]);
        assert_eq!(sold_out.counted(), None);
        assert_eq!(sold_out.why_not().unwrap(), "3 × 409 INSUFFICIENT_INVENTORY");
    }
}

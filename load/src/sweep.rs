//! Search for the highest rate of an open loop within bounds such as `p99 <= 50`: each step is a run of the
//! scenario on a new deployment with its audit.
//!
//! Rule: a rate fails only by the service. If the generator or other work on the machine was the limit, the
//! result is inconclusive.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::condition::Condition;
use crate::deployment::run_in_new_deployment;
use crate::report::{RunReport, Verdict};
use crate::resources::costs::format_value;
use crate::resources::proc::Component;
use crate::scenario_run::{GeneratorOptions, run_scenario};
use crate::traffic::pace::{Pace, Spacing};
use crate::traffic::scenario::Scenario;

/// Doubling from the first rate reaches any other; each later step halves the distance.
const MAX_STEPS: usize = 20;

/// Below this share of the first rate the search ends without a result.
const MIN_SHARE: f64 = 1.0 / 64.0;

/// Parameters of a search.
#[derive(Clone, Debug)]
pub struct SweepPlan<'a> {
    pub program: &'a Path,
    /// The pace has the first rate, or is replaced by an open loop of it.
    pub scenario: Scenario,
    /// Conditions that hold within the bounds.
    pub bounds: Vec<Condition>,
    pub first_per_s: f64,
    /// The search ends when the lowest rate out of bounds is at most this share above the highest one within.
    pub precision: f64,
    pub options: GeneratorOptions,
}

/// One tried rate.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub per_s: f64,
    pub is_within: bool,
    pub run: RunReport,
}

#[derive(Clone, Debug, Serialize)]
pub struct SweepReport {
    pub scenario: String,
    pub bounds: Vec<Condition>,
    /// The highest rate within the bounds; `None` if there is none.
    pub highest_per_s: Option<f64>,
    /// Sorted as they were searched.
    pub steps: Vec<Step>,
}

/// Runs the search; `report_progress` receives one line per step.
///
/// # Errors
/// If the program cannot be started or a run could not complete. Errors of the service are in the report.
pub fn sweep(plan: &SweepPlan<'_>, report_progress: &mut impl FnMut(&str)) -> anyhow::Result<SweepReport> {
    let mut steps: Vec<Step> = Vec::new();
    let mut tried = Vec::new();
    while let Some(per_s) = next_rate(&tried, plan.first_per_s, plan.precision) {
        let pace = Pace::Open {
            connections: plan.scenario.pace.connections(),
            per_second: per_s,
            spacing: Spacing::Poisson,
        };
        let scenario = Scenario {
            pace,
            thresholds: plan.bounds.clone(),
            ..plan.scenario.clone()
        };
        let run = run_in_new_deployment(plan.program, |deployment| {
            run_scenario(&scenario, deployment, plan.options)
        })?;
        let is_reached = run.metrics.offered_load.is_none_or(|offered| offered.is_reached);
        let is_within = is_reached && run.thresholds.iter().all(|check| check.passed);
        tried.push((per_s, is_within));
        let step = Step {
            per_s,
            is_within,
            run,
        };
        report_progress(&step.to_string());
        let has_passed = step.run.audit.has_passed();
        steps.push(step);
        if !has_passed {
            break;
        }
    }
    let within = steps.iter().filter(|step| step.is_within).map(|step| step.per_s);
    Ok(SweepReport {
        scenario: plan.scenario.name.clone(),
        bounds: plan.bounds.clone(),
        highest_per_s: within.reduce(f64::max),
        steps,
    })
}

/// Doubles or halves the rate until one is within the bounds and another one is not, then takes the geometric
/// mean of the closest two.
fn next_rate(tried: &[(f64, bool)], first: f64, precision: f64) -> Option<f64> {
    let rates = |is_within| {
        tried
            .iter()
            .filter(move |step| step.1 == is_within)
            .map(|step| step.0)
    };
    let (highest, lowest) = (rates(true).reduce(f64::max), rates(false).reduce(f64::min));
    let next = match (highest, lowest) {
        (None, None) => Some(first),
        (Some(highest), None) => Some(highest * 2.0),
        (None, Some(lowest)) => Some(lowest / 2.0).filter(|rate| *rate >= first * MIN_SHARE),
        (Some(highest), Some(lowest)) => {
            Some((highest * lowest).sqrt()).filter(|_| lowest > highest * (1.0 + precision))
        }
    };
    next.map(f64::round).filter(|_| tried.len() < MAX_STEPS)
}

impl SweepReport {
    /// The lowest rate that was out of bounds.
    fn limit(&self) -> Option<&Step> {
        let failed = self.steps.iter().filter(|step| !step.is_within);
        failed.min_by(|one, other| one.per_s.total_cmp(&other.per_s))
    }

    /// Inconclusive if nothing or something else than the service limits the rate.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if !self.steps.iter().all(|step| step.run.audit.has_passed()) {
            return Verdict::AuditFailed;
        }
        match self.limit() {
            Some(limit) if limit.run.other_limits.is_empty() => match self.highest_per_s {
                Some(_) => Verdict::Passed,
                None => Verdict::ThresholdMissed,
            },
            _ => Verdict::Inconclusive,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            per_s,
            is_within,
            run,
        } = self;
        let latency = run.metrics.latency_ms;
        let [p50, p99] = [latency.p50, latency.p99].map(|ms| format_value(Some(ms)));
        let service = run
            .usage
            .costs
            .as_ref()
            .and_then(|costs| costs.cpu_us(Component::Service));
        let result = match (is_within, run.audit.has_passed()) {
            (_, false) => "AUDIT FAILED",
            (true, _) => "within",
            (false, _) => "out of bounds",
        };
        write!(
            f,
            "{per_s:>10.0}/s  acknowledged {:>8.0}/s  p50 {p50:>9} ms  p99 {p99:>9} ms  service {:>9} µs  {result}",
            run.metrics.orders_per_s,
            format_value(service)
        )
    }
}

impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.steps.first() {
            writeln!(f, "{}", first.run.conditions)?;
        }
        let mut steps: Vec<_> = self.steps.iter().collect();
        steps.sort_by(|one, other| one.per_s.total_cmp(&other.per_s));
        steps.into_iter().try_for_each(|step| writeln!(f, "{step}"))?;
        let bounds: Vec<_> = self.bounds.iter().map(ToString::to_string).collect();
        let highest = self
            .highest_per_s
            .map_or_else(|| "none".to_owned(), |rate| format!("{rate:.0} requests/s"));
        writeln!(
            f,
            "\n{}: highest rate within {}: {highest}",
            self.scenario,
            bounds.join(", ")
        )?;
        let failed = self.steps.iter().flat_map(|step| &step.run.audit.checks);
        for check in failed.filter(|check| !check.passed) {
            writeln!(f, "FAILED: {}: {}", check.name, check.detail)?;
        }
        match self.limit() {
            None => writeln!(f, "inconclusive: no rate was out of bounds"),
            Some(limit) => {
                let reasons = &mut limit.run.other_limits.iter();
                reasons.try_for_each(|reason| writeln!(f, "inconclusive at {:.0}/s: {reason}", limit.per_s))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of a search for a service that holds the bounds up to `capacity`.
    fn search(capacity: f64, first: f64) -> Vec<(f64, bool)> {
        let mut tried = Vec::new();
        while let Some(rate) = next_rate(&tried, first, 0.1) {
            tried.push((rate, rate <= capacity));
        }
        tried
    }

    #[test]
    fn search_ends_within_the_precision_from_either_side() {
        for (capacity, first) in [(7_300.0, 500.0), (730.0, 20_000.0), (500.0, 500.0)] {
            let tried = search(capacity, first);
            let rates = |is_within| {
                tried
                    .iter()
                    .filter(move |step| step.1 == is_within)
                    .map(|step| step.0)
            };
            let (highest, lowest) = (
                rates(true).reduce(f64::max).unwrap(),
                rates(false).reduce(f64::min).unwrap(),
            );
            assert!(highest <= capacity && capacity < lowest, "{tried:?}");
            assert!(lowest <= highest * 1.1 && tried.len() <= 11, "{tried:?}");
        }
    }

    #[test]
    fn search_without_a_rate_within_or_out_of_bounds_ends() {
        assert!(search(0.0, 640.0).iter().all(|step| step.0 >= 10.0));
        assert_eq!(search(f64::INFINITY, 1.0).len(), MAX_STEPS);
    }
}

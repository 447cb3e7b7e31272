//! Reasons to doubt the figures of a run, and those that forbid a decision from them.

use crate::resources::conditions::Conditions;
use crate::resources::costs::format_value;
use crate::resources::other_work::OtherWork;
use crate::run::metrics::RunMetrics;
use crate::run::resource_monitor::ResourceUsage;

/// No disk syncs faster than this; a file system in memory does.
const MIN_DISK_SYNC_MS: f64 = 0.01;

/// A larger share of the send delay in p99 is worth a warning.
const NOTICEABLE_DELAY: f64 = 0.1;

/// A larger share of the send delay in p99 makes the latency that of the generator.
const STARVED_DELAY: f64 = 0.5;

/// A generator whose threads use a larger share of a core each limits the rate.
const SATURATED_SHARE: f64 = 0.95;

/// Other work above this share of the CPU time changes costs and rates by more than a gate should tolerate.
const DECISIVE_OTHER_WORK: f64 = 0.1;

/// Reasons to doubt the figures.
pub(super) fn find_warnings(
    conditions: &Conditions,
    metrics: &RunMetrics,
    usage: &ResourceUsage,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(offered) = metrics.offered_load.filter(|offered| !offered.is_reached) {
        warnings.push(format!(
            "{offered}: no figure holds for that rate; lower --rate, or give the run more --connections"
        ));
    }
    if let Some(share) = delay_share(metrics).filter(|share| *share > NOTICEABLE_DELAY) {
        warnings.push(describe_delay(metrics, share));
    }
    if let Some(share) = generator_share(usage).filter(|share| *share > SATURATED_SHARE) {
        warnings.push(describe_saturation(share));
    }
    if let Some(other_work) = usage.other_work.filter(OtherWork::is_significant) {
        warnings.push(format!(
            "other work used the machine ({other_work}): figures are a lower bound"
        ));
    }
    if conditions
        .database
        .as_ref()
        .is_some_and(|database| !database.is_durable())
    {
        warnings.push("commits are not durable (fsync, synchronous_commit): figures do not count".to_owned());
    }
    if conditions.disk_sync_ms.is_some_and(|ms| ms < MIN_DISK_SYNC_MS) {
        warnings.push("syncs do not reach a disk: set TMPDIR to a directory on one".to_owned());
    }
    if conditions.profile.as_deref() == Some("debug") {
        warnings.push("the program is a debug build: figures do not count".to_owned());
    }
    warnings
}

/// Reasons why neither a passed nor a missed threshold says anything about the service.
pub(super) fn find_doubts(metrics: &RunMetrics, usage: &ResourceUsage) -> Vec<String> {
    let delay = delay_share(metrics).filter(|share| *share > STARVED_DELAY);
    let delay = delay.map(|share| describe_delay(metrics, share));
    delay
        .into_iter()
        .chain(find_other_limits(metrics, usage))
        .collect()
}

/// Limits of the generator and the machine. Requests that left late because the service had not answered
/// earlier ones are none.
pub(super) fn find_other_limits(metrics: &RunMetrics, usage: &ResourceUsage) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(own) = metrics.generator_delay_ms
        && own.p99 > metrics.latency_ms.p99 * STARVED_DELAY
    {
        limits.push(format!(
            "the generator is starved: it sent requests up to {} ms (p99) late although a connection was free",
            format_value(Some(own.p99))
        ));
    }
    if let Some(share) = generator_share(usage).filter(|share| *share > SATURATED_SHARE) {
        limits.push(describe_saturation(share));
    }
    if let Some(other_work) = usage
        .other_work
        .filter(|other| other.highest_share() > DECISIVE_OTHER_WORK)
    {
        limits.push(format!(
            "other work used the machine ({other_work}), above {:.0} %: repeat the run on an idle machine",
            DECISIVE_OTHER_WORK * 100.0
        ));
    }
    limits
}

/// Share of the send delay in p99, from 0 to 1; `None` in a closed loop.
fn delay_share(metrics: &RunMetrics) -> Option<f64> {
    let p99 = metrics.latency_ms.p99;
    Some(metrics.send_delay_ms?.p99 / p99).filter(|_| p99 > 0.0)
}

fn describe_delay(metrics: &RunMetrics, share: f64) -> String {
    let delay = metrics.send_delay_ms.map(|delay| delay.p99);
    format!(
        "requests left late: send delay {} ms is {:.0} % of p99 {} ms; give the generator more --connections, --threads or cores, \
         or lower --rate",
        format_value(delay),
        share * 100.0,
        format_value(Some(metrics.latency_ms.p99))
    )
}

/// Share of a core that each generator thread used, from 0 to 1; `None` if not measured.
fn generator_share(usage: &ResourceUsage) -> Option<f64> {
    usage.costs.as_ref()?.generator_share()
}

fn describe_saturation(share: f64) -> String {
    format!(
        "the generator is saturated: each of its threads used {:.0} % of a core; raise --threads",
        share * 100.0
    )
}

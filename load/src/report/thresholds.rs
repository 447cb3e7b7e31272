//! Thresholds of a scenario, checked against the metrics of a run.

use crate::audit::Check;
use crate::resources::costs::format_value;
use crate::run::metrics::RunMetrics;
use crate::traffic::scenario::Thresholds;

/// One check per threshold that the scenario sets.
#[must_use]
pub fn check_thresholds(thresholds: &Thresholds, metrics: &RunMetrics) -> Vec<Check> {
    let check = |name, value: f64, limit: f64, is_met, bound| {
        let detail = format!("{}, {bound} {limit}", format_value(Some(value)));
        Check::new(name, if is_met { Ok(detail) } else { Err(detail) })
    };
    let at_most = |name, value, limit| check(name, value, limit, value <= limit, "at most");
    let (p99, rate, failed) = (metrics.latency_ms.p99, metrics.orders_per_s, metrics.failed_share);
    let checks = [
        thresholds.p99_ms.map(|limit| at_most("p99_ms", p99, limit)),
        thresholds
            .min_rate
            .map(|limit| check("min_rate", rate, limit, rate >= limit, "at least")),
        thresholds
            .max_failed_share
            .map(|limit| at_most("max_failed_share", failed, limit)),
    ];
    checks.into_iter().flatten().collect()
}

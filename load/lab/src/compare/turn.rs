//! One turn of one contender: load, audit, and load average of the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::audit::Audit;
use vouchsafe_load::resources::MonitorTarget;
use vouchsafe_load::resources::conditions::load_average;
use vouchsafe_load::resources::costs::OrderCosts;
use vouchsafe_load::run::driver::{LoadPlan, run_load};
use vouchsafe_load::run::metrics::{Latency, RunMetrics, Setup};
use vouchsafe_load::run::progress::Progress;
use vouchsafe_load::run::resource_monitor::ResourceMonitor;
use vouchsafe_load::traffic::pace::{Pace, RunLength};
use vouchsafe_load::traffic::workload::Workload;

use super::audit_method::AuditMethod;

/// The only allowed outcome in a turn that counts.
const SOLD: &str = "201";

/// Target of a load run.
#[derive(Clone, Debug)]
pub(crate) struct Target {
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
    pub pace: Pace,
    pub warm_up_s: u64,
    pub seconds: u64,
}

/// Results of one turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    pub orders_per_s: f64,
    pub orders: u64,
    pub latency_ms: Latency,
    pub outcomes: BTreeMap<String, u64>,
    pub costs: Option<OrderCosts>,
    pub audit: Audit,
    /// One-minute load average of the machine after the load.
    pub load_average: Option<f64>,
}

impl Turn {
    /// Orders per second, if the turn counts: the audit passed and every measured order was sold.
    pub(crate) fn counted_rate(&self) -> Option<f64> {
        self.rejection_reason().is_none().then_some(self.orders_per_s)
    }

    /// Reason for a turn that does not count.
    pub(crate) fn rejection_reason(&self) -> Option<String> {
        if let Some(check) = self.audit.checks.iter().find(|check| !check.passed) {
            return Some(format!("{}: {}", check.name, check.detail));
        }
        let other = self.outcomes.iter().find(|(outcome, _)| *outcome != SOLD);
        other.map(|(outcome, count)| format!("{count} × {outcome}"))
    }
}

/// Loads and audits one target. Blocks the thread during the load.
pub(crate) async fn run_turn(target: &Target, load: LoadSettings) -> anyhow::Result<Turn> {
    let mut auditor = PartnerClient::new(&target.url, target.credentials.clone())?;
    let opening = target.audit_method.capture_baseline(&mut auditor).await?;
    let plan = load_plan(target, load)?;
    let progress = Progress::default();
    let length = Duration::from_secs(load.seconds);
    let monitor = ResourceMonitor::start(target.monitored.clone(), &progress, length)?;
    let result = run_load(plan, &progress)?;
    let usage = monitor.stop()?;
    let load_average = load_average();
    let metrics = RunMetrics::from_run(describe_setup(target, load), &result);
    let audit = target
        .audit_method
        .audit(&mut auditor, opening, result.tally.acknowledgements)
        .await?;
    Ok(Turn {
        orders_per_s: metrics.orders_per_s,
        orders: metrics.orders,
        latency_ms: metrics.latency_ms,
        outcomes: metrics.outcomes,
        costs: usage.costs,
        audit,
        load_average,
    })
}

fn describe_setup(target: &Target, load: LoadSettings) -> Setup {
    Setup {
        url: target.url.clone(),
        order: format!("1 × {} at 25", target.product),
        pace: load.pace.to_string(),
        ..Setup::default()
    }
}

/// All contenders get the same arrivals.
fn load_plan(target: &Target, load: LoadSettings) -> anyhow::Result<LoadPlan> {
    let workload = Workload::one_sku(&target.product, "25", 1)?;
    let length = RunLength::Time(Duration::from_secs(load.seconds));
    Ok(LoadPlan {
        warm_up: Duration::from_secs(load.warm_up_s),
        ..LoadPlan::single_partner(
            target.url.clone(),
            target.credentials.clone(),
            workload,
            load.pace,
            length,
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use vouchsafe_load::audit::Check;

    use super::*;

    pub(crate) fn turn(orders_per_s: f64, passed: bool) -> Turn {
        Turn {
            orders_per_s,
            orders: 10,
            latency_ms: Latency::default(),
            outcomes: [(SOLD.to_owned(), 10)].into(),
            costs: None,
            audit: Audit {
                checks: vec![Check::new(
                    "vouchers unique",
                    if passed {
                        Ok(String::new())
                    } else {
                        Err("1 repeated".to_owned())
                    },
                )],
            },
            load_average: None,
        }
    }

    #[test]
    fn turn_counts_with_passed_audit_and_sales_only() {
        assert_eq!(turn(10.0, true).counted_rate(), Some(10.0));
        let failed = turn(10.0, false);
        assert_eq!(
            (failed.counted_rate(), failed.rejection_reason().as_deref()),
            (None, Some("vouchers unique: 1 repeated"))
        );
        let mut sold_out = turn(10.0, true);
        sold_out
            .outcomes
            .insert("409 INSUFFICIENT_INVENTORY".to_owned(), 3);
        assert_eq!(sold_out.counted_rate(), None);
        assert_eq!(
            sold_out.rejection_reason().as_deref(),
            Some("3 × 409 INSUFFICIENT_INVENTORY")
        );
    }
}

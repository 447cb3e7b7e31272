//! Run report: metrics, outcomes, audit, machine and database, as text and JSON.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::audit::Audit;
use crate::follow_up::FollowUp;
use crate::resources::database::DurabilitySettings;
use crate::resources::machine::Machine;
use crate::run::metrics::RunMetrics;
use crate::run::resource_monitor::ResourceUsage;

/// Report of one run. Metrics are never published without their audit.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `None` for a run without a scenario.
    pub scenario: Option<ScenarioInfo>,
    #[serde(flatten)]
    pub metrics: RunMetrics,
    /// Results of pauses, restarts, replays and webhooks.
    #[serde(flatten)]
    pub follow_up: FollowUp,
    /// Resource usage; empty if the service is not a local deployment.
    #[serde(flatten)]
    pub usage: ResourceUsage,
    pub audit: Audit,
    pub machine: Machine,
    /// `None` if the database is not accessible.
    pub database: Option<DurabilitySettings>,
}

/// Name and purpose of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioInfo {
    pub name: String,
    pub description: String,
    /// Duration of the seeding, in seconds.
    pub seeding_s: f64,
    pub pauses: Option<u64>,
}

/// Prints a report and writes it as JSON, if a path is given.
///
/// # Errors
/// If the file cannot be written or the terminal is gone.
pub fn publish(report: &(impl Serialize + fmt::Display), json: Option<&Path>) -> std::io::Result<()> {
    use std::io::Write as _;
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(report)?)?;
    }
    write!(std::io::stdout().lock(), "{report}")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scenario) = &self.scenario {
            writeln!(f, "{}: {}", scenario.name, scenario.description)?;
            writeln!(f, "seeded in {:.1} s", scenario.seeding_s)?;
            if let Some(pauses) = scenario.pauses {
                writeln!(f, "pauses of Postgres: {pauses}")?;
            }
        }
        let status = if self.audit.has_passed() {
            "passed"
        } else {
            "FAILED"
        };
        write!(
            f,
            "{}{}{}\naudit: {status}\n{}\nmachine\n  {}\n",
            self.metrics, self.follow_up, self.usage, self.audit, self.machine
        )?;
        match &self.database {
            Some(settings) => writeln!(f, "\ndatabase: {settings}"),
            None => Ok(()),
        }
    }
}

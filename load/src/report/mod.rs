//! Run report: metrics, outcomes, audit, machine and database, as text and JSON. `html.rs` renders the HTML page.

mod html;
mod plot;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::audit::Audit;
use crate::follow_up::FollowUp;
use crate::resources::database::DatabaseFacts;
use crate::resources::machine::Machine;
use crate::run::metrics::RunMetrics;
use crate::run::resource_monitor::ResourceUsage;

pub use self::html::render_html;

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
    /// The machine under test.
    pub machine: Machine,
    /// `None` if the database is not accessible.
    pub database: Option<DatabaseFacts>,
}

/// Name and purpose of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioInfo {
    pub name: String,
    pub question: String,
    /// Duration of the seeding, in seconds.
    #[serde(rename = "furnished_s")]
    pub seeding_s: f64,
    /// Number of pauses of Postgres, if the scenario has any.
    pub pauses: Option<u64>,
}

impl Report {
    /// Writes JSON and HTML files, if paths are given.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, json: Option<&Path>, html: Option<&Path>) -> std::io::Result<()> {
        if let Some(path) = json {
            std::fs::write(path, serde_json::to_vec_pretty(self)?)?;
        }
        if let Some(path) = html {
            std::fs::write(path, render_html(self))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scenario) = &self.scenario {
            writeln!(f, "{}: {}", scenario.name, scenario.question)?;
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
        let after: String = self
            .follow_up
            .lines()
            .iter()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        write!(
            f,
            "{}{}{}\naudit: {status}\n{}\nmachine\n  {}\n",
            self.metrics, after, self.usage, self.audit, self.machine
        )?;
        match &self.database {
            Some(facts) => write!(f, "\ndatabase\n{facts}"),
            None => Ok(()),
        }
    }
}

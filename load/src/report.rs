//! Run report: metrics, outcomes, audit, machine and database, as text and JSON. `html.rs` renders the HTML page.

mod html;
mod metrics;
mod plot;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::audit::Audit;
use crate::database::DatabaseFacts;
use crate::machine::Machine;
use crate::pause_recovery::PauseRecovery;
use crate::replays::ReplayReport;
use crate::resource_monitor::ResourceUsage;
use crate::restart::RestartTimes;
use crate::webhook_receiver::WebhookSummary;

pub use self::html::render_html;
pub use self::metrics::{
    FormMetrics, Latency, PROMPT_REFUSAL_MS, Percentile, RefusalMetrics, RequestMetrics, RunMetrics, Setup,
    request_metrics,
};

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

/// Results of everything that a scenario does besides the load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FollowUp {
    /// Latency recovery after pauses of Postgres.
    #[serde(rename = "aftermath")]
    pub recovery: Option<PauseRecovery>,
    /// Restart times of a killed service.
    pub restarts: Option<RestartTimes>,
    /// Replays after a restart.
    pub replayed: Option<ReplayReport>,
    /// Webhook deliveries, if partners have endpoints.
    pub delivered: Option<WebhookSummary>,
}

impl FollowUp {
    /// One text per result.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let recovery = self.recovery.as_ref().map(ToString::to_string);
        let restarts = self.restarts.as_ref().map(ToString::to_string);
        let replayed = self.replayed.as_ref().map(ToString::to_string);
        let delivered = self.delivered.as_ref().map(ToString::to_string);
        [recovery, restarts, replayed, delivered]
            .into_iter()
            .flatten()
            .collect()
    }
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

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            p50,
            p90,
            p99,
            p99_9,
            max,
        } = self;
        write!(f, "p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p99_9}  max {max}")
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.url, self.order)?;
        writeln!(
            f,
            "{}, {} generator threads, {}, seed {}, warm-up {} s",
            self.pace, self.threads, self.signing, self.seed, self.warm_up_s
        )
    }
}

impl fmt::Display for RunMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (orders, seconds) = (self.orders, self.measured_s);
        writeln!(
            f,
            "{}\n{:.0} orders/s  ({orders} acknowledged in {seconds:.2} s)",
            self.setup, self.orders_per_s
        )?;
        writeln!(f, "latency µs  {}", self.latency_us)?;
        if let Some(late) = self.late_us {
            writeln!(f, "  of which send delay  {late}")?;
        }
        writeln!(f, "{:.0} vouchers/s", self.vouchers_per_s)?;
        for form in &self.forms {
            let (per_s, vouchers) = (form.per_s, form.vouchers_per_s);
            writeln!(
                f,
                "orders of {}: {per_s:.0}/s, {vouchers:.0} vouchers/s, latency µs  {}",
                form.form, form.latency_us
            )?;
        }
        for (status, refused) in &self.refusals {
            let prompt = refused.prompt_share * 100.0;
            writeln!(
                f,
                "rejected with {status}: {:.0}/s, {prompt:.2} % of them within {PROMPT_REFUSAL_MS} ms, latency µs  {}",
                refused.per_s, refused.latency_us
            )?;
        }
        write_counts(f, "outcomes", &self.outcomes)?;
        write_counts(f, "warm-up outcomes", &self.warm_up_outcomes)?;
        for (kind, background) in &self.background {
            writeln!(
                f,
                "{kind}: {:.0}/s, latency µs  {}",
                background.per_s, background.latency_us
            )?;
            write_counts(f, "  outcomes", &background.outcomes)?;
        }
        self.errors
            .iter()
            .try_for_each(|(kind, text)| writeln!(f, "first {kind}: {text}"))
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

fn write_counts(f: &mut fmt::Formatter<'_>, title: &str, counts: &BTreeMap<String, u64>) -> fmt::Result {
    let counts: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{kind} × {count}"))
        .collect();
    writeln!(
        f,
        "{title}: {}",
        if counts.is_empty() {
            "none".to_owned()
        } else {
            counts.join(", ")
        }
    )
}

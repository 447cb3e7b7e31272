//! What does a run say about the service? Figures, outcomes, audit, machine and database, as text and as JSON;
//! `html.rs` makes a page of them.

mod metrics;
mod html;
mod plot;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::pause_recovery::PauseRecovery;
use crate::audit::Audit;
use crate::database::DatabaseFacts;
use crate::machine::Machine;
use crate::webhook_receiver::WebhookSummary;
use crate::replays::ReplayReport;
use crate::restart::RestartTimes;
use crate::resource_monitor::ResourceUsage;

pub use self::metrics::{
    RequestMetrics, RunMetrics, FormMetrics, Latency, Percentile, RefusalMetrics, PROMPT_REFUSAL_MS, Setup, request_metrics,
};
pub use self::html::render_html;

/// The report of one run: figures do not leave without their audit.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario, and what it is to show; `None` of a run without one.
    pub scenario: Option<ScenarioInfo>,
    #[serde(flatten)]
    pub metrics: RunMetrics,
    /// What came after the load, or of pauses in it.
    #[serde(flatten)]
    pub follow_up: FollowUp,
    /// What was used meanwhile; nothing of it where the service is not our own.
    #[serde(flatten)]
    pub usage: ResourceUsage,
    pub audit: Audit,
    /// Where it was measured.
    pub machine: Machine,
    /// The database, if it is known.
    pub database: Option<DatabaseFacts>,
}

/// What a scenario does besides loading.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FollowUp {
    /// How soon everything was as before, after Postgres stood still.
    pub aftermath: Option<PauseRecovery>,
    /// How long a killed service was away.
    pub restarts: Option<RestartTimes>,
    /// What replays came to after that.
    pub replayed: Option<ReplayReport>,
    /// What became of its events, where partners have endpoints.
    pub delivered: Option<WebhookSummary>,
}

impl FollowUp {
    /// As a report says it: a text for each thing that was done.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let aftermath = self.aftermath.as_ref().map(ToString::to_string);
        let restarts = self.restarts.as_ref().map(ToString::to_string);
        let replayed = self.replayed.as_ref().map(ToString::to_string);
        let delivered = self.delivered.as_ref().map(ToString::to_string);
        [aftermath, restarts, replayed, delivered]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// What a scenario is to show.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioInfo {
    pub name: String,
    pub question: String,
    /// How long it took to put everything on sale, in seconds.
    pub furnished_s: f64,
    /// How often Postgres was paused, where that belongs to it.
    pub pauses: Option<u64>,
}

impl Report {
    /// Writes it as JSON and as a page, where files are named.
    ///
    /// # Errors
    /// When a file cannot be written.
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
            writeln!(f, "  of which left late  {late}")?;
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
            let soon = refused.soon * 100.0;
            writeln!(
                f,
                "refused with {status}: {:.0}/s, {soon:.2} % of them within {PROMPT_REFUSAL_MS} ms, latency µs  {}",
                refused.per_s, refused.latency_us
            )?;
        }
        write_counts(f, "outcomes", &self.outcomes)?;
        write_counts(f, "outcomes of the warm-up", &self.warm_up_outcomes)?;
        for (kind, beside) in &self.beside {
            writeln!(
                f,
                "{kind}: {:.0}/s, latency µs  {}",
                beside.per_s, beside.latency_us
            )?;
            write_counts(f, "  outcomes", &beside.outcomes)?;
        }
        self.errors
            .iter()
            .try_for_each(|(kind, text)| writeln!(f, "first of {kind}: {text}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(question) = &self.scenario {
            writeln!(f, "{}: {}", question.name, question.question)?;
            writeln!(f, "furnished in {:.1} s", question.furnished_s)?;
            if let Some(pauses) = question.pauses {
                writeln!(f, "Postgres was paused {pauses} times")?;
            }
        }
        let verdict = if self.audit.has_passed() { "passed" } else { "FAILED" };
        let after: String = self
            .follow_up
            .lines()
            .iter()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        write!(
            f,
            "{}{}{}\naudit: {verdict}\n{}\nmachine\n  {}\n",
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

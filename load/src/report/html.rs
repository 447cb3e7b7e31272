//! HTML report: one file without scripts, fonts or references to other files, in the light or dark theme of
//! the reader.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::baseline::{ComparedFigure, Comparison};
use super::chart::{Axis, Line, chart};
use super::{Report, RunReport, SUMMARY_COLUMNS};
use crate::audit::Check;
use crate::resources::costs::{OrderCosts, format_value};
use crate::resources::usage_series::UsageWindow;
use crate::run::metrics::{LATENCY_COLUMNS, RunMetrics};
use crate::tally::timeline::SeriesWindow;

const BYTES_PER_MIB: f64 = 1_048_576.0;

pub(super) fn render(report: &Report) -> anyhow::Result<String> {
    let title = match &report.runs[..] {
        [run] => format!("Load report: {}", run.name()),
        runs => format!("Load report: {} scenarios", runs.len()),
    };
    let runs: Vec<Markup> = report
        .runs
        .iter()
        .map(run_section)
        .collect::<anyhow::Result<_>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                main {
                    h1 { (title) }
                    @if let Some(first) = report.runs.first() {
                        (definitions("Conditions", first.conditions.rows()))
                    }
                    @for warning in report.warnings() { p.warning { strong { "Warning: " } (warning) } }
                    @if report.runs.len() > 1 { (summary_table(&report.runs)) }
                    @for run in runs { (run) }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn run_section(run: &RunReport) -> anyhow::Result<Markup> {
    let metrics = &run.metrics;
    let series = &metrics.series;
    let follow_up = run.follow_up.to_string();
    Ok(html! {
        section id=(run.name()) {
            h2 { (run.name()) }
            @if let Some(scenario) = &run.scenario { p { (scenario.description) } }
            (tiles(run))
            @if !series.drain.is_empty() {
                p { "The load ends after " (series.windows.len() as u64 * series.window_s) " s; the charts then show the drain." }
            }
            @for chart in run_charts(run)? { (chart) }
            (latency_table(metrics))
            @if !run.thresholds.is_empty() { (check_table("Thresholds", &run.thresholds)) }
            @for line in run.inconclusive_lines().lines() { p.warning { (line) } }
            @if let Some(baseline) = &run.baseline { (baseline_table(baseline)) }
            (check_table("Audit", &run.audit.checks))
            (definitions("Run", run_rows(run)))
            @for line in follow_up.lines() { p { (line) } }
            @if let Some(costs) = &run.usage.costs { (cost_table(costs)) }
        }
    })
}

/// Orders and latencies over time, latencies by percentile, then what the run used over time.
fn run_charts(run: &RunReport) -> anyhow::Result<Vec<Markup>> {
    let series = &run.metrics.series;
    let windows: Vec<_> = series.windows.iter().chain(&series.drain).collect();
    let line = |name, value: fn(&SeriesWindow) -> Option<f64>| {
        // Each window has its point in its middle.
        let at = |index: usize| (index as f64 + 0.5) * series.window_s as f64;
        let points = windows.iter().enumerate();
        Line {
            name,
            points: points.map(|(index, window)| (at(index), value(window))).collect(),
        }
    };
    let mut rates = vec![line("acknowledged", |window| Some(window.orders_per_s))];
    if windows.iter().any(|window| window.others_per_s > 0.0) {
        rates.push(line("not acknowledged", |window| Some(window.others_per_s)));
    }
    let latencies = [
        line("p50", |window| window.p50_ms),
        line("p99", |window| window.p99_ms),
    ];
    let mut charts = vec![
        chart("Throughput over time", Axis::Time, "orders per second", &rates)?,
        chart("Latency over time", Axis::Time, "latency, ms", &latencies)?,
    ];
    let percentiles = run
        .metrics
        .percentiles
        .iter()
        .filter(|(percentile, _)| *percentile < 100.0);
    let nines = percentiles.map(|(percentile, ms)| (2.0 - (100.0 - percentile).log10(), Some(*ms)));
    let latency = Line {
        name: "orders",
        points: nines.collect(),
    };
    if !latency.points.is_empty() {
        charts.push(chart(
            "Latency by percentile",
            Axis::Percentile,
            "latency, ms",
            &[latency],
        )?);
    }
    let usage = &run.usage.usage_series.0;
    let line = |name, value: fn(&UsageWindow) -> Option<f64>| Line {
        name,
        points: usage.iter().map(|window| (window.end_s, value(window))).collect(),
    };
    let cpu = [
        line("service", |window| window.service_cores),
        line("Postgres", |window| window.postgres_cores),
        line("generator", |window| window.generator_cores),
    ];
    let mut wal = vec![line("WAL", |window| {
        Some(window.wal_bytes_per_s? / BYTES_PER_MIB)
    })];
    if usage.iter().any(|window| window.has_checkpoint) {
        wal.push(line("a checkpoint ended", |window| {
            Some(window.wal_bytes_per_s? / BYTES_PER_MIB).filter(|_| window.has_checkpoint)
        }));
    }
    let memory = [line("service", |window| window.memory_mib)];
    for (title, y_label, lines) in [
        ("CPU over time", "busy cores", &cpu[..]),
        ("WAL over time", "MiB per second", &wal),
        ("Memory over time", "resident, MiB", &memory),
    ] {
        let has_values = lines
            .iter()
            .flat_map(|line| &line.points)
            .any(|(_, value)| value.is_some());
        if has_values {
            charts.push(chart(title, Axis::Time, y_label, lines)?);
        }
    }
    Ok(charts)
}

/// The figures to read first.
fn tiles(run: &RunReport) -> Markup {
    let metrics = &run.metrics;
    let ms = |value| format!("{} ms", format_value(Some(value)));
    let tiles = [
        ("orders per second", format!("{:.0}", metrics.orders_per_s), true),
        ("latency p50", ms(metrics.latency_ms.p50), true),
        ("latency p99", ms(metrics.latency_ms.p99), true),
        (
            "not acknowledged",
            format!("{:.2} %", metrics.failed_share * 100.0),
            true,
        ),
    ];
    let offered = metrics.offered_load.map(|offered| {
        let text = if offered.is_reached {
            "reached"
        } else {
            "NOT REACHED"
        };
        ("offered rate", text.to_owned(), offered.is_reached)
    });
    let results = [("audit", &run.audit.checks), ("thresholds", &run.thresholds)]
        .into_iter()
        .filter(|(_, checks)| !checks.is_empty())
        .map(|(name, checks)| {
            let passed = checks.iter().all(|check| check.passed);
            (name, if passed { "passed" } else { "FAILED" }.to_owned(), passed)
        });
    let verdict = run
        .is_inconclusive()
        .then(|| ("verdict", "INCONCLUSIVE".to_owned(), false));
    html! {
        ul.tiles {
            @for (name, value, passed) in tiles.into_iter().chain(offered).chain(results).chain(verdict) {
                li { span { (name) } strong.failed[!passed] { (value) } }
            }
        }
    }
}

fn run_rows(run: &RunReport) -> Vec<(&'static str, String)> {
    let metrics = &run.metrics;
    let setup = &metrics.setup;
    let mut rows = vec![
        ("date", run.conditions.started_at.clone()),
        ("load", setup.order.clone()),
        ("pace", setup.pace.clone()),
        (
            "generator",
            format!("{} threads, seed {}", setup.threads, setup.seed),
        ),
        ("warm-up", format!("{} s", setup.warm_up_s)),
        ("length", setup.length.clone()),
        (
            "measured",
            format!(
                "{:.2} s, {} orders acknowledged",
                metrics.measured_s, metrics.orders
            ),
        ),
    ];
    rows.extend(
        metrics
            .offered_load
            .iter()
            .map(|offered| ("open loop", offered.to_string())),
    );
    rows.extend(metrics.outcome_rows());
    rows.extend(
        run.usage
            .memory
            .iter()
            .map(|memory| ("memory", memory.to_string())),
    );
    rows.extend(
        run.usage
            .other_work
            .iter()
            .map(|other| ("other work", other.to_string())),
    );
    rows
}

fn definitions(title: &str, rows: Vec<(&'static str, String)>) -> Markup {
    html! {
        h3 { (title) }
        div.scroll tabindex="0" {
            table {
                @for (name, value) in rows { tr { th scope="row" { (name) } td { (value) } } }
            }
        }
    }
}

/// A table whose first column has names and whose other columns have figures.
fn figure_table<const N: usize>(
    title: &str,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Markup {
    html! {
        h3 { (title) }
        div.scroll tabindex="0" {
            table.figures {
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 { th scope="row" { (cell) } } @else { td.failed[is_failure(cell)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn is_failure(cell: &str) -> bool {
    ["FAILED", "MISSED", "INCONCLUSIVE"]
        .iter()
        .any(|word| cell.ends_with(word))
}

fn summary_table(runs: &[RunReport]) -> Markup {
    html! {
        (figure_table("Summary", SUMMARY_COLUMNS, runs.iter().map(RunReport::summary)))
        nav { @for run in runs { a href=(format!("#{}", run.name())) { (run.name()) } " " } }
    }
}

fn latency_table(metrics: &RunMetrics) -> Markup {
    figure_table("Rates and latencies", LATENCY_COLUMNS, metrics.latency_rows())
}

fn baseline_table(baseline: &Comparison) -> Markup {
    let title = format!("Compared with the run of {}", baseline.started_at);
    let head = ["", "baseline", "current", "ratio"];
    html! {
        (figure_table(&title, head, baseline.figures.iter().map(ComparedFigure::cells)))
        @for difference in &baseline.differences { p.warning { "Differs: " (difference) } }
    }
}

fn cost_table(costs: &OrderCosts) -> Markup {
    let rows = costs.rows().into_iter().map(|row| {
        let indent = if row.is_part { "\u{2003}" } else { "" };
        [format!("{indent}{}", row.name), format_value(row.value)]
    });
    let title = format!(
        "Cost per order, of {} orders in {:.2} s",
        costs.orders, costs.seconds
    );
    figure_table(&title, ["", "per order"], rows)
}

fn check_table(title: &str, checks: &[Check]) -> Markup {
    html! {
        h3 { (title) }
        div.scroll tabindex="0" {
            table {
                @for check in checks {
                    tr {
                        td.passed[check.passed].failed[!check.passed] { (check.status()) }
                        th scope="row" { (check.name) }
                        td { (check.detail) }
                    }
                }
            }
        }
    }
}

//! HTML report: a single file without scripts, fonts or external references.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Report;
use super::plot::{Mark, Plot, linear};
use crate::resources::costs::cost_rows;
use crate::run::metrics::{PROMPT_REFUSAL_MS, Percentile};
use crate::tally::timeline::TimelineSecond;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.failed { color: #b3261e; font-weight: 600; } .passed { color: #1a7f37; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: #57606a; }
.grid { stroke: #d8dee4; } polyline { fill: none; stroke: #0969da; stroke-width: 2; }
pre { white-space: pre-wrap; background: #f6f8fa; padding: 1rem; }
";

/// Labelled quantiles of the latency curve.
const LABELLED_QUANTILES: [(f64, &str); 6] = [
    (0.0, "0"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999 %"),
];

/// Renders the HTML report.
#[must_use]
pub fn render_html(report: &Report) -> String {
    let title = report
        .scenario
        .as_ref()
        .map_or("Load run", |scenario| scenario.name.as_str());
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                @if let Some(scenario) = &report.scenario { p { (scenario.question) } }
                (metrics_table(report))
                (latency_curve(&report.metrics.percentiles).svg())
                (over_time("Acknowledged orders per second", &report.metrics.seconds, |second| second.orders as f64).svg())
                (over_time("Slowest order per second, ms", &report.metrics.seconds, slowest_ms).svg())
                @for line in report.follow_up.lines() { p { (line) } }
                @if let Some(memory) = &report.usage.memory { p { (memory) } }
                (cost_table(report))
                (audit_table(report))
                h2 { "Full report" }
                pre { (report) }
            }
        }
    };
    markup.into_string()
}

fn metrics_table(report: &Report) -> Markup {
    let metrics = &report.metrics;
    let mut rows = vec![("order".to_owned(), metrics.orders_per_s, metrics.latency_us)];
    rows.extend(metrics.forms.iter().map(|form| {
        let name = format!("order of {}", form.form);
        (name, form.per_s, form.latency_us)
    }));
    rows.extend(metrics.refusals.iter().map(|(status, rejected)| {
        let prompt = rejected.prompt_share * 100.0;
        let name = format!("rejected with {status}, {prompt:.2} % within {PROMPT_REFUSAL_MS} ms");
        (name, rejected.per_s, rejected.latency_us)
    }));
    let background = metrics.background.iter();
    rows.extend(background.map(|(kind, background)| (kind.clone(), background.per_s, background.latency_us)));
    html! {
        p { (format!("{:.0} vouchers/s", metrics.vouchers_per_s)) }
        table {
            tr { th { "" } th { "per second" } th { "p50 ms" } th { "p90" } th { "p99" } th { "p99.9" } th { "max" } }
            @for (kind, per_s, latency) in rows {
                tr {
                    td { (kind) }
                    td.number { (format!("{per_s:.0}")) }
                    @for us in [latency.p50, latency.p90, latency.p99, latency.p99_9, latency.max] {
                        td.number { (format!("{:.1}", us as f64 / 1_000.0)) }
                    }
                }
            }
        }
    }
}

fn cost_table(report: &Report) -> Markup {
    let Some(costs) = &report.usage.costs else {
        return html! {};
    };
    html! {
        h2 { "Cost per order" }
        table {
            tr { th { "" } th { "CPU µs" } th { "voluntary" } th { "involuntary" } }
            @for row in cost_rows(costs) {
                tr {
                    td { @if row.part { "\u{2003}" } (row.name) }
                    @for cell in &row.cells { td.number { (cell) } }
                }
            }
        }
    }
}

fn audit_table(report: &Report) -> Markup {
    let passed = report.audit.has_passed();
    html! {
        h2 { "Audit: " span class=(if passed { "passed" } else { "failed" }) { @if passed { "passed" } @else { "FAILED" } } }
        table {
            @for check in &report.audit.checks {
                tr {
                    td class=(if check.passed { "passed" } else { "failed" }) { @if check.passed { "ok" } @else { "FAILED" } }
                    td { (check.name) }
                    td { (check.detail) }
                }
            }
        }
    }
}

/// Axis position of a quantile: each additional nine has the same width, up to five.
fn quantile_position(share: f64) -> f64 {
    let last = LABELLED_QUANTILES.len() - 1;
    (-(1.0 - share).log10() / last as f64).clamp(0.0, 1.0)
}

fn latency_curve(percentiles: &[Percentile]) -> Plot {
    let ms = |point: &Percentile| point.us as f64 / 1_000.0;
    let (y_marks, top) = linear(percentiles.iter().map(ms).fold(0.0, f64::max));
    let x_marks = LABELLED_QUANTILES
        .iter()
        .map(|(share, text)| Mark {
            at: quantile_position(*share),
            text: (*text).to_owned(),
        })
        .collect();
    Plot {
        title: "Latency of acknowledged orders by percentile, ms",
        x_marks,
        y_marks,
        points: percentiles
            .iter()
            .map(|point| (quantile_position(point.share), ms(point) / top))
            .collect(),
    }
}

fn slowest_ms(second: &TimelineSecond) -> f64 {
    second.slowest_us as f64 / 1_000.0
}

fn over_time(
    title: &'static str,
    seconds: &[TimelineSecond],
    value: impl Fn(&TimelineSecond) -> f64,
) -> Plot {
    let (y_marks, top) = linear(seconds.iter().map(&value).fold(0.0, f64::max));
    let (x_marks, end) = linear(seconds.len() as f64);
    Plot {
        title,
        x_marks,
        y_marks,
        points: seconds
            .iter()
            .enumerate()
            // Centers each point in its second.
            .map(|(index, second)| ((index as f64 + 0.5) / end, value(second) / top))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_axis_has_equal_width_per_nine() {
        for (index, (share, _)) in LABELLED_QUANTILES.iter().enumerate() {
            let expected = index as f64 / 5.0;
            assert!((quantile_position(*share) - expected).abs() < 1e-6, "{share}");
        }
        assert!((quantile_position(1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn empty_run_is_plotted() {
        assert!(latency_curve(&[]).svg().into_string().contains("svg"));
        assert!(
            over_time("t", &[], slowest_ms)
                .svg()
                .into_string()
                .contains("svg")
        );
    }
}

//! What does the page of a report look like? One file that needs nothing beside it: no script, no font, no address.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::{Mark, Plot, linear};
use super::{Percentile, Report, PROMPT_REFUSAL_MS};
use crate::costs::cost_rows;
use crate::timeline::TimelineSecond;

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

/// Shares that the curve of latencies names.
const NAMED_SHARES: [(f64, &str); 6] = [
    (0.0, "0"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999 %"),
];

/// The page of a report.
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
                (figures(report))
                (latency_curve(&report.metrics.percentiles).svg())
                (over_time("Orders acknowledged, each second", &report.metrics.seconds, |second| second.orders as f64).svg())
                (over_time("The slowest order of each second, ms", &report.metrics.seconds, slowest_ms).svg())
                @for line in report.follow_up.lines() { p { (line) } }
                @if let Some(memory) = &report.usage.memory { p { (memory) } }
                (costs(report))
                (audit(report))
                h2 { "All of it" }
                pre { (report) }
            }
        }
    };
    markup.into_string()
}

fn figures(report: &Report) -> Markup {
    let figures = &report.metrics;
    let mut rows = vec![("order".to_owned(), figures.orders_per_s, figures.latency_us)];
    rows.extend(figures.forms.iter().map(|form| {
        let name = format!("order of {}", form.form);
        (name, form.per_s, form.latency_us)
    }));
    rows.extend(figures.refusals.iter().map(|(status, refused)| {
        let soon = refused.soon * 100.0;
        let name = format!("refused with {status}, {soon:.2} % within {PROMPT_REFUSAL_MS} ms");
        (name, refused.per_s, refused.latency_us)
    }));
    let beside = figures.beside.iter();
    rows.extend(beside.map(|(kind, beside)| (kind.clone(), beside.per_s, beside.latency_us)));
    html! {
        p { (format!("{:.0} vouchers/s", figures.vouchers_per_s)) }
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

fn costs(report: &Report) -> Markup {
    let Some(costs) = &report.usage.costs else {
        return html! {};
    };
    html! {
        h2 { "Costs of an order" }
        table {
            tr { th { "" } th { "CPU µs" } th { "waits" } th { "made wait" } }
            @for row in cost_rows(costs) {
                tr {
                    td { @if row.part { "\u{2003}" } (row.name) }
                    @for cell in &row.cells { td.number { (cell) } }
                }
            }
        }
    }
}

fn audit(report: &Report) -> Markup {
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

/// Where a share stands: each nine as wide as the one before it, up to the fifth.
fn nines(share: f64) -> f64 {
    let last = NAMED_SHARES.len() - 1;
    (-(1.0 - share).log10() / last as f64).clamp(0.0, 1.0)
}

fn latency_curve(percentiles: &[Percentile]) -> Plot {
    let ms = |point: &Percentile| point.us as f64 / 1_000.0;
    let (y_marks, top) = linear(percentiles.iter().map(ms).fold(0.0, f64::max));
    let x_marks = NAMED_SHARES
        .iter()
        .map(|(share, text)| Mark {
            at: nines(*share),
            text: (*text).to_owned(),
        })
        .collect();
    Plot {
        title: "Latency of acknowledged orders by percentile, ms",
        x_marks,
        y_marks,
        points: percentiles
            .iter()
            .map(|point| (nines(point.share), ms(point) / top))
            .collect(),
    }
}

fn slowest_ms(second: &TimelineSecond) -> f64 {
    second.slowest_us as f64 / 1_000.0
}

fn over_time(title: &'static str, seconds: &[TimelineSecond], value: impl Fn(&TimelineSecond) -> f64) -> Plot {
    let (y_marks, top) = linear(seconds.iter().map(&value).fold(0.0, f64::max));
    let (x_marks, end) = linear(seconds.len() as f64);
    Plot {
        title,
        x_marks,
        y_marks,
        points: seconds
            .iter()
            .enumerate()
            // In the middle of its second.
            .map(|(index, second)| ((index as f64 + 0.5) / end, value(second) / top))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_is_as_wide_as_the_one_before() {
        for (index, (share, _)) in NAMED_SHARES.iter().enumerate() {
            let expected = index as f64 / 5.0;
            assert!((nines(*share) - expected).abs() < 1e-6, "{share}");
        }
        assert!((nines(1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_without_orders_is_drawn_too() {
        assert!(latency_curve(&[]).svg().into_string().contains("svg"));
        assert!(
            over_time("t", &[], slowest_ms)
                .svg()
                .into_string()
                .contains("svg")
        );
    }
}

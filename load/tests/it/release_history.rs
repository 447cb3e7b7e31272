//! The history of releases in the performance page is what `docs/performance/history.jsonl` says.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

const LINES: &str = include_str!("../../../docs/performance/history.jsonl");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");

/// The page has the table between them.
const BEGIN: &str = "<!-- history: begin, from performance/history.jsonl -->\n";
const END: &str = "<!-- history: end -->\n";

/// Figures of the file, in the order of the page, which omits those that no release has.
const FIGURES: [(&str, &str); 12] = [
    ("peer_ratio.256", "orders/s relative to the peer, 256 connections"),
    ("peer_ratio.64", "orders/s relative to the peer, 64 connections"),
    (
        "floor_share.256",
        "orders/s relative to the floor behind HTTP, 256 connections",
    ),
    (
        "service_cpu_us.256",
        "CPU of the service per order, µs, 256 connections",
    ),
    ("postgres_cpu_us.256", "CPU of Postgres per order, µs"),
    (
        "generator_cpu_us.256",
        "CPU of the generator per order, µs: the machine's speed",
    ),
    ("wal_bytes.256", "WAL per order, bytes"),
    (
        "instructions.16",
        "instructions per order, `dist`, 16 connections",
    ),
    (
        "instructions.256",
        "instructions per order, `dist`, 256 connections",
    ),
    ("allocations.16", "allocations per order, 16 connections"),
    ("statements.1", "statements per order, 1 connection"),
    ("idle_statements_per_s", "statements per second of an idle node"),
];

/// Figures of the chart, each relative to the first release that has it.
const DRAWN: [&str; 3] = ["peer_ratio.256", "instructions.16", "wal_bytes.256"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    version: String,
    commit: String,
    /// Day of the measurement.
    date: String,
    figures: BTreeMap<String, f64>,
}

fn releases() -> Vec<Release> {
    let parse = |line| serde_json::from_str(line).unwrap();
    LINES.lines().map(parse).collect()
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn table(releases: &[Release]) -> String {
    let column = |value: fn(&Release) -> String| releases.iter().map(value);
    let mut table = row(["Release".to_owned()]
        .into_iter()
        .chain(column(|release| release.version.clone())));
    table += &format!("|---|{}\n", "---|".repeat(releases.len()));
    table += &row(["commit".to_owned()]
        .into_iter()
        .chain(column(|release| format!("`{}`", release.commit))));
    table += &row(["measured on".to_owned()]
        .into_iter()
        .chain(column(|release| release.date.clone())));
    for (name, label) in FIGURES {
        let values: Vec<_> = releases.iter().map(|release| release.figures.get(name)).collect();
        if values.iter().any(Option::is_some) {
            let shown = |value: Option<&f64>| value.map_or_else(|| "not measured".to_owned(), f64::to_string);
            table += &row([label.to_owned()]
                .into_iter()
                .chain(values.into_iter().map(shown)));
        }
    }
    table
}

/// One line per figure over the releases that have all of them; nothing before the second of them.
fn chart(releases: &[Release]) -> String {
    let complete: Vec<_> = releases
        .iter()
        .filter(|release| DRAWN.iter().all(|name| release.figures.contains_key(*name)))
        .collect();
    let (Some(first), true) = (complete.first(), complete.len() > 1) else {
        return String::new();
    };
    let list = |values: Vec<String>| format!("[{}]", values.join(", "));
    let versions = list(
        complete
            .iter()
            .map(|release| format!("\"{}\"", release.version))
            .collect(),
    );
    let mut chart = format!(
        "\n```mermaid\nxychart-beta\n    title \"{}, relative to {}\"\n    x-axis {versions}\n",
        DRAWN.join(", "),
        first.version
    );
    for name in DRAWN {
        let relative = |release: &&Release| format!("{:.3}", release.figures[name] / first.figures[name]);
        writeln!(
            chart,
            "    line {}",
            list(complete.iter().map(relative).collect())
        )
        .unwrap();
    }
    chart + "```\n"
}

#[test]
fn performance_page_has_the_history_of_releases() {
    let releases = releases();
    for release in &releases {
        for name in release.figures.keys() {
            assert!(
                FIGURES.iter().any(|(figure, _)| figure == name),
                "{name} has no row in the page"
            );
        }
    }
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!(
        "{before}{BEGIN}{}{}{END}{after}",
        table(&releases),
        chart(&releases)
    );
    if std::env::var_os("VOUCHSAFE_REWRITE_DOCS").is_some() {
        std::fs::write(PAGE, expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/performance.md differs from history.jsonl; this command writes it: \
         VOUCHSAFE_REWRITE_DOCS=1 cargo test -p vouchsafe-load --test it release_history"
    );
}

#[test]
fn chart_is_relative_to_the_first_complete_release() {
    let release = |version: &str, figures: &[(&str, f64)]| Release {
        version: version.to_owned(),
        commit: String::new(),
        date: String::new(),
        figures: figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
    };
    let all = |factor: f64| DRAWN.map(|name| (name, 10.0 * factor));
    let mut releases = vec![release("1", &[]), release("2", &all(1.0))];
    assert_eq!(chart(&releases), "");
    releases.push(release("3", &all(1.05)));
    let chart = chart(&releases);
    assert!(
        chart.contains("x-axis [\"2\", \"3\"]") && chart.contains("line [1.000, 1.050]"),
        "{chart}"
    );
}

//! How are costs shown? As rows of text that the terminal and the page have in common.

use std::fmt;

use super::{OrderCosts, ThreadCost, Component};

/// What a cell says that nothing is known for.
const NOT_MEASURED: &str = "not measured";

/// One row: what it is about, and its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRow {
    /// What it is about.
    pub name: String,
    /// Whether it is a part of the last one that is not.
    pub part: bool,
    /// CPU time in µs, waits, and times it was made to wait; or one cell.
    pub cells: Vec<String>,
}

/// The rows of a table of costs.
#[must_use]
pub fn cost_rows(costs: &OrderCosts) -> Vec<CostRow> {
    let mut rows = Vec::new();
    match &costs.parts {
        None => rows.push(one("CPU", NOT_MEASURED.to_owned())),
        Some(parts) => {
            for who in [Component::Service, Component::Postgres, Component::Generator] {
                let his: Vec<&ThreadCost> = parts.iter().filter(|part| part.who == who).collect();
                rows.extend(told(who, &his));
            }
        }
    }
    for (name, us) in [
        ("others on the machine", costs.others_us),
        ("nobody, idle", costs.idle_us),
    ] {
        rows.extend(us.map(|us| one(name, format_value(us))));
    }
    rows.extend(log(costs));
    if let Some(records) = costs.records_per_batch {
        rows.push(one("records a commit of the journal", format_value(records)));
    }
    rows
}

/// All of somebody's, then its parts, the dearest first; what is below a hundredth of a microsecond is left out.
fn told(who: Component, parts: &[&ThreadCost]) -> Vec<CostRow> {
    let sum = |of: fn(&ThreadCost) -> f64| parts.iter().map(|part| of(part)).sum();
    let mut rows = vec![row(
        who.name().to_owned(),
        false,
        [
            sum(|part| part.cpu_us),
            sum(|part| part.voluntary_switches),
            sum(|part| part.involuntary_switches),
        ],
    )];
    let mut dearest: Vec<_> = parts.iter().filter(|part| part.cpu_us >= 0.01).collect();
    dearest.sort_by(|one, other| other.cpu_us.total_cmp(&one.cpu_us));
    rows.extend(dearest.into_iter().map(|part| {
        let name = match part.tasks {
            0 | 1 => part.name.clone(),
            tasks => format!("{} ({tasks})", part.name),
        };
        row(
            name,
            true,
            [part.cpu_us, part.voluntary_switches, part.involuntary_switches],
        )
    }));
    rows
}

fn log(costs: &OrderCosts) -> Vec<CostRow> {
    let Some(log) = &costs.log else {
        return vec![one("log and commits", NOT_MEASURED.to_owned())];
    };
    let mut rows = vec![one("log, bytes", format_value(log.bytes))];
    for (name, bytes) in [
        ("of records", log.record_bytes),
        ("of images of pages", log.image_bytes),
    ] {
        let mut row = one(name, bytes.map_or(NOT_MEASURED.to_owned(), format_value));
        row.part = true;
        rows.push(row);
    }
    rows.extend([
        one("log, records", format_value(log.records)),
        one("log, images of pages", format_value(log.images)),
        one("commits", format_value(log.commits)),
    ]);
    rows
}

fn row(name: String, part: bool, figures: [f64; 3]) -> CostRow {
    let cells = figures.map(format_value).into();
    CostRow { name, part, cells }
}

fn one(name: &str, cell: String) -> CostRow {
    CostRow {
        name: name.to_owned(),
        part: false,
        cells: vec![cell],
    }
}

/// Three digits of a small figure, and none behind the point of a large one.
#[must_use]
pub fn format_value(value: f64) -> String {
    // A sum of nothing is −0.
    match value + 0.0 {
        value if value >= 1_000.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

impl fmt::Display for OrderCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "costs of an order ({} acknowledged in {:.2} s)\n{:<48}{:>12}{:>12}{:>12}",
            self.orders, self.seconds, "", "CPU µs", "waits", "made wait"
        )?;
        for row in cost_rows(self) {
            let indent = if row.part { "    " } else { "  " };
            write!(f, "{:<48}", format!("{indent}{}", row.name))?;
            for cell in &row.cells {
                write!(f, "{cell:>12}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! Cost table: rows of text for terminal and HTML report.

use std::fmt;

use super::{Component, OrderCosts, ThreadCost};

/// Cell text for missing values.
const NOT_MEASURED: &str = "not measured";

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRow {
    pub name: String,
    /// Whether the row details the row above it.
    pub part: bool,
    /// CPU time in µs, voluntary and involuntary context switches; or a single cell.
    pub cells: Vec<String>,
}

/// Renders costs as table rows.
#[must_use]
pub fn cost_rows(costs: &OrderCosts) -> Vec<CostRow> {
    let mut rows = Vec::new();
    match &costs.parts {
        None => rows.push(single_cell_row("CPU", NOT_MEASURED.to_owned())),
        Some(parts) => {
            for component in [Component::Service, Component::Postgres, Component::Generator] {
                let own: Vec<&ThreadCost> = parts.iter().filter(|part| part.component == component).collect();
                rows.extend(component_rows(component, &own));
            }
        }
    }
    for (name, us) in [("other processes", costs.others_us), ("idle", costs.idle_us)] {
        rows.extend(us.map(|us| single_cell_row(name, format_value(us))));
    }
    rows.extend(wal_rows(costs));
    if let Some(records) = costs.records_per_batch {
        rows.push(single_cell_row(
            "journal records per commit",
            format_value(records),
        ));
    }
    rows
}

/// The sum of a component and its threads in descending order of CPU time. Omits threads below 0.01 µs.
fn component_rows(component: Component, parts: &[&ThreadCost]) -> Vec<CostRow> {
    let sum = |of: fn(&ThreadCost) -> f64| parts.iter().map(|part| of(part)).sum();
    let mut rows = vec![triple_row(
        component.name().to_owned(),
        false,
        [
            sum(|part| part.cpu_us),
            sum(|part| part.voluntary_switches),
            sum(|part| part.involuntary_switches),
        ],
    )];
    let mut by_cpu: Vec<_> = parts.iter().filter(|part| part.cpu_us >= 0.01).collect();
    by_cpu.sort_by(|single_cell_row, other| other.cpu_us.total_cmp(&single_cell_row.cpu_us));
    rows.extend(by_cpu.into_iter().map(|part| {
        let name = match part.tasks {
            0 | 1 => part.name.clone(),
            tasks => format!("{} ({tasks})", part.name),
        };
        triple_row(
            name,
            true,
            [part.cpu_us, part.voluntary_switches, part.involuntary_switches],
        )
    }));
    rows
}

fn wal_rows(costs: &OrderCosts) -> Vec<CostRow> {
    let Some(wal) = &costs.wal else {
        return vec![single_cell_row("WAL and commits", NOT_MEASURED.to_owned())];
    };
    let mut rows = vec![single_cell_row("WAL, bytes", format_value(wal.bytes))];
    for (name, bytes) in [
        ("records", wal.record_bytes),
        ("full-page images", wal.image_bytes),
    ] {
        let mut triple_row = single_cell_row(name, bytes.map_or(NOT_MEASURED.to_owned(), format_value));
        triple_row.part = true;
        rows.push(triple_row);
    }
    rows.extend([
        single_cell_row("WAL records", format_value(wal.records)),
        single_cell_row("WAL full-page images", format_value(wal.images)),
        single_cell_row("commits", format_value(wal.commits)),
    ]);
    rows
}

fn triple_row(name: String, part: bool, figures: [f64; 3]) -> CostRow {
    let cells = figures.map(format_value).into();
    CostRow { name, part, cells }
}

fn single_cell_row(name: &str, cell: String) -> CostRow {
    CostRow {
        name: name.to_owned(),
        part: false,
        cells: vec![cell],
    }
}

/// Formats with three decimals below 10, one below 1,000, and none above.
#[must_use]
pub fn format_value(value: f64) -> String {
    // The sum of an empty iterator is -0.0.
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
            "cost per order ({} acknowledged in {:.2} s)\n{:<48}{:>12}{:>12}{:>12}",
            self.orders, self.seconds, "", "CPU µs", "voluntary", "involuntary"
        )?;
        for triple_row in cost_rows(self) {
            let indent = if triple_row.part { "    " } else { "  " };
            write!(f, "{:<48}", format!("{indent}{}", triple_row.name))?;
            for cell in &triple_row.cells {
                write!(f, "{cell:>12}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! Text report of a comparison: medians and ranges, ratios within rounds, rejected turns with reasons, durability
//! settings, table sizes and load of the machine.

use std::fmt;

use super::contender::{Column, CompareReport, Contender};
use super::statistics::Spread;
use super::turn::Turn;
use crate::resources::costs::{Component, OrderCosts, ThreadCost, format_value};
use crate::traffic::pace::Pace;

const US_PER_MS: f64 = 1_000.0;

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine: {}", self.machine)?;
        match &self.search {
            Some(search) => write!(f, "peer: {}, selected from\n{}", self.variant, search.ranking())?,
            None => writeln!(f, "peer: {}", self.variant)?,
        }
        let mut pace = None;
        for column in &self.columns {
            if pace != Some(column.load.pace) {
                pace = Some(column.load.pace);
                write_header(f, column)?;
            }
            write_row(f, self, column)?;
        }
        write_costs(f, &self.columns)?;
        writeln!(f, "\nplain batch inserts without HTTP, best batch size")?;
        for floor in &self.floors {
            match floor.limit() {
                Some(limit) => writeln!(f, "  {limit} orders/s")?,
                None => writeln!(f, "  does not count: {}", floor.rows.detail)?,
            }
        }
        writeln!(f, "\nservice database\n{}", self.service_database)?;
        writeln!(f, "peer database\n{}", self.peer_database)?;
        match self.floors.last() {
            Some(floor) => write!(f, "floor statement\n{}", floor.sql),
            None => Ok(()),
        }
    }
}

fn write_header(f: &mut fmt::Formatter<'_>, column: &Column) -> fmt::Result {
    let load = column.load;
    writeln!(
        f,
        "\n{}, {} s after {} s of warm-up, rounds: {}",
        load.pace,
        load.seconds,
        load.warm_up_s,
        column.turns.len()
    )?;
    writeln!(
        f,
        "{:<20}{:>28}{:>10}{:>10}{:>10}  {:<20}load average",
        "", "orders/s", "p50 ms", "p99 ms", "p99.9 ms", "ratio to peer"
    )
}

fn write_row(f: &mut fmt::Formatter<'_>, report: &CompareReport, column: &Column) -> fmt::Result {
    let spread = column
        .spread()
        .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
    let latencies: [fn(&Turn) -> u64; 3] = [|turn| turn.p50_us, |turn| turn.p99_us, |turn| turn.p99_9_us];
    let [p50, p99, p99_9] = latencies.map(|select| {
        let median = column.median(|turn| Some(select(turn) as f64));
        median.map_or_else(String::new, format_ms)
    });
    let ratio = report
        .ratio(column.contender, Contender::Peer, column.load.pace)
        .map_or_else(String::new, format_ratio);
    let loads = column.turns.iter().filter_map(|turn| turn.machine.load_after);
    let load = Spread::from_values(loads)
        .map_or_else(String::new, |load| format!("{:.1} to {:.1}", load.min, load.max));
    writeln!(
        f,
        "{:<20}{spread:>28}{p50:>10}{p99:>10}{p99_9:>10}  {ratio:<20}{load}",
        column.contender.name()
    )?;
    for reason in column.turns.iter().filter_map(Turn::rejection_reason) {
        writeln!(f, "  does not count: {reason}")?;
    }
    Ok(())
}

/// Cost per order by contender and load: medians of the turns that count.
fn write_costs(f: &mut fmt::Formatter<'_>, columns: &[Column]) -> fmt::Result {
    writeln!(
        f,
        "\ncost per order, medians\n{:<36}{:>12}{:>12}{:>12}{:>10}{:>10}{:>12}{:>10}",
        "", "itself, µs", "Postgres", "generator", "vol. csw", "inv. csw", "WAL, bytes", "commits"
    )?;
    for column in columns {
        let pace = match column.load.pace {
            Pace::Closed { connections } => format!("{connections} connections"),
            Pace::Open { per_second, .. } => format!("{per_second}/s"),
        };
        write!(f, "{:<36}", format!("{}, {pace}", column.contender.name()))?;
        for (select, width) in COST_COLUMNS {
            let median = column.median(|turn| select(turn.costs.as_ref()?));
            let cell = median.map_or_else(|| "–".to_owned(), format_value);
            write!(f, "{cell:>width$}")?;
        }
        writeln!(f)?;
    }
    writeln!(f, "–: not measured")
}

/// Selects a cost metric.
type CostSelector = fn(&OrderCosts) -> Option<f64>;

/// Cost metrics with column widths.
const COST_COLUMNS: [(CostSelector, usize); 7] = [
    (|costs| costs.cpu_us(Component::Service), 12),
    (|costs| costs.cpu_us(Component::Postgres), 12),
    (|costs| costs.cpu_us(Component::Generator), 12),
    (
        |costs| context_switches(costs, |part| part.voluntary_switches),
        10,
    ),
    (
        |costs| context_switches(costs, |part| part.involuntary_switches),
        10,
    ),
    (|costs| Some(costs.wal?.bytes), 12),
    (|costs| Some(costs.wal?.commits), 10),
];

/// Context switches of all components except the generator.
fn context_switches(costs: &OrderCosts, select: fn(&ThreadCost) -> f64) -> Option<f64> {
    let parts = costs.parts.as_ref()?.iter();
    Some(
        parts
            .filter(|part| part.component != Component::Generator)
            .map(select)
            .sum(),
    )
}

fn format_ms(latency_us: f64) -> String {
    format!("{:.1}", latency_us / US_PER_MS)
}

fn format_ratio(ratio: Spread) -> String {
    let Spread { median, min, max, .. } = ratio;
    format!("{median:.2} × ({min:.2}–{max:.2})")
}

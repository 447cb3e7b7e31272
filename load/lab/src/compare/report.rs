//! Text report of a comparison: medians and ranges, ratios within rounds, rejected turns with reasons, durability
//! settings and load of the machine.

use std::fmt;

use vouchsafe_load::resources::costs::{OrderCosts, format_value};
use vouchsafe_load::resources::proc::Component;
use vouchsafe_load::statistics::Spread;
use vouchsafe_load::traffic::pace::Pace;

use super::contender::{Column, CompareReport, Contender};
use super::turn::Turn;

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.conditions)?;
        writeln!(f, "peer with a pool of {}", self.pool)?;
        let mut pace = None;
        for column in &self.columns {
            if pace != Some(column.load.pace) {
                pace = Some(column.load.pace);
                write_header(f, column)?;
            }
            write_row(f, self, column)?;
        }
        write_costs(f, &self.columns)
    }
}

fn write_header(f: &mut fmt::Formatter<'_>, column: &Column) -> fmt::Result {
    let (load, rounds) = (column.load, column.turns.len());
    writeln!(
        f,
        "\n{}, {} s after {} s of warm-up, rounds: {rounds}",
        load.pace, load.seconds, load.warm_up_s
    )?;
    writeln!(
        f,
        "{:<20}{:>28}{:>10}{:>10}  {:<24}load average",
        "", "orders/s", "p50 ms", "p99 ms", "ratio to peer"
    )
}

fn write_row(f: &mut fmt::Formatter<'_>, report: &CompareReport, column: &Column) -> fmt::Result {
    let spread = column
        .spread()
        .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
    let latencies: [fn(&Turn) -> f64; 2] = [|turn| turn.latency_ms.p50, |turn| turn.latency_ms.p99];
    let [p50, p99] = latencies.map(|select| {
        let median = column.median(|turn| Some(select(turn)));
        median.map_or_else(String::new, |ms| format!("{ms:.1}"))
    });
    let ratio = report.ratio(column.contender, Contender::Peer, column.load.pace);
    let ratio = ratio.map_or_else(String::new, |Spread { median, min, max, .. }| {
        format!("{median:.2} × ({min:.2}–{max:.2})")
    });
    let loads = column.turns.iter().filter_map(|turn| turn.load_average);
    let load = Spread::from_values(loads)
        .map_or_else(String::new, |load| format!("{:.1} to {:.1}", load.min, load.max));
    writeln!(
        f,
        "{:<20}{spread:>28}{p50:>10}{p99:>10}  {ratio:<24}{load}",
        column.contender.name()
    )?;
    for reason in column.turns.iter().filter_map(Turn::rejection_reason) {
        writeln!(f, "  does not count: {reason}")?;
    }
    Ok(())
}

/// Selects a cost metric.
type CostSelector = fn(&OrderCosts) -> Option<f64>;

/// Cost metrics with column titles.
const COST_COLUMNS: [(&str, CostSelector); 5] = [
    ("contender, µs", |costs| costs.cpu_us(Component::Service)),
    ("Postgres, µs", |costs| costs.cpu_us(Component::Postgres)),
    ("generator, µs", |costs| costs.cpu_us(Component::Generator)),
    ("WAL, bytes", |costs| Some(costs.wal?.bytes)),
    ("commits", |costs| Some(costs.wal?.commits)),
];

/// Cost per order by contender and load: medians of the turns that count.
fn write_costs(f: &mut fmt::Formatter<'_>, columns: &[Column]) -> fmt::Result {
    write!(f, "\ncost per order, medians\n{:<38}", "")?;
    for (title, _) in COST_COLUMNS {
        write!(f, "{title:>15}")?;
    }
    writeln!(f)?;
    for column in columns {
        let load = match column.load.pace {
            Pace::Closed { connections } => format!("{connections} connections"),
            Pace::Open { per_second, .. } => format!("{per_second} orders/s"),
        };
        write!(f, "{:<38}", format!("{}, {load}", column.contender.name()))?;
        for (_, select) in COST_COLUMNS {
            let median = column.median(|turn| select(turn.costs.as_ref()?));
            write!(f, "{:>15}", format_value(median))?;
        }
        writeln!(f)?;
    }
    Ok(())
}

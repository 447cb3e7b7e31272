//! How is a comparison told? Medians, how far turns lie apart, ratios within rounds, and everything that a reader needs to
//! judge them: what did not count and why, the durability of the server, the sizes of tables, the load of the machine.

use std::fmt;

use super::contender::{Column, CompareReport, Contender};
use super::numbers::Spread;
use super::turn::Turn;

/// Microseconds in a millisecond.
const US_PER_MS: f64 = 1_000.0;

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine: {}", self.machine)?;
        writeln!(f, "peer: {}", self.variant)?;
        let mut pace = None;
        for column in &self.columns {
            if pace != Some(column.load.pace) {
                pace = Some(column.load.pace);
                head(f, column)?;
            }
            row(f, self, column)?;
        }
        writeln!(
            f,
            "\nplain batch inserts, without HTTP, at the best size of batch"
        )?;
        for floor in &self.floors {
            match floor.limit() {
                Some(limit) => writeln!(f, "  {limit} orders/s")?,
                None => writeln!(f, "  does not count: {}", floor.rows.detail)?,
            }
        }
        writeln!(f, "\nthe service's database\n{}", self.service_database)?;
        writeln!(f, "the peer's database\n{}", self.peer_database)?;
        match self.floors.last() {
            Some(floor) => write!(f, "the floor's statement\n{}", floor.sql),
            None => Ok(()),
        }
    }
}

fn head(f: &mut fmt::Formatter<'_>, column: &Column) -> fmt::Result {
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
        "{:<20}{:>28}{:>10}{:>10}  {:<20}load average",
        "", "orders/s", "p50 ms", "p99 ms", "of the peer's"
    )
}

fn row(f: &mut fmt::Formatter<'_>, report: &CompareReport, column: &Column) -> fmt::Result {
    let spread = column
        .spread()
        .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
    let (p50, p99) = column
        .latencies()
        .map_or_else(Default::default, |(p50, p99)| (ms(p50), ms(p99)));
    let ratio = report
        .ratio(column.contender, Contender::Peer, column.load.pace)
        .map_or_else(String::new, times);
    let loads = column.turns.iter().filter_map(|turn| turn.machine.load_after);
    let load =
        Spread::of(loads).map_or_else(String::new, |load| format!("{:.1} to {:.1}", load.min, load.max));
    writeln!(
        f,
        "{:<20}{spread:>28}{p50:>10}{p99:>10}  {ratio:<20}{load}",
        column.contender.name()
    )?;
    for reason in column.turns.iter().filter_map(Turn::why_not) {
        writeln!(f, "  does not count: {reason}")?;
    }
    Ok(())
}

fn ms(latency_us: Spread) -> String {
    format!("{:.1}", latency_us.median / US_PER_MS)
}

fn times(ratio: Spread) -> String {
    let Spread { median, min, max, .. } = ratio;
    format!("{median:.2} × ({min:.2}–{max:.2})")
}

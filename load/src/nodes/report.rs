//! How is it told what nodes give? What was measured, the model of one node, what it says of two beside what was measured of
//! them, and what would bound one node on more cores.

use std::fmt;

use super::{NodesReport, NodeRow, NodeObservation};
use crate::compare::statistics::Spread;
use crate::compare::turn::Turn;
use crate::costs::format_value;

/// Cores that bounds are told for.
const CORES: [usize; 4] = [2, 4, 8, 16];

/// Lanes of a node, unless it is told otherwise.
const LANES: usize = 2;

/// A figure of what was seen, on so many cores.
type Figure = fn(&NodeObservation, usize) -> f64;

impl fmt::Display for NodesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine: {}\n", self.machine)?;
        writeln!(
            f,
            "{:<28}{:>28}{:>10}{:>10}{:>10}{:>10}",
            "", "orders/s", "p99 ms", "busy µs", "idle µs", "a commit"
        )?;
        for row in &self.rows {
            self.row(f, row)?;
        }
        self.told(f)?;
        let verified = &self.verified;
        let word = if verified.passed { "ok" } else { "FAILED" };
        writeln!(f, "\n{word}  {}: {}", verified.name, verified.detail)?;
        let turns = self.rows.iter().flat_map(|row| row.rounds.iter().flatten());
        for why in turns.filter_map(Turn::rejection_reason) {
            writeln!(f, "does not count: {why}")?;
        }
        write!(f, "\n{}", self.database)
    }
}

impl NodesReport {
    fn row(&self, f: &mut fmt::Formatter<'_>, row: &NodeRow) -> fmt::Result {
        let orders = Spread::from_values(row.orders_per_s()).map_or_else(String::new, |spread| spread.to_string());
        let slowest = |turns: &Vec<Turn>| turns.iter().map(|turn| turn.p99_us).max();
        let p99 = Spread::from_values(
            row.rounds
                .iter()
                .filter_map(slowest)
                .map(|us| us as f64 / 1_000.0),
        );
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), format_value);
        let seen = row.seen();
        writeln!(
            f,
            "{:<28}{orders:>28}{:>10}{:>10}{:>10}{:>10}",
            format!("nodes: {}, connections of each: {}", row.nodes, row.connections),
            cell(p99.map(|spread| spread.median)),
            cell(seen.map(|seen| seen.busy_us)),
            cell(seen.map(|seen| seen.idle_us)),
            cell(seen.map(|seen| seen.batch)),
        )
    }

    fn told(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(model), Some(stations)) = (self.model(), self.stations()) else {
            return writeln!(
                f,
                "\nno model: not everything was measured, or batches were of one size"
            );
        };
        let [_, many, two] = &self.rows;
        let said = model.predict(two.nodes, self.machine.cores);
        writeln!(
            f,
            "\nan order takes {} µs, and a batch {} µs whatever its size: so two nodes on the same cores, at the speed that the \
             machine had with {} connections by the generator's own time",
            format_value(model.order_us),
            format_value(model.batch_us),
            many.connections
        )?;
        let seen = two
            .seen()
            .zip(many.seen())
            .map(|(two, many)| two.scaled_to(many.generator_us));
        let told: [(_, _, Figure); 3] = [
            ("orders/s", said.orders_per_s, NodeObservation::orders_per_s),
            ("busy µs an order", said.busy_us, |seen, _| seen.busy_us),
            ("orders a commit", said.batch, |seen, _| seen.batch),
        ];
        for (what, said, of) in told {
            let measured = seen.map_or_else(
                || "not measured".to_owned(),
                |seen| {
                    let measured = of(&seen, self.machine.cores);
                    format!("{measured:>10.1} measured, {:>5.2} of it", measured / said)
                },
            );
            writeln!(f, "  {what:<20}{said:>10.1} predicted{measured}")?;
        }
        writeln!(
            f,
            "\none node on a machine with its Postgres, the generator elsewhere: an order takes {} µs, of it {} the threads that \
             serve, {} the lane's backend; the cores {:.0} % busy",
            format_value(stations.all_us),
            format_value(stations.serving_us),
            format_value(stations.lane_us),
            stations.busy * 100.0
        )?;
        for cores in CORES {
            let bounds = stations.bounds(cores, (cores / 2).max(1), LANES);
            let (least, of) = bounds.least();
            writeln!(
                f,
                "  {cores:>2} cores: {:>8.0}, their threads that serve {:>8.0}, {LANES} lanes {:>8.0} orders/s: {least:.0}, by {of}",
                bounds.cores, bounds.serving, bounds.lanes
            )?;
        }
        Ok(())
    }
}

//! Text report of the node measurement: measured values, fitted model, prediction and measurement for two nodes, and
//! bounds for one node on more cores.

use std::fmt;

use vouchsafe_load::resources::costs::format_value;
use vouchsafe_load::statistics::Spread;

use super::model::NodeObservation;
use super::{NodeRow, NodesReport};
use crate::compare::turn::Turn;

/// Core counts of the bounds table.
const CORES: [usize; 4] = [2, 4, 8, 16];

/// Default lanes of a node.
const LANES: usize = 2;

/// Selects a metric of an observation on a number of cores.
type ObservationMetric = fn(&NodeObservation, usize) -> f64;

impl fmt::Display for NodesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.conditions)?;
        writeln!(
            f,
            "{:<28}{:>28}{:>14}{:>14}{:>14}{:>14}",
            "", "orders/s", "p99 ms", "busy µs", "idle µs", "batch"
        )?;
        for row in &self.rows {
            self.write_row(f, row)?;
        }
        self.write_model(f)?;
        let verified = &self.verified;
        let status = if verified.passed { "ok" } else { "FAILED" };
        writeln!(f, "\n{status}  {}: {}", verified.name, verified.detail)?;
        let turns = self.rows.iter().flat_map(|row| row.rounds.iter().flatten());
        let mut reasons = turns.filter_map(Turn::rejection_reason);
        reasons.try_for_each(|reason| writeln!(f, "does not count: {reason}"))
    }
}

impl NodesReport {
    fn write_row(&self, f: &mut fmt::Formatter<'_>, row: &NodeRow) -> fmt::Result {
        let orders =
            Spread::from_values(row.orders_per_s()).map_or_else(String::new, |spread| spread.to_string());
        let slowest = |turns: &Vec<Turn>| turns.iter().map(|turn| turn.latency_ms.p99).reduce(f64::max);
        let p99 = Spread::from_values(row.rounds.iter().filter_map(slowest));
        let observation = row.observe();
        writeln!(
            f,
            "{:<28}{orders:>28}{:>14}{:>14}{:>14}{:>14}",
            format!("nodes: {}, connections each: {}", row.nodes, row.connections),
            format_value(p99.map(|spread| spread.median)),
            format_value(observation.map(|observation| observation.busy_us)),
            format_value(observation.map(|observation| observation.idle_us)),
            format_value(observation.map(|observation| observation.batch)),
        )
    }

    fn write_model(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(model), Some(stations)) = (self.model(), self.stations()) else {
            return writeln!(
                f,
                "\nno model: values are missing, or the batch sizes do not differ"
            );
        };
        let [_, many, two] = &self.rows;
        let prediction = model.predict(two.nodes, self.conditions.cores);
        writeln!(
            f,
            "\nmodel: {} µs per order and {} µs per batch; prediction for two nodes on the same cores, scaled to the machine \
             speed of the turn with {} connections",
            format_value(Some(model.order_us)),
            format_value(Some(model.batch_us)),
            many.connections
        )?;
        let observation = two
            .observe()
            .zip(many.observe())
            .map(|(two, many)| two.scaled_to(many.generator_us));
        let rows: [(_, _, ObservationMetric); 3] = [
            ("orders/s", prediction.orders_per_s, NodeObservation::orders_per_s),
            ("busy µs per order", prediction.busy_us, |observation, _| {
                observation.busy_us
            }),
            ("orders per commit", prediction.batch, |observation, _| {
                observation.batch
            }),
        ];
        for (name, prediction, metric) in rows {
            let measured = observation.map_or_else(
                || "not measured".to_owned(),
                |observation| {
                    let measured = metric(&observation, self.conditions.cores);
                    format!("{measured:>10.1} measured, ratio {:>5.2}", measured / prediction)
                },
            );
            writeln!(f, "  {name:<20}{prediction:>10.1} predicted{measured}")?;
        }
        writeln!(
            f,
            "\none node with its Postgres on a machine without the generator: {} µs per order, of which {} µs serving threads \
             and {} µs the lane's backend; cores {:.0} % busy",
            format_value(Some(stations.all_us)),
            format_value(Some(stations.serving_us)),
            format_value(Some(stations.lane_us)),
            stations.busy * 100.0
        )?;
        for cores in CORES {
            write!(f, "  {cores:>2} cores:")?;
            for bound in stations.bounds(cores, (cores / 2).max(1), LANES) {
                write!(f, "  {:>8.0} orders/s by {}", bound.orders_per_s, bound.resource)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! Throughput model for more nodes and cores, fitted to one node and checked against two.
//!
//! An order costs a fixed CPU time plus its share of a fixed cost per batch: `cost(batch) = order + batch_cost /
//! batch`. Two batch sizes determine both constants. A power law through the two measurements gives the batch size
//! for other connection counts. While one node waits for disk or locks, other nodes can use the cores: with several
//! nodes the cores are idle only when all nodes wait.
//!
//! The speed of a shared machine varies. The generator does the same work for each order under any load, so its CPU
//! time is the unit: all times are scaled to [`NodeObservation::generator_us`] of the turn with many connections.

/// Measurements of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeObservation {
    /// Connections per node, all of one partner.
    pub(super) connections: f64,
    /// Orders per commit.
    pub(super) batch: f64,
    /// CPU time per order of all processes, in microseconds.
    pub(super) busy_us: f64,
    /// Idle CPU time per order, in microseconds.
    pub(super) idle_us: f64,
    /// CPU time per order of the generator, in microseconds.
    pub(super) generator_us: f64,
}

impl NodeObservation {
    /// Scales all times to a machine on which the generator takes `generator_us` per order.
    pub(super) fn scaled_to(self, generator_us: f64) -> Self {
        let speed = generator_us / self.generator_us;
        Self {
            busy_us: self.busy_us * speed,
            idle_us: self.idle_us * speed,
            generator_us,
            ..self
        }
    }

    /// Busy share of the CPU time, from 0 to 1.
    pub(super) fn utilization(&self) -> f64 {
        self.busy_us / (self.busy_us + self.idle_us)
    }

    /// Orders per second on `cores` cores.
    pub(super) fn orders_per_s(&self, cores: usize) -> f64 {
        cores as f64 * 1_000_000.0 / (self.busy_us + self.idle_us)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThroughputModel {
    /// CPU time per order without its share of the batch, in microseconds.
    pub(super) order_us: f64,
    pub(super) batch_us: f64,
    small: NodeObservation,
    large: NodeObservation,
}

/// Prediction for a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    /// Orders per commit.
    pub(super) batch: f64,
    /// CPU time per order, in microseconds.
    pub(super) busy_us: f64,
    /// Orders per second of all nodes.
    pub(super) orders_per_s: f64,
}

/// CPU time per order by kind of thread, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StationCosts {
    /// All serving threads together.
    pub(super) serving_us: f64,
    /// The Postgres backend of the lane.
    pub(super) lane_us: f64,
    /// Service and Postgres together, without the generator.
    pub(super) all_us: f64,
    /// Busy share of the CPU time, from 0 to 1.
    pub(super) busy: f64,
}

/// Upper bound for one node with its Postgres on a machine without the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) resource: &'static str,
    pub(super) orders_per_s: f64,
}

impl StationCosts {
    /// Bounds for a number of cores, serving threads and lanes with equal load, the lowest first. The cores keep the
    /// observed utilization; each lane is one process.
    pub(super) fn bounds(&self, cores: usize, serving: usize, lanes: usize) -> [Bound; 3] {
        let of = |resource, count: usize, us: f64| Bound {
            resource,
            orders_per_s: count as f64 * 1_000_000.0 / us,
        };
        let mut bounds = [
            of("cores", cores, self.all_us / self.busy),
            of("serving threads", serving, self.serving_us),
            of("lanes", lanes, self.lane_us),
        ];
        bounds.sort_by(|one, other| one.orders_per_s.total_cmp(&other.orders_per_s));
        bounds
    }
}

impl ThroughputModel {
    /// Fits the model to measurements with few and with many connections; `None` if the batch sizes do not differ.
    pub(super) fn fit(small: NodeObservation, large: NodeObservation) -> Option<Self> {
        let small = small.scaled_to(large.generator_us);
        let inverse_difference = small.batch.recip() - large.batch.recip();
        if inverse_difference <= 0.0 || small.connections >= large.connections {
            return None;
        }
        // Noise can make the larger batch more expensive per order; the batch cost is then 0.
        let batch_us = ((small.busy_us - large.busy_us) / inverse_difference).max(0.0);
        Some(Self {
            order_us: large.busy_us - batch_us / large.batch,
            batch_us,
            small,
            large,
        })
    }

    /// Predicted orders per commit for the connections of one partner.
    pub(super) fn predict_batch(&self, connections: f64) -> f64 {
        let Self { small, large, .. } = self;
        let power = (large.batch / small.batch).ln() / (large.connections / small.connections).ln();
        small.batch * (connections / small.connections).powf(power)
    }

    /// Prediction for `nodes` nodes that share `cores` cores and the connections of the turn with many connections.
    pub(super) fn predict(&self, nodes: usize, cores: usize) -> Prediction {
        let batch = self.predict_batch(self.large.connections / nodes as f64);
        let busy_us = self.order_us + self.batch_us / batch;
        let idle_share = 1.0 - self.large.utilization();
        let busy = 1.0 - (0..nodes).map(|_| idle_share).product::<f64>();
        Prediction {
            batch,
            busy_us,
            orders_per_s: cores as f64 * busy * 1_000_000.0 / busy_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 90 µs per order, 300 µs per batch; the batch size is a third of the connections.
    fn observation(connections: f64, idle_us: f64) -> NodeObservation {
        let batch = connections / 3.0;
        NodeObservation {
            connections,
            batch,
            busy_us: 90.0 + 300.0 / batch,
            idle_us,
            generator_us: 20.0,
        }
    }

    fn is_close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6 * other.abs().max(1.0)
    }

    #[test]
    fn fit_recovers_constants() {
        let model = ThroughputModel::fit(observation(64.0, 40.0), observation(256.0, 20.0)).unwrap();
        assert!(
            is_close(model.order_us, 90.0) && is_close(model.batch_us, 300.0),
            "{model:?}"
        );
        assert!(is_close(model.predict_batch(128.0), 128.0 / 3.0));
        let two = model.predict(2, 2);
        assert!(is_close(two.busy_us, 90.0 + 900.0 / 128.0), "{two:?}");
    }

    #[test]
    fn fit_is_independent_of_machine_speed() {
        let (few, many) = (observation(64.0, 40.0), observation(256.0, 20.0));
        let slow = few.scaled_to(30.0);
        assert!(is_close(slow.busy_us, few.busy_us * 1.5) && is_close(slow.utilization(), few.utilization()));
        let model = ThroughputModel::fit(slow, many).unwrap();
        assert!(
            is_close(model.order_us, 90.0) && is_close(model.batch_us, 300.0),
            "{model:?}"
        );
    }

    #[test]
    fn two_nodes_are_idle_only_when_both_wait() {
        let large = observation(256.0, 30.0);
        let model = ThroughputModel::fit(observation(64.0, 40.0), large).unwrap();
        let two = model.predict(2, 2);
        let idle = 1.0 - two.orders_per_s * two.busy_us / 2e6;
        assert!(is_close(idle, (1.0 - large.utilization()).powi(2)), "{two:?}");
    }

    #[test]
    fn prediction_for_one_node_equals_measurement() {
        let large = observation(256.0, 20.0);
        let model = ThroughputModel::fit(observation(64.0, 40.0), large).unwrap();
        let one = model.predict(1, 2);
        assert!(is_close(one.batch, large.batch) && is_close(one.busy_us, large.busy_us));
        assert!(
            is_close(one.orders_per_s, 2e6 / (large.busy_us + 20.0)),
            "{one:?}"
        );
    }

    #[test]
    fn lowest_bound_comes_first() {
        let stations = StationCosts {
            serving_us: 40.0,
            lane_us: 25.0,
            all_us: 80.0,
            busy: 0.8,
        };
        for (cores, serving, lanes, expected) in [
            (2, 1, 2, (20_000.0, "cores")),
            (16, 1, 2, (25_000.0, "serving threads")),
            (16, 8, 2, (80_000.0, "lanes")),
        ] {
            let [lowest, ..] = stations.bounds(cores, serving, lanes);
            assert_eq!((lowest.orders_per_s, lowest.resource), expected);
        }
    }

    #[test]
    fn fit_with_equal_batch_sizes_is_none() {
        assert_eq!(
            ThroughputModel::fit(observation(64.0, 0.0), observation(64.0, 0.0)),
            None
        );
        assert_eq!(
            ThroughputModel::fit(observation(256.0, 0.0), observation(64.0, 0.0)),
            None
        );
    }

    #[test]
    fn negative_batch_cost_becomes_zero() {
        let mut small = observation(64.0, 0.0);
        small.busy_us = 1.0;
        let model = ThroughputModel::fit(small, observation(256.0, 0.0)).unwrap();
        assert!(is_close(model.batch_us, 0.0) && model.predict(2, 2).orders_per_s.is_finite());
    }
}

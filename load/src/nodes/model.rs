//! What would more nodes and more cores give? A model of two parts, fitted to one node and checked against two.
//!
//! An order takes its own time of the cores and its share of what a batch takes whatever its size:
//! `cost(batch) = order + batch cost ÷ batch`. Two sizes of batch give both. How large a batch is follows from how many
//! connections a lane's orders come over, between two sizes that were seen by a power law. While one node waits for its disk
//! or its turn the others work: what is idle of the cores beside one node is idle beside several only where all of them wait.
//!
//! A machine that others share is faster in one minute than in the next. The generator does the same for each order whatever
//! it loads, so its own time is the measure: all times are as if the generator had taken [`Seen::generator_us`] of the turn
//! with many connections.

use serde::Serialize;

/// What was seen of one node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeObservation {
    /// Connections of each node, all of one partner.
    pub connections: f64,
    /// Orders of a commit.
    pub batch: f64,
    /// Time of the cores that an order took, of everybody; microseconds.
    pub busy_us: f64,
    /// Time of the cores that nobody had, an order; microseconds.
    pub idle_us: f64,
    /// What of the busy time was the generator's; microseconds.
    pub generator_us: f64,
}

impl NodeObservation {
    /// As it would have been seen on a machine on which the generator takes so long.
    #[must_use]
    pub fn scaled_to(self, generator_us: f64) -> Self {
        let speed = generator_us / self.generator_us;
        Self {
            busy_us: self.busy_us * speed,
            idle_us: self.idle_us * speed,
            generator_us,
            ..self
        }
    }

    /// Which share of the cores was busy.
    #[must_use]
    pub fn utilization(&self) -> f64 {
        self.busy_us / (self.busy_us + self.idle_us)
    }

    /// Orders a second of so many cores.
    #[must_use]
    pub fn orders_per_s(&self, cores: usize) -> f64 {
        cores as f64 * 1_000_000.0 / (self.busy_us + self.idle_us)
    }
}

/// The model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThroughputModel {
    /// What an order takes by itself, of everybody; microseconds.
    pub order_us: f64,
    /// What a batch takes whatever its size; microseconds.
    pub batch_us: f64,
    small: NodeObservation,
    large: NodeObservation,
}

/// What the model says of a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Orders of a commit.
    pub batch: f64,
    /// Time of the cores that an order takes; microseconds.
    pub busy_us: f64,
    /// Orders a second, of all nodes.
    pub orders_per_s: f64,
}

/// What one thread of a kind has to do for an order; microseconds of a core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StationCosts {
    /// All that serve and decide, together.
    pub serving_us: f64,
    /// The backend of the lane that writes it.
    pub lane_us: f64,
    /// Service and Postgres, whoever it is: the generator is elsewhere.
    pub all_us: f64,
    /// The share of the cores that was busy.
    pub busy: f64,
}

/// What bounds one node that has a machine with its Postgres for itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Orders a second that all cores can do, as busy as they were seen.
    pub cores: f64,
    /// Those that the threads which serve can do.
    pub serving: f64,
    /// Those that the lanes' backends can do: each is one process.
    pub lanes: f64,
}

impl StationCosts {
    /// With so many cores, threads that serve, and lanes whose partners order as much as each other's.
    #[must_use]
    pub fn bounds(&self, cores: usize, serving: usize, lanes: usize) -> Bounds {
        let of = |count: usize, us: f64| count as f64 * 1_000_000.0 / us;
        Bounds {
            cores: of(cores, self.all_us) * self.busy,
            serving: of(serving, self.serving_us),
            lanes: of(lanes, self.lane_us),
        }
    }
}

impl Bounds {
    /// The least of them, and what it is of.
    #[must_use]
    pub fn least(&self) -> (f64, &'static str) {
        let bounds = [
            (self.cores, "the cores"),
            (self.serving, "the threads that serve"),
            (self.lanes, "the lanes"),
        ];
        bounds
            .into_iter()
            .fold((f64::INFINITY, "nothing"), |least, next| {
                if next.0 < least.0 { next } else { least }
            })
    }
}

impl ThroughputModel {
    /// Through what was seen with few and with many connections; `None` where the batches do not tell them apart.
    #[must_use]
    pub fn fit(small: NodeObservation, large: NodeObservation) -> Option<Self> {
        let small = small.scaled_to(large.generator_us);
        let apart = small.batch.recip() - large.batch.recip();
        if apart <= 0.0 || small.connections >= large.connections {
            return None;
        }
        // Noise may make the larger batch the dearer one: then a batch costs nothing.
        let batch_us = ((small.busy_us - large.busy_us) / apart).max(0.0);
        Some(Self {
            order_us: large.busy_us - batch_us / large.batch,
            batch_us,
            small,
            large,
        })
    }

    /// So many orders a commit come of so many connections of one partner.
    #[must_use]
    pub fn predict_batch(&self, connections: f64) -> f64 {
        let Self { small, large, .. } = self;
        let power = (large.batch / small.batch).ln() / (large.connections / small.connections).ln();
        small.batch * (connections / small.connections).powf(power)
    }

    /// What nodes that share `cores` give, each with its own partner and so many connections, together as many as `large`
    /// was seen with.
    #[must_use]
    pub fn predict(&self, nodes: usize, cores: usize) -> Prediction {
        let batch = self.predict_batch(self.large.connections / nodes as f64);
        let busy_us = self.order_us + self.batch_us / batch;
        let each_idle = 1.0 - self.large.utilization();
        let busy = 1.0 - (0..nodes).map(|_| each_idle).product::<f64>();
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

    /// Orders of 90 µs, batches of 300 µs; a batch is a third of the connections.
    fn seen(connections: f64, idle_us: f64) -> NodeObservation {
        let batch = connections / 3.0;
        NodeObservation {
            connections,
            batch,
            busy_us: 90.0 + 300.0 / batch,
            idle_us,
            generator_us: 20.0,
        }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6 * other.abs().max(1.0)
    }

    #[test]
    fn what_it_was_made_of_comes_out_again() {
        let model = ThroughputModel::fit(seen(64.0, 40.0), seen(256.0, 20.0)).unwrap();
        assert!(
            close(model.order_us, 90.0) && close(model.batch_us, 300.0),
            "{model:?}"
        );
        assert!(close(model.predict_batch(128.0), 128.0 / 3.0));
        let two = model.predict(2, 2);
        assert!(close(two.busy_us, 90.0 + 900.0 / 128.0), "{two:?}");
    }

    #[test]
    fn what_the_machine_was_slower_by_falls_out() {
        let (few, many) = (seen(64.0, 40.0), seen(256.0, 20.0));
        let slow = few.scaled_to(30.0);
        assert!(close(slow.busy_us, few.busy_us * 1.5) && close(slow.utilization(), few.utilization()));
        let model = ThroughputModel::fit(slow, many).unwrap();
        assert!(
            close(model.order_us, 90.0) && close(model.batch_us, 300.0),
            "{model:?}"
        );
    }

    #[test]
    fn two_are_idle_only_where_both_are() {
        let large = seen(256.0, 30.0);
        let model = ThroughputModel::fit(seen(64.0, 40.0), large).unwrap();
        let two = model.predict(2, 2);
        let idle = 1.0 - two.orders_per_s * two.busy_us / 2e6;
        assert!(close(idle, (1.0 - large.utilization()).powi(2)), "{two:?}");
    }

    #[test]
    fn one_node_is_predicted_as_it_was_seen() {
        let large = seen(256.0, 20.0);
        let model = ThroughputModel::fit(seen(64.0, 40.0), large).unwrap();
        let one = model.predict(1, 2);
        assert!(close(one.batch, large.batch) && close(one.busy_us, large.busy_us));
        assert!(close(one.orders_per_s, 2e6 / (large.busy_us + 20.0)), "{one:?}");
    }

    #[test]
    fn the_least_of_the_bounds_is_the_bound() {
        let stations = StationCosts {
            serving_us: 40.0,
            lane_us: 25.0,
            all_us: 80.0,
            busy: 0.8,
        };
        for (cores, serving, lanes, expected) in [
            (2, 1, 2, (20_000.0, "the cores")),
            (16, 1, 2, (25_000.0, "the threads that serve")),
            (16, 8, 2, (80_000.0, "the lanes")),
        ] {
            assert_eq!(stations.bounds(cores, serving, lanes).least(), expected);
        }
    }

    #[test]
    fn batches_of_one_size_say_nothing() {
        assert_eq!(ThroughputModel::fit(seen(64.0, 0.0), seen(64.0, 0.0)), None);
        assert_eq!(ThroughputModel::fit(seen(256.0, 0.0), seen(64.0, 0.0)), None);
    }

    #[test]
    fn noise_makes_no_batch_cheaper_than_nothing() {
        let mut small = seen(64.0, 0.0);
        small.busy_us = 1.0;
        let model = ThroughputModel::fit(small, seen(256.0, 0.0)).unwrap();
        assert!(close(model.batch_us, 0.0) && model.predict(2, 2).orders_per_s.is_finite());
    }
}

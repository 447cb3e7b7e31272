//! Criterion configuration of benches by size: sizes a decade apart, logarithmic axes.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{AxisScale, BenchmarkGroup, Criterion, PlotConfiguration};
use tokio::runtime::Runtime;

/// Sizes from one to the maximum number of actors.
pub(crate) const DECADES: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// A group with short measurements, so that a whole bench takes a minute or two.
pub(crate) fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic))
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .sample_size(30);
    group
}

/// Runtime for actors on the thread of the bench.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

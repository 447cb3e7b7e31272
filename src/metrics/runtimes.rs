//! Metrics of the tokio runtimes: workers, tasks, global queue, busy time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use tokio::runtime::Handle;

use super::process::saturating;

/// The runtimes of the process. Runtimes with one name, such as those of a listener's threads, share their
/// series.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runtimes(Arc<Mutex<Vec<(&'static str, Handle)>>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuntimeLabels {
    runtime: &'static str,
}

#[derive(Debug, Default)]
struct Reading {
    workers: usize,
    alive_tasks: usize,
    queued_tasks: usize,
    busy_s: f64,
}

/// Name, help and value.
type GaugeOfReading = (&'static str, &'static str, fn(&Reading) -> usize);

impl Runtimes {
    pub(crate) fn add(&self, name: &'static str, runtime: Handle) {
        let mut runtimes = self.0.lock();
        runtimes.push((name, runtime));
    }

    /// Adds the runtime of the calling thread.
    pub(crate) fn add_current(&self, name: &'static str) {
        self.add(name, Handle::current());
    }

    fn read(&self) -> BTreeMap<&'static str, Reading> {
        let mut readings: BTreeMap<_, Reading> = BTreeMap::new();
        for (name, runtime) in &*self.0.lock() {
            let metrics = runtime.metrics();
            let reading = readings.entry(*name).or_default();
            reading.workers += metrics.num_workers();
            reading.alive_tasks += metrics.num_alive_tasks();
            reading.queued_tasks += metrics.global_queue_depth();
            let busy = (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker));
            reading.busy_s += busy.map(|busy| busy.as_secs_f64()).sum::<f64>();
        }
        readings
    }
}

impl Collector for Runtimes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = self.read();
        if readings.is_empty() {
            return Ok(());
        }
        let gauges: [GaugeOfReading; 3] = [
            (
                "tokio_workers",
                "Worker threads of the tokio runtimes, by runtime.",
                |reading| reading.workers,
            ),
            (
                "tokio_alive_tasks",
                "Tasks that have not ended, without those that are bound to a thread, by runtime.",
                |reading| reading.alive_tasks,
            ),
            (
                "tokio_global_queue_tasks",
                "Tasks woken from outside of the runtime that wait for a worker, by runtime.",
                |reading| reading.queued_tasks,
            ),
        ];
        for (name, help, value) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (runtime, reading) in &readings {
                let gauge = ConstGauge::new(saturating(value(reading)));
                gauge.encode(family.encode_family(&RuntimeLabels { runtime })?)?;
            }
        }
        let help = "Busy time of all workers, by runtime.";
        let mut family =
            encoder.encode_descriptor("tokio_busy", help, Some(&Unit::Seconds), MetricType::Counter)?;
        for (runtime, reading) in &readings {
            let counter = ConstCounter::new(reading.busy_s);
            counter.encode(family.encode_family(&RuntimeLabels { runtime })?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use tokio::runtime::Builder;

    use super::*;

    fn sample(runtimes: &Runtimes, series: &str) -> f64 {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(runtimes.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {series} in {text}"))
    }

    #[test]
    fn runtimes_with_one_name_are_summed() {
        let runtimes = Runtimes::default();
        let pool = Builder::new_multi_thread().worker_threads(3).build().unwrap();
        let listeners = [(); 2].map(|()| Builder::new_current_thread().build().unwrap());
        runtimes.add("pool", pool.handle().clone());
        for listener in &listeners {
            listener.block_on(async { runtimes.add_current("listener") });
        }
        assert_eq!(sample(&runtimes, r#"tokio_workers{runtime="pool"}"#), 3.0);
        assert_eq!(sample(&runtimes, r#"tokio_workers{runtime="listener"}"#), 2.0);

        // Nothing runs the tasks, so they stay queued.
        let tasks = listeners
            .each_ref()
            .map(|listener| listener.handle().spawn(std::future::pending::<()>()));
        for series in ["tokio_alive_tasks", "tokio_global_queue_tasks"] {
            assert_eq!(
                sample(&runtimes, &format!(r#"{series}{{runtime="listener"}}"#)),
                2.0,
                "{series}"
            );
            assert_eq!(
                sample(&runtimes, &format!(r#"{series}{{runtime="pool"}}"#)),
                0.0,
                "{series}"
            );
        }
        drop(tasks);
        let busy = r#"tokio_busy_seconds_total{runtime="listener"}"#;
        assert!(sample(&runtimes, busy).is_finite());
    }
}

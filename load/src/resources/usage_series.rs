//! CPU, WAL, memory and checkpoints over the time of a run, from the readings of the resource monitor.

use std::time::Duration;

use serde::Serialize;

use super::costs::UsageSnapshot;
use super::proc::Component;
use super::server::ServerCounters;

/// A longer run has longer windows, as the series of orders.
const MAX_WINDOWS: usize = 600;

/// The part of a snapshot that is kept for the series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageReading {
    /// Time since the warm-up.
    at: Duration,
    /// CPU time of service, Postgres and generator since the first reading.
    cpu: [Option<Duration>; 3],
    server: Option<ServerCounters>,
    resident_kib: Option<u64>,
}

impl UsageReading {
    /// The first reading.
    pub(crate) fn first(at: Duration, snapshot: &UsageSnapshot) -> Self {
        Self::with_cpu(at, snapshot, [Some(Duration::ZERO); 3])
    }

    /// The next reading; `earlier` is the snapshot of this one. A thread that ended in between is left out.
    pub(crate) fn next(&self, at: Duration, earlier: &UsageSnapshot, snapshot: &UsageSnapshot) -> Self {
        let components = [Component::Service, Component::Postgres, Component::Generator];
        let used = components.map(|component| snapshot.cpu_since(earlier, component));
        let cpu = [0, 1, 2].map(|index: usize| Some(self.cpu[index]? + used[index]?));
        Self::with_cpu(at, snapshot, cpu)
    }

    fn with_cpu(at: Duration, snapshot: &UsageSnapshot, cpu: [Option<Duration>; 3]) -> Self {
        Self {
            at,
            cpu,
            server: snapshot.server,
            resident_kib: snapshot.resident_kib,
        }
    }

    fn window_until(&self, end: &Self) -> UsageWindow {
        let seconds = end.at.saturating_sub(self.at).as_secs_f64();
        let cores = |component: usize| {
            let used = end.cpu[component]?.saturating_sub(self.cpu[component]?);
            Some(used.as_secs_f64() / seconds)
        };
        let servers = self.server.zip(end.server);
        UsageWindow {
            end_s: end.at.as_secs_f64(),
            service_cores: cores(0),
            postgres_cores: cores(1),
            generator_cores: cores(2),
            wal_bytes_per_s: servers.map(|(start, end)| (end.wal_end - start.wal_end) as f64 / seconds),
            memory_mib: end.resident_kib.map(|kib| kib as f64 / 1_024.0),
            has_checkpoint: servers.is_some_and(|(start, end)| start.checkpoint != end.checkpoint),
        }
    }
}

/// Usage between two readings; `None` if not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UsageWindow {
    /// End of the window after the warm-up, in seconds.
    pub end_s: f64,
    /// CPU time per second: 1 is one busy core.
    pub service_cores: Option<f64>,
    pub postgres_cores: Option<f64>,
    pub generator_cores: Option<f64>,
    pub wal_bytes_per_s: Option<f64>,
    /// Resident memory of the service at the end of the window.
    pub memory_mib: Option<f64>,
    /// Whether a checkpoint ended in the window.
    pub has_checkpoint: bool,
}

/// Windows of nearly equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct UsageSeries(pub Vec<UsageWindow>);

impl UsageSeries {
    pub(crate) fn from_readings(readings: &[UsageReading]) -> Self {
        let step = readings.len().div_ceil(MAX_WINDOWS).max(1);
        let readings: Vec<_> = readings.iter().step_by(step).collect();
        let windows = readings.windows(2).map(|pair| pair[0].window_until(pair[1]));
        Self(windows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::proc::ThreadSample;

    #[test]
    fn ended_thread_does_not_lower_the_cpu_time_of_its_component() {
        let snapshot = |threads: &[(u32, u64)]| {
            let sample = |&(id, cpu_ms)| {
                let sample = ThreadSample {
                    component: Component::Service,
                    name: "worker".to_owned(),
                    cpu: Duration::from_millis(cpu_ms),
                };
                (id, sample)
            };
            UsageSnapshot {
                threads: Some(threads.iter().map(sample).collect()),
                ..UsageSnapshot::default()
            }
        };
        let (before, after) = (snapshot(&[(1, 900), (2, 100)]), snapshot(&[(2, 600), (3, 500)]));
        let first = UsageReading::first(Duration::ZERO, &before);
        let second = first.next(Duration::from_secs(2), &before, &after);
        let series = UsageSeries::from_readings(&[first, second]);
        let cores = |window: &UsageWindow| (window.service_cores, window.postgres_cores);
        assert_eq!(
            series.0.iter().map(cores).collect::<Vec<_>>(),
            [(Some(0.5), None)]
        );
    }

    #[test]
    fn window_has_the_growth_of_the_counters() {
        let reading = |s: u64, cpu_ms: Option<u64>, wal_end, checkpoint| UsageReading {
            at: Duration::from_secs(s),
            cpu: [cpu_ms.map(Duration::from_millis), None, None],
            server: Some(ServerCounters {
                wal_end,
                checkpoint,
                commits: 0,
            }),
            resident_kib: Some(2_048),
        };
        let readings = [
            reading(0, Some(100), 0, 7),
            reading(2, Some(1_100), 5_000, 7),
            reading(3, None, 5_000, 8),
        ];
        let series = UsageSeries::from_readings(&readings);
        let [first, second] = series.0[..] else {
            panic!("{series:?}")
        };
        assert_eq!((first.service_cores, first.postgres_cores), (Some(0.5), None));
        assert_eq!(
            (first.wal_bytes_per_s, first.memory_mib, first.has_checkpoint),
            (Some(2_500.0), Some(2.0), false)
        );
        assert_eq!(
            (second.service_cores, second.has_checkpoint, second.end_s),
            (None, true, 3.0)
        );
        let long: Vec<_> = (0..1_800).map(|s| reading(s, None, 0, 0)).collect();
        assert_eq!(UsageSeries::from_readings(&long).0.len(), 599);
    }
}

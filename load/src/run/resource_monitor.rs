//! Resource monitor of a run: a thread that reads CPU time, WAL, commits and the service's memory every
//! second from the end of the warm-up to the end of the measured part.
//!
//! Rule: it asks the service for its metrics only at both ends. Its own usage is reported under its own
//! names.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use procfs::ProcResult;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::progress::Progress;
use crate::resources::MonitorTarget;
use crate::resources::costs::{OrderCosts, UsageSnapshot};
use crate::resources::other_work::OtherWork;
use crate::resources::proc::{Component, ThreadSample, read_machine_time, read_resident_kib, read_threads};
use crate::resources::server::{ServerStatsReader, read_server_usage};
use crate::resources::service_metrics::{JournalBatchCounters, MetricsReader};
use crate::resources::usage_series::{UsageReading, UsageSeries};
use crate::stoppable_thread::{StopSignal, StoppableThread};
use crate::traffic::pace::RunLength;

/// Polling interval until the run starts.
const POLL: Duration = Duration::from_millis(5);

/// The last snapshot precedes the end of the measured part: generator threads of an open loop end with their
/// last request, and their counters end with them.
const FINAL_SNAPSHOT_LEAD: Duration = Duration::from_millis(100);

/// Time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// Resident memory of the service in MiB, sampled every second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryUsage {
    pub min_mib: f64,
    pub max_mib: f64,
    pub last_mib: f64,
    pub samples: u64,
}

impl MemoryUsage {
    fn add_sample(previous: Option<Self>, kib: u64) -> Self {
        let mib = kib as f64 / 1_024.0;
        let before = previous.unwrap_or(Self {
            min_mib: mib,
            max_mib: mib,
            last_mib: mib,
            samples: 0,
        });
        Self {
            min_mib: before.min_mib.min(mib),
            max_mib: before.max_mib.max(mib),
            last_mib: mib,
            samples: before.samples + 1,
        }
    }
}

/// Results. `None` means not measured: no `/proc`, or no acknowledged order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResourceUsage {
    pub costs: Option<OrderCosts>,
    pub memory: Option<MemoryUsage>,
    pub other_work: Option<OtherWork>,
    pub usage_series: UsageSeries,
}

impl fmt::Display for MemoryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            min_mib,
            max_mib,
            last_mib,
            samples,
        } = self;
        write!(
            f,
            "resident memory of the service, MiB  min {min_mib:.1}  max {max_mib:.1}  last {last_mib:.1}  ({samples} samples)"
        )
    }
}

impl fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(memory) = &self.memory {
            writeln!(f, "{memory}")?;
        }
        if let Some(other_work) = &self.other_work {
            writeln!(f, "other work on the machine: {other_work}")?;
        }
        match &self.costs {
            Some(costs) => write!(f, "\n{costs}"),
            None => Ok(()),
        }
    }
}

/// Thread that monitors until the end of the measured part.
pub struct ResourceMonitor(StoppableThread<anyhow::Result<ResourceUsage>>);

impl ResourceMonitor {
    /// Starts the thread for a run of this length.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(target: MonitorTarget, progress: &Progress, length: RunLength) -> std::io::Result<Self> {
        let progress = progress.clone();
        let run = move |stop: StopSignal| {
            let mut sampler = Sampler::connect(target, progress)?;
            Ok(monitor_run(&mut sampler, length, &stop))
        };
        StoppableThread::start("monitor", run).map(Self)
    }

    /// Stops the thread and returns the results. Call it after the run; values not measured by then are
    /// missing.
    ///
    /// # Errors
    /// If the runtime could not be started or the server not reached.
    pub fn stop(self) -> anyhow::Result<ResourceUsage> {
        self.0.stop()
    }
}

fn monitor_run(sampler: &mut Sampler, length: RunLength, stop: &StopSignal) -> ResourceUsage {
    let mut usage = ResourceUsage::default();
    let from = loop {
        match sampler.progress.measurement_start() {
            Some(from) => break from,
            None if stop.is_stopped_within(POLL) => return usage,
            None => {}
        }
    };
    if stop.is_stopped_within(from.saturating_duration_since(Instant::now())) {
        return usage;
    }
    let until = match length {
        RunLength::Time(length) => Some(from + length.saturating_sub(FINAL_SNAPSHOT_LEAD)),
        RunLength::Orders(_) => None,
    };
    let (started, before) = (Instant::now(), sampler.snapshot(true));
    let (mut ended, mut after) = (started, before.clone());
    let mut reading = UsageReading::first(ended.saturating_duration_since(from), &after);
    let mut readings = vec![reading];
    loop {
        if let Some(kib) = after.resident_kib {
            usage.memory = Some(MemoryUsage::add_sample(usage.memory, kib));
        }
        let left = until.map_or(INTERVAL, |until| until.saturating_duration_since(ended));
        // A run of a number of orders ends between two readings; the generator's threads end with it.
        if left.is_zero() || stop.is_stopped_within(left.min(INTERVAL)) {
            break;
        }
        ended = Instant::now();
        let next = sampler.snapshot(until.is_some_and(|until| ended >= until));
        reading = reading.next(ended.saturating_duration_since(from), &after, &next);
        readings.push(reading);
        after = next;
    }
    usage.costs = OrderCosts::between(&before, &after, ended - started);
    let machine = before.machine.zip(after.machine);
    usage.other_work =
        machine.and_then(|(before, after)| OtherWork::between(before, after, usage.costs.as_ref()));
    usage.usage_series = UsageSeries::from_readings(&readings);
    usage
}

/// Reads all counters.
struct Sampler {
    runtime: Runtime,
    target: MonitorTarget,
    progress: Progress,
    server: Option<ServerStatsReader>,
    metrics: Option<MetricsReader>,
}

impl Sampler {
    fn connect(target: MonitorTarget, progress: Progress) -> anyhow::Result<Self> {
        let runtime = crate::runtime::new_runtime()?;
        let server = target.server.clone().map(ServerStatsReader::connect);
        let metrics = target.admin_url.as_deref().map(MetricsReader::new);
        Ok(Self {
            server: server
                .map(|connecting| runtime.block_on(connecting))
                .transpose()?,
            metrics: metrics.transpose()?,
            runtime,
            target,
            progress,
        })
    }

    fn resident_kib(&self) -> Option<u64> {
        let pids = self.target.pids.iter().copied();
        let kib = pids.map(read_resident_kib).sum::<ProcResult<u64>>().ok();
        kib.filter(|_| !self.target.pids.is_empty())
    }

    /// Threads of service, generator and Postgres, and the CPU time of ended backends.
    fn threads(
        &self,
        processes: BTreeMap<u32, String>,
    ) -> ProcResult<(BTreeMap<u32, ThreadSample>, Duration)> {
        let (mut threads, ended_backends) = read_server_usage(processes)?;
        for pid in &self.target.pids {
            threads.extend(read_threads(*pid, Component::Service)?);
        }
        threads.extend(read_threads(std::process::id(), Component::Generator)?);
        Ok((threads, ended_backends))
    }

    /// Reads everything in a fixed order, so that the interval between two snapshots is the same for each
    /// counter.
    fn snapshot(&mut self, with_metrics: bool) -> UsageSnapshot {
        let metrics = self.metrics.as_mut().filter(|_| with_metrics);
        let batches = metrics.and_then(|reader| {
            let metrics = self.runtime.block_on(reader.read()).ok()?;
            JournalBatchCounters::parse(&metrics)
        });
        let (server, processes) = match &mut self.server {
            Some(reader) => (
                self.runtime.block_on(reader.statistics()).ok(),
                self.runtime.block_on(reader.processes()).unwrap_or_default(),
            ),
            None => Default::default(),
        };
        let (threads, ended_backends) = self.threads(processes).ok().unzip();
        UsageSnapshot {
            orders: self.progress.acknowledged_orders(),
            threads,
            ended_backends: ended_backends.unwrap_or_default(),
            machine: read_machine_time().ok(),
            server,
            batches,
            resident_kib: self.resident_kib(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_process() -> MonitorTarget {
        MonitorTarget {
            pids: vec![std::process::id()],
            ..MonitorTarget::default()
        }
    }

    #[test]
    fn memory_usage_has_min_max_and_last() {
        let previous = [3_072, 1_024, 2_048]
            .into_iter()
            .fold(None, |previous, kib| Some(MemoryUsage::add_sample(previous, kib)));
        let expected = MemoryUsage {
            min_mib: 1.0,
            max_mib: 3.0,
            last_mib: 2.0,
            samples: 3,
        };
        assert_eq!(previous, Some(expected));
    }

    #[test]
    fn run_that_never_started_has_no_usage() {
        let monitor =
            ResourceMonitor::start(own_process(), &Progress::default(), RunLength::Orders(1)).unwrap();
        let usage = monitor.stop().unwrap();
        assert!(usage.costs.is_none() && usage.memory.is_none());
    }

    #[test]
    fn cost_is_per_order_acknowledged_meanwhile() {
        let progress = Progress::default();
        progress.set_measurement_start(Instant::now());
        let monitor = ResourceMonitor::start(
            own_process(),
            &progress,
            RunLength::Time(Duration::from_millis(400)),
        )
        .unwrap();
        let stop_sender = Instant::now() + Duration::from_millis(500);
        while Instant::now() < stop_sender {
            progress.order_acknowledged();
        }
        let usage = monitor.stop().unwrap();
        let costs = usage.costs.unwrap();
        assert!(
            costs.orders > 0 && costs.cpu_us(Component::Generator).unwrap() > 0.0,
            "{costs}"
        );
        assert_eq!(costs.wal, None);
        assert!(usage.memory.unwrap().max_mib > 0.0);
    }
}

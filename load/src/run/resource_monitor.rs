//! Resource monitor of a run: a thread that snapshots CPU time, WAL and commits at the end of the warm-up and at the end
//! of the measured part, and samples the service's memory every second.
//!
//! Rule: between the snapshots it reads only the memory. Its own usage is reported under its own thread name.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde::Serialize;
use tokio::runtime::Runtime;
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

use super::progress::Progress;
use crate::resources::MonitorTarget;
use crate::resources::costs::{OrderCosts, UsageSnapshot};
use crate::resources::journal_batches::JournalBatchCounters;
use crate::resources::other_work::OtherWork;
use crate::resources::proc::{Component, ThreadSample, read_machine_time, read_resident_kib, read_threads};
use crate::resources::server::{ServerStatsReader, read_server_usage};
use crate::stoppable_thread::{StopSignal, StoppableThread};

/// Polling interval until the run starts.
const POLL: Duration = Duration::from_millis(5);

/// The last snapshot precedes the end of the measured part: generator threads of an open loop end with their last
/// request, and their counters end with them.
const FINAL_SNAPSHOT_LEAD: Duration = Duration::from_millis(100);

/// Interval between memory samples.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);

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
    /// Starts the thread; `length` is the length of the measured part.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(target: MonitorTarget, progress: &Progress, length: Duration) -> std::io::Result<Self> {
        let progress = progress.clone();
        let run = move |stop: StopSignal| {
            let mut sampler = Sampler::connect(target, progress)?;
            Ok(monitor_run(&mut sampler, length, &stop))
        };
        StoppableThread::start("monitor", run).map(Self)
    }

    /// Stops the thread and returns the results. Call it after the run; values not measured by then are missing.
    ///
    /// # Errors
    /// If the runtime could not be started or the server not reached.
    pub fn stop(self) -> anyhow::Result<ResourceUsage> {
        self.0.stop()
    }
}

fn monitor_run(sampler: &mut Sampler, length: Duration, stop: &StopSignal) -> ResourceUsage {
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
    let (started, before) = (Instant::now(), sampler.snapshot());
    let until = from + length.saturating_sub(FINAL_SNAPSHOT_LEAD);
    loop {
        if let Ok(kib) = sampler.resident_kib() {
            usage.memory = Some(MemoryUsage::add_sample(usage.memory, kib));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if stop.is_stopped_within(left.min(MEMORY_INTERVAL)) {
            // The generator's threads have ended, and their counters with them.
            return usage;
        }
    }
    let (time, after) = (started.elapsed(), sampler.snapshot());
    usage.costs = OrderCosts::between(&before, &after, time);
    let readings = before.machine.zip(after.machine);
    usage.other_work =
        readings.and_then(|(before, after)| OtherWork::between(before, after, usage.costs.as_ref()));
    usage
}

/// Reads all counters.
struct Sampler {
    runtime: Runtime,
    target: MonitorTarget,
    progress: Progress,
    server: Option<ServerStatsReader>,
    metrics: Option<Client>,
}

impl Sampler {
    fn connect(target: MonitorTarget, progress: Progress) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let server = match &target.server {
            Some(server) => Some(runtime.block_on(ServerStatsReader::connect(server.clone()))?),
            None => None,
        };
        let metrics = match &target.admin_url {
            Some(url) => Some(Client::new(Origin::parse(url)?)),
            None => None,
        };
        Ok(Self {
            runtime,
            target,
            progress,
            server,
            metrics,
        })
    }

    fn resident_kib(&self) -> std::io::Result<u64> {
        self.target.pids.iter().copied().map(read_resident_kib).sum()
    }

    fn service_threads(&self) -> std::io::Result<BTreeMap<u32, ThreadSample>> {
        let mut threads = BTreeMap::new();
        for pid in &self.target.pids {
            threads.extend(read_threads(*pid, Component::Service)?);
        }
        Ok(threads)
    }

    /// Reads everything in a fixed order, so that the interval between two snapshots is the same for each counter.
    fn snapshot(&mut self) -> UsageSnapshot {
        let batches = self.metrics.as_mut().and_then(|client| {
            let request = client.call(Method::GET, "/metrics", HeaderMap::new(), Bytes::new());
            let response = self.runtime.block_on(request).ok()?;
            JournalBatchCounters::parse(std::str::from_utf8(&response.body).ok()?)
        });
        let (server, processes) = match &mut self.server {
            Some(reader) => (
                self.runtime.block_on(reader.statistics()).ok(),
                self.runtime.block_on(reader.processes()).unwrap_or_default(),
            ),
            None => Default::default(),
        };
        let generator_threads = read_threads(std::process::id(), Component::Generator);
        let (threads, ended_backends) = match (
            generator_threads,
            self.service_threads(),
            read_server_usage(processes),
        ) {
            (Ok(generator_threads), Ok(mut threads), Ok((backends, ended_backends))) => {
                threads.extend(generator_threads);
                threads.extend(backends);
                (Some(threads), ended_backends)
            }
            _ => Default::default(),
        };
        UsageSnapshot {
            orders: self.progress.acknowledged_orders(),
            threads,
            ended_backends,
            machine: read_machine_time().ok(),
            server,
            batches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_process() -> MonitorTarget {
        MonitorTarget {
            pids: vec![std::process::id()],
            server: None,
            admin_url: None,
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
            ResourceMonitor::start(own_process(), &Progress::default(), Duration::from_secs(60)).unwrap();
        let usage = monitor.stop().unwrap();
        assert!(usage.costs.is_none() && usage.memory.is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn cost_is_per_order_acknowledged_meanwhile() {
        let progress = Progress::default();
        progress.set_measurement_start(Instant::now());
        let monitor = ResourceMonitor::start(own_process(), &progress, Duration::from_millis(400)).unwrap();
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

//! What was used while a run was measured? A thread beside the generator reads it when the warm-up is over and again at the
//! end, and looks at the service's memory each second.
//!
//! Rule: it asks for nothing in between but the memory, and what it uses itself is told under its own name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::costs::proc::{read_machine_time, read_resident_kib, read_threads};
use crate::costs::server::{ServerStatsReader, MonitoredServer, read_server_usage};
use crate::costs::{JournalBatchCounters, OrderCosts, UsageSnapshot, ThreadSample, Component};
use crate::origin::Origin;
use crate::progress::Progress;

/// Pause between two looks whether the run has begun.
const POLL: Duration = Duration::from_millis(5);

/// So much before the end of the measured part it is read for the last time: with the generator's threads goes what they
/// used, and those of an open loop end with their last request.
const EARLY: Duration = Duration::from_millis(100);

/// From one look at the memory to the next.
const MEMORY_EVERY: Duration = Duration::from_secs(1);

/// Who is watched.
#[derive(Clone, Debug)]
pub struct MonitorTarget {
    /// The processes that serve: one, or the nodes that share the load.
    pub pids: Vec<u32>,
    /// The server of its database, if it has one.
    pub server: Option<MonitoredServer>,
    /// Where it shows its own counters to operators, if it does.
    pub admin_url: Option<String>,
}

/// Resident memory of a process, looked at each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryUsage {
    /// The least, in KiB.
    pub min_kib: u64,
    pub max_kib: u64,
    /// At the last look.
    pub last_kib: u64,
    /// How often it was looked at.
    pub looks: u64,
}

impl MemoryUsage {
    fn enter(seen: Option<Self>, kib: u64) -> Self {
        let before = seen.unwrap_or(Self {
            min_kib: kib,
            max_kib: kib,
            last_kib: kib,
            looks: 0,
        });
        Self {
            min_kib: before.min_kib.min(kib),
            max_kib: before.max_kib.max(kib),
            last_kib: kib,
            looks: before.looks + 1,
        }
    }
}

/// What was seen. What is `None` was not measured: there is no `/proc`, or nothing was acknowledged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResourceUsage {
    /// What an order cost.
    pub costs: Option<OrderCosts>,
    /// The memory of the service.
    pub memory: Option<MemoryUsage>,
}

impl fmt::Display for MemoryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |kib: u64| kib as f64 / 1_024.0;
        write!(
            f,
            "resident memory of the service, MiB  least {:.1}  most {:.1}  last {:.1}  ({} looks)",
            mib(self.min_kib),
            mib(self.max_kib),
            mib(self.last_kib),
            self.looks
        )
    }
}

impl fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(memory) = &self.memory {
            writeln!(f, "{memory}")?;
        }
        match &self.costs {
            Some(costs) => write!(f, "\n{costs}"),
            None => Ok(()),
        }
    }
}

/// A thread that watches until the measured part is over.
pub struct ResourceMonitor {
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<ResourceUsage>>>,
}

impl ResourceMonitor {
    /// Begins; `length` is that of the measured part.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(subject: MonitorTarget, progress: &Progress, length: Duration) -> std::io::Result<Self> {
        let (ends, ended) = channel();
        let progress = progress.clone();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                let mut eyes = Sampler::open(subject, progress)?;
                Ok(watch(&mut eyes, length, &ended))
            })?;
        Ok(Self {
            ends: Some(ends),
            thread: Some(thread),
        })
    }

    /// What it saw. To be asked when the run is over: what is not measured by then is left out.
    ///
    /// # Errors
    /// When there was no runtime to watch with, or the server could not be reached.
    pub fn stop(mut self) -> anyhow::Result<ResourceUsage> {
        drop(self.ends.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(watched)) => watched,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(ResourceUsage::default()),
        }
    }
}

impl Drop for ResourceMonitor {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            // Whoever gave up the run has another error to tell.
            let _ = thread.join();
        }
    }
}

fn watch(eyes: &mut Sampler, length: Duration, ended: &Receiver<()>) -> ResourceUsage {
    let mut watched = ResourceUsage::default();
    let from = loop {
        match eyes.progress.measurement_start() {
            Some(from) => break from,
            None if ends_within(ended, POLL) => return watched,
            None => {}
        }
    };
    if ends_within(ended, from.saturating_duration_since(Instant::now())) {
        return watched;
    }
    let (began, before) = (Instant::now(), eyes.read());
    let until = from + length.saturating_sub(EARLY);
    loop {
        if let Ok(kib) = eyes.resident_kib() {
            watched.memory = Some(MemoryUsage::enter(watched.memory, kib));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if ends_within(ended, left.min(MEMORY_EVERY)) {
            // The generator's threads have ended, and what they used is gone with them.
            return watched;
        }
    }
    let (time, after) = (began.elapsed(), eyes.read());
    watched.costs = OrderCosts::between(&before, &after, time).map(|costs| eyes.split(costs, &before, &after));
    watched
}

fn ends_within(ended: &Receiver<()>, time: Duration) -> bool {
    ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
}

/// What is read with.
struct Sampler {
    runtime: Runtime,
    subject: MonitorTarget,
    progress: Progress,
    server: Option<ServerStatsReader>,
    metrics: Option<Client>,
}

impl Sampler {
    fn open(subject: MonitorTarget, progress: Progress) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let server = match &subject.server {
            Some(server) => Some(runtime.block_on(ServerStatsReader::connect(server))?),
            None => None,
        };
        let metrics = match &subject.admin_url {
            Some(url) => Some(Client::new(Origin::parse(url)?)),
            None => None,
        };
        Ok(Self {
            runtime,
            subject,
            progress,
            server,
            metrics,
        })
    }

    /// Memory of all that serve.
    fn resident_kib(&self) -> std::io::Result<u64> {
        self.subject.pids.iter().copied().map(read_resident_kib).sum()
    }

    /// The threads of all that serve.
    fn theirs(&self) -> std::io::Result<BTreeMap<u32, ThreadSample>> {
        let mut all = BTreeMap::new();
        for pid in &self.subject.pids {
            all.extend(read_threads(*pid, Component::Service)?);
        }
        Ok(all)
    }

    /// All of it, in one order: what is between two looks is then as long for each of them.
    fn read(&mut self) -> UsageSnapshot {
        let batches = self.metrics.as_mut().and_then(|client| {
            let asked = client.call(Method::GET, "/metrics", HeaderMap::new(), Bytes::new());
            let answer = self.runtime.block_on(asked).ok()?;
            JournalBatchCounters::parse(std::str::from_utf8(&answer.body).ok()?)
        });
        let (server, processes) = match &mut self.server {
            Some(reader) => (
                self.runtime.block_on(reader.statistics()).ok(),
                self.runtime.block_on(reader.processes()).unwrap_or_default(),
            ),
            None => Default::default(),
        };
        let own = read_threads(std::process::id(), Component::Generator);
        let (tasks, ended) = match (own, self.theirs(), read_server_usage(&processes)) {
            (Ok(own), Ok(mut all), Ok((backends, ended))) => {
                all.extend(own);
                all.extend(backends);
                (Some(all), ended)
            }
            _ => Default::default(),
        };
        UsageSnapshot {
            orders: self.progress.acknowledged_orders(),
            threads: tasks,
            ended_backends: ended,
            machine: read_machine_time().ok(),
            server,
            batches,
        }
    }

    /// Tells records and images of the log apart, now that nothing is measured any more.
    fn split(&mut self, mut costs: OrderCosts, before: &UsageSnapshot, after: &UsageSnapshot) -> OrderCosts {
        if let (Some(reader), Some(before), Some(after), Some(log)) =
            (&mut self.server, &before.server, &after.server, &mut costs.log)
        {
            let each = |bytes: i64| bytes as f64 / costs.orders as f64;
            let split = self.runtime.block_on(reader.split_wal(before, after));
            log.record_bytes = split.map(|(records, _)| each(records));
            log.image_bytes = split.map(|(_, images)| each(images));
        }
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_by_its_least_its_most_and_its_last() {
        let seen = [30, 10, 20]
            .into_iter()
            .fold(None, |seen, kib| Some(MemoryUsage::enter(seen, kib)));
        let expected = MemoryUsage {
            min_kib: 10,
            max_kib: 30,
            last_kib: 20,
            looks: 3,
        };
        assert_eq!(seen, Some(expected));
    }

    #[test]
    fn a_run_that_never_began_shows_nothing() {
        let subject = MonitorTarget {
            pids: vec![std::process::id()],
            server: None,
            admin_url: None,
        };
        let watch = ResourceMonitor::start(subject, &Progress::default(), Duration::from_secs(60)).unwrap();
        let watched = watch.stop().unwrap();
        assert!(watched.costs.is_none() && watched.memory.is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_acknowledged_meanwhile_is_what_it_cost() {
        let subject = MonitorTarget {
            pids: vec![std::process::id()],
            server: None,
            admin_url: None,
        };
        let progress = Progress::default();
        progress.set_measurement_start(Instant::now());
        let watch = ResourceMonitor::start(subject, &progress, Duration::from_millis(400)).unwrap();
        let ends = Instant::now() + Duration::from_millis(500);
        while Instant::now() < ends {
            progress.order_acknowledged();
        }
        let watched = watch.stop().unwrap();
        let costs = watched.costs.unwrap();
        assert!(
            costs.orders > 0 && costs.cpu_us(Component::Generator).unwrap() > 0.0,
            "{costs}"
        );
        assert_eq!(costs.log, None);
        assert!(watched.memory.unwrap().max_kib > 0);
    }
}

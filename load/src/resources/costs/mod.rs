//! Cost per order: CPU time, context switches, WAL bytes and commits in the measured part of a run, divided by the
//! orders acknowledged in it. Depends far less on other load on the machine than a rate does.
//!
//! Rule: usage and orders are counted at the same two points in time. Values that cannot be read are reported as not
//! measured.

mod batches;
pub mod proc;
pub mod server;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use self::proc::{CpuUsage, MachineCpuTime};
use self::server::{ServerCounters, WalCost};

pub use self::batches::JournalBatchCounters;
pub use self::table::{CostRow, cost_rows, format_value};

/// Clients of Postgres with at least this share of the CPU time of their name are reported separately: lanes do most
/// of the work and the rest of a pool hardly any.
const BUSY_SHARE: f64 = 0.2;

/// The component that used the CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// The service, or another contender in a comparison.
    Service,
    Postgres,
    Generator,
}

impl Component {
    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Postgres => "Postgres",
            Self::Generator => "generator",
        }
    }
}

/// Usage of one thread, or of a process with one thread, at one point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    pub component: Component,
    /// Threads with the same name are reported together.
    pub name: String,
    pub usage: CpuUsage,
}

/// All readings of one point in time.
#[derive(Clone, Debug, Default)]
pub struct UsageSnapshot {
    pub orders: u64,
    /// Threads by id; `None` without `/proc`.
    pub threads: Option<BTreeMap<u32, ThreadSample>>,
    /// CPU time of ended backends, as counted by their postmaster.
    pub ended_backends: Duration,
    /// `None` without `/proc`.
    pub machine: Option<MachineCpuTime>,
    /// `None` without a database, or if the query failed.
    pub server: Option<ServerCounters>,
    /// From the service's `/metrics`.
    pub batches: Option<JournalBatchCounters>,
}

/// Cost per order of all threads with the same name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadCost {
    #[serde(rename = "who")]
    pub component: Component,
    pub name: String,
    /// Number of threads.
    pub tasks: usize,
    /// CPU time, in microseconds.
    pub cpu_us: f64,
    pub voluntary_switches: f64,
    pub involuntary_switches: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderCosts {
    /// Orders acknowledged in the interval.
    pub orders: u64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// By thread name; `None` if not measured.
    pub parts: Option<Vec<ThreadCost>>,
    /// CPU time of all other processes on the machine, in microseconds.
    pub others_us: Option<f64>,
    /// Idle CPU time, in microseconds.
    pub idle_us: Option<f64>,
    /// WAL and commits; `None` if not measured.
    #[serde(rename = "log")]
    pub wal: Option<WalCost>,
    /// Journal records per commit; `None` if the contender does not report them.
    pub records_per_batch: Option<f64>,
}

impl OrderCosts {
    /// Usage between two snapshots; `None` if no order was acknowledged.
    #[must_use]
    pub fn between(before: &UsageSnapshot, after: &UsageSnapshot, time: Duration) -> Option<Self> {
        let orders = after
            .orders
            .checked_sub(before.orders)
            .filter(|orders| *orders > 0)?;
        let each = 1.0 / orders as f64;
        let parts = match (&before.threads, &after.threads) {
            (Some(before_tasks), Some(after_tasks)) => {
                let mut parts = costs_by_thread(before_tasks, after_tasks, each);
                parts.extend(ended_backends_cost(before, after, each));
                Some(parts)
            }
            _ => None,
        };
        let known_us: f64 = parts.iter().flatten().map(|part| part.cpu_us).sum();
        let machine = before
            .machine
            .zip(after.machine)
            .filter(|_| parts.is_some())
            .map(|(before, after)| after.since(before));
        Some(Self {
            orders,
            seconds: time.as_secs_f64(),
            parts,
            // The machine counts in hundredths of a second, threads in nanoseconds: the difference may be negative.
            others_us: machine.map(|machine| (micros(machine.busy) * each - known_us).max(0.0)),
            idle_us: machine.map(|machine| micros(machine.idle) * each),
            wal: match (&before.server, &after.server) {
                (Some(before), Some(after)) => Some(after.since(before, orders)),
                _ => None,
            },
            records_per_batch: before
                .batches
                .zip(after.batches)
                .and_then(|(before, after)| after.mean_since(before)),
        })
    }

    /// CPU time of a component in microseconds; `None` if not measured.
    #[must_use]
    pub fn cpu_us(&self, component: Component) -> Option<f64> {
        let parts = self.parts.as_ref()?;
        let own = parts.iter().filter(|part| part.component == component);
        Some(own.map(|part| part.cpu_us).sum())
    }

    /// CPU time of the busiest thread name of a component in microseconds; `None` if not measured.
    #[must_use]
    pub fn busiest_us(&self, component: Component) -> Option<f64> {
        let parts = self.parts.as_ref()?;
        let own = parts.iter().filter(|part| part.component == component);
        own.map(|part| part.cpu_us).max_by(f64::total_cmp)
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}

/// Groups the usage of all threads by component and name.
fn costs_by_thread(
    before: &BTreeMap<u32, ThreadSample>,
    after: &BTreeMap<u32, ThreadSample>,
    each: f64,
) -> Vec<ThreadCost> {
    let mut named: BTreeMap<(Component, &str), Vec<CpuUsage>> = BTreeMap::new();
    for (id, task) in after {
        // A new thread has used all of its time since `before`.
        let earlier = before.get(id).map(|task| task.usage).unwrap_or_default();
        named
            .entry((task.component, &task.name))
            .or_default()
            .push(task.usage.since(earlier));
    }
    let mut parts = Vec::new();
    for ((component, name), mut used) in named {
        used.sort_by_key(|used| std::cmp::Reverse(used.cpu));
        let total: Duration = used.iter().map(|used| used.cpu).sum();
        let busy = used.partition_point(|used| used.cpu.as_secs_f64() >= total.as_secs_f64() * BUSY_SHARE);
        if component == Component::Postgres && busy > 0 && busy < used.len() {
            let (busy, rest) = used.split_at(busy);
            parts.push(sum_cost(component, format!("{name} (busiest)"), busy, each));
            parts.push(sum_cost(component, format!("{name} (others)"), rest, each));
        } else {
            parts.push(sum_cost(component, name.to_owned(), &used, each));
        }
    }
    parts
}

/// Usage of backends that ended in the interval.
fn ended_backends_cost(before: &UsageSnapshot, after: &UsageSnapshot, each: f64) -> Option<ThreadCost> {
    let (tasks, remaining) = (before.threads.as_ref()?, after.threads.as_ref()?);
    let ended_usage = tasks
        .iter()
        .filter(|(id, task)| task.component == Component::Postgres && !remaining.contains_key(id))
        .map(|(_, task)| task.usage.cpu);
    let cpu = after
        .ended_backends
        .saturating_sub(before.ended_backends)
        .saturating_sub(ended_usage.sum());
    (!cpu.is_zero()).then(|| ThreadCost {
        component: Component::Postgres,
        name: "ended backends".to_owned(),
        tasks: 0,
        cpu_us: micros(cpu) * each,
        voluntary_switches: 0.0,
        involuntary_switches: 0.0,
    })
}

fn sum_cost(component: Component, name: String, used: &[CpuUsage], each: f64) -> ThreadCost {
    let sum = used.iter().copied().fold(CpuUsage::default(), CpuUsage::plus);
    ThreadCost {
        component,
        name,
        tasks: used.len(),
        cpu_us: micros(sum.cpu) * each,
        voluntary_switches: sum.voluntary as f64 * each,
        involuntary_switches: sum.involuntary as f64 * each,
    }
}

#[cfg(test)]
mod tests;

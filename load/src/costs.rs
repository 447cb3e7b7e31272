//! What does an order cost? The time of the cores, the switches between tasks, the log and the commits that the measured
//! part took, divided by the orders that were acknowledged in it. Unlike a rate, these hardly move with what else the
//! machine does.
//!
//! Rule: readings and orders are counted at the same two moments. What cannot be read is not measured, and says so.

mod batches;
pub mod proc;
pub mod server;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use self::proc::{MachineCpuTime, CpuUsage};
use self::server::{WalCost, ServerCounters};

pub use self::batches::JournalBatchCounters;
pub use self::table::{CostRow, format_value, cost_rows};

/// Of the clients that share a name, who has at least this share of their time stands apart: lanes do most of the work, and
/// the rest of a pool next to none.
const BUSY_SHARE: f64 = 0.2;

/// Whose time it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// The service, or who takes its place in a comparison.
    Service,
    Postgres,
    Generator,
}

impl Component {
    /// As a table names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Postgres => "Postgres",
            Self::Generator => "generator",
        }
    }
}

/// A task, as it was found: a thread, or a process that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    pub component: Component,
    /// What it is called; tasks of one name are told together.
    pub name: String,
    /// What it used so far.
    pub usage: CpuUsage,
}

/// All that was read at one moment.
#[derive(Clone, Debug, Default)]
pub struct UsageSnapshot {
    /// Orders acknowledged so far.
    pub orders: u64,
    /// The tasks by their ids; `None` where there is no `/proc`.
    pub threads: Option<BTreeMap<u32, ThreadSample>>,
    /// What backends used that have ended since, as their server counts it.
    pub ended_backends: Duration,
    /// The cores; `None` where there is no `/proc`.
    pub machine: Option<MachineCpuTime>,
    /// What the server counts; `None` if it was not asked or did not say.
    pub server: Option<ServerCounters>,
    /// What the service counts of its batches.
    pub batches: Option<JournalBatchCounters>,
}

/// What tasks of one name cost an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadCost {
    pub who: Component,
    /// What they are called.
    pub name: String,
    /// How many there were.
    pub tasks: usize,
    /// Time of the cores, in microseconds.
    pub cpu_us: f64,
    /// How often one of them waited.
    pub voluntary_switches: f64,
    /// How often one was made to wait.
    pub involuntary_switches: f64,
}

/// What an order cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderCosts {
    /// Orders that were acknowledged while it was measured.
    pub orders: u64,
    /// How long that was, in seconds.
    pub seconds: f64,
    /// By whom; `None`: not measured.
    pub parts: Option<Vec<ThreadCost>>,
    /// Time of the cores that somebody else on the machine had, in microseconds.
    pub others_us: Option<f64>,
    /// Time of the cores that nobody had.
    pub idle_us: Option<f64>,
    /// The log and the commits; `None`: not measured.
    pub log: Option<WalCost>,
    /// Records of one commit; `None` if nobody says.
    pub records_per_batch: Option<f64>,
}

impl OrderCosts {
    /// Of what was used between two readings; `None` if no order was acknowledged.
    #[must_use]
    pub fn between(before: &UsageSnapshot, after: &UsageSnapshot, time: Duration) -> Option<Self> {
        let orders = after
            .orders
            .checked_sub(before.orders)
            .filter(|orders| *orders > 0)?;
        let each = 1.0 / orders as f64;
        let parts = match (&before.threads, &after.threads) {
            (Some(before_tasks), Some(after_tasks)) => {
                let mut parts = parts(before_tasks, after_tasks, each);
                parts.extend(ended(before, after, each));
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
            // The cores are counted by hundredths of a second, and tasks by nanoseconds.
            others_us: machine.map(|machine| (micros(machine.busy) * each - known_us).max(0.0)),
            idle_us: machine.map(|machine| micros(machine.idle) * each),
            log: match (&before.server, &after.server) {
                (Some(before), Some(after)) => Some(after.since(before, orders)),
                _ => None,
            },
            records_per_batch: before
                .batches
                .zip(after.batches)
                .and_then(|(before, after)| after.mean_since(before)),
        })
    }

    /// Time of the cores of all that somebody has, in microseconds; `None`: not measured.
    #[must_use]
    pub fn cpu_us(&self, who: Component) -> Option<f64> {
        let parts = self.parts.as_ref()?;
        let his = parts.iter().filter(|part| part.who == who);
        Some(his.map(|part| part.cpu_us).sum())
    }

    /// Time of the cores of the busiest tasks that somebody has, those of one name together; `None`: not measured.
    #[must_use]
    pub fn busiest_us(&self, who: Component) -> Option<f64> {
        let parts = self.parts.as_ref()?;
        let his = parts.iter().filter(|part| part.who == who);
        his.map(|part| part.cpu_us).max_by(f64::total_cmp)
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}

/// What each task used, by whose it is and its name.
fn parts(before: &BTreeMap<u32, ThreadSample>, after: &BTreeMap<u32, ThreadSample>, each: f64) -> Vec<ThreadCost> {
    let mut named: BTreeMap<(Component, &str), Vec<CpuUsage>> = BTreeMap::new();
    for (id, task) in after {
        // One that is new has used all of it since.
        let then = before.get(id).map(|task| task.usage).unwrap_or_default();
        named
            .entry((task.component, &task.name))
            .or_default()
            .push(task.usage.since(then));
    }
    let mut parts = Vec::new();
    for ((who, name), mut used) in named {
        used.sort_by_key(|used| std::cmp::Reverse(used.cpu));
        let whole: Duration = used.iter().map(|used| used.cpu).sum();
        let busy = used.partition_point(|used| used.cpu.as_secs_f64() >= whole.as_secs_f64() * BUSY_SHARE);
        if who == Component::Postgres && busy > 0 && busy < used.len() {
            let (busy, rest) = used.split_at(busy);
            parts.push(part(who, format!("{name}, the busiest"), busy, each));
            parts.push(part(who, format!("{name}, the others"), rest, each));
        } else {
            parts.push(part(who, name.to_owned(), &used, each));
        }
    }
    parts
}

/// What those used that were there before and have gone, and those that came and went.
fn ended(before: &UsageSnapshot, after: &UsageSnapshot, each: f64) -> Option<ThreadCost> {
    let (tasks, left) = (before.threads.as_ref()?, after.threads.as_ref()?);
    let gone = tasks
        .iter()
        .filter(|(id, task)| task.component == Component::Postgres && !left.contains_key(id))
        .map(|(_, task)| task.usage.cpu);
    let cpu = after
        .ended_backends
        .saturating_sub(before.ended_backends)
        .saturating_sub(gone.sum());
    (!cpu.is_zero()).then(|| ThreadCost {
        who: Component::Postgres,
        name: "backends that ended".to_owned(),
        tasks: 0,
        cpu_us: micros(cpu) * each,
        voluntary_switches: 0.0,
        involuntary_switches: 0.0,
    })
}

fn part(who: Component, name: String, used: &[CpuUsage], each: f64) -> ThreadCost {
    let sum = used.iter().copied().fold(CpuUsage::default(), CpuUsage::plus);
    ThreadCost {
        who,
        name,
        tasks: used.len(),
        cpu_us: micros(sum.cpu) * each,
        voluntary_switches: sum.voluntary as f64 * each,
        involuntary_switches: sum.involuntary as f64 * each,
    }
}

#[cfg(test)]
mod tests;

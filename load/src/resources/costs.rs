//! Cost per order: CPU time, WAL bytes and commits in the measured part of a run, divided by the orders
//! acknowledged in it. Depends far less on other load on the machine than a rate does.
//!
//! Rule: usage and orders are counted at the same two points in time. Values that cannot be read are reported
//! as not measured.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::proc::{Component, MachineCpuTime, ThreadSample};
use super::server::{ServerCounters, WalCost};
use super::service_metrics::JournalBatchCounters;

/// Clients of Postgres with at least this share of the CPU time of their name are reported separately: lanes
/// do most of the work and the rest of a pool hardly any.
const BUSY_SHARE: f64 = 0.2;

/// Name of the threads that send the load, with their numbers collapsed as in [`ThreadCost::name`].
const DRIVER_THREADS: &str = "generator-*";

/// All readings of one point in time.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageSnapshot {
    pub orders: u64,
    /// Threads by id; `None` without `/proc`.
    pub threads: Option<BTreeMap<u32, ThreadSample>>,
    /// CPU time of ended backends, as counted by their postmaster.
    pub ended_backends: Duration,
    /// `None` without `/proc`.
    pub machine: Option<MachineCpuTime>,
    /// `None` without a database, or if the query failed.
    pub server: Option<ServerCounters>,
    /// `None` if the contender does not report them.
    pub batches: Option<JournalBatchCounters>,
    /// Resident memory of the service; `None` if its processes are unknown.
    pub resident_kib: Option<u64>,
}

impl UsageSnapshot {
    fn has(&self, component: Component) -> bool {
        let mut threads = self.threads.iter().flat_map(BTreeMap::values);
        threads.any(|thread| thread.component == component)
    }

    /// CPU time of a component since an earlier snapshot, without ended threads; `None` if its processes are
    /// unknown.
    pub(crate) fn cpu_since(&self, earlier: &Self, component: Component) -> Option<Duration> {
        let (before, now) = earlier.threads.as_ref().zip(self.threads.as_ref())?;
        let own = now.iter().filter(|(_, thread)| thread.component == component);
        let used = own.map(|(id, thread)| used_since(before, *id, thread));
        self.has(component).then(|| used.sum())
    }
}

/// A new thread has used all of its time since the earlier snapshot.
fn used_since(before: &BTreeMap<u32, ThreadSample>, id: u32, thread: &ThreadSample) -> Duration {
    let earlier = before.get(&id).map(|thread| thread.cpu).unwrap_or_default();
    thread.cpu.saturating_sub(earlier)
}

/// CPU time per order of all threads with the same name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadCost {
    pub component: Component,
    pub name: String,
    /// Number of threads.
    pub threads: usize,
    pub cpu_us: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderCosts {
    /// Orders acknowledged in the interval.
    pub orders: u64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Sorted by thread name; `None` if not measured.
    pub threads: Option<Vec<ThreadCost>>,
    /// CPU time of all other processes on the machine and steal time, in microseconds.
    pub other_processes_us: Option<f64>,
    /// Idle CPU time, in microseconds.
    pub idle_us: Option<f64>,
    pub wal: Option<WalCost>,
    /// Journal records per commit; `None` if the contender does not report them.
    pub records_per_batch: Option<f64>,
}

impl OrderCosts {
    /// Usage between two snapshots; `None` if no order was acknowledged.
    pub(crate) fn between(before: &UsageSnapshot, after: &UsageSnapshot, time: Duration) -> Option<Self> {
        let orders = after
            .orders
            .checked_sub(before.orders)
            .filter(|orders| *orders > 0)?;
        let us_each = |time: Duration| time.as_secs_f64() * 1_000_000.0 / orders as f64;
        let threads = before.threads.as_ref().zip(after.threads.as_ref());
        let threads = threads.map(|(earlier, later)| {
            let mut costs = costs_by_name(earlier, later, us_each);
            costs.extend(ended_backends_cost(before, after, us_each));
            costs
        });
        let known_us: f64 = threads.iter().flatten().map(|cost| cost.cpu_us).sum();
        let machine = before.machine.zip(after.machine).filter(|_| threads.is_some());
        // Without its processes the service would be other work.
        let is_complete = after.has(Component::Service);
        Some(Self {
            orders,
            seconds: time.as_secs_f64(),
            threads,
            // The machine counts in hundredths of a second, threads in nanoseconds: the difference may be
            // negative.
            other_processes_us: machine
                .filter(|_| is_complete)
                .map(|(before, after)| (us_each(after.busy.saturating_sub(before.busy)) - known_us).max(0.0)),
            idle_us: machine.map(|(before, after)| us_each(after.idle.saturating_sub(before.idle))),
            wal: before
                .server
                .zip(after.server)
                .map(|(before, after)| after.since(before, orders)),
            records_per_batch: before
                .batches
                .zip(after.batches)
                .and_then(|(before, after)| after.mean_since(before)),
        })
    }

    /// CPU time of a component in microseconds; `None` if not measured.
    #[must_use]
    pub fn cpu_us(&self, component: Component) -> Option<f64> {
        let own = self.threads.as_ref()?.iter();
        let mut own = own.filter(|cost| cost.component == component).peekable();
        own.peek()?;
        Some(own.map(|cost| cost.cpu_us).sum())
    }

    /// Share of a core that each thread of the generator's driver used, from 0 to 1; `None` if not measured.
    #[must_use]
    pub fn generator_share(&self) -> Option<f64> {
        let drivers = self
            .threads
            .iter()
            .flatten()
            .find(|cost| cost.component == Component::Generator && cost.name == DRIVER_THREADS)?;
        let used_s = drivers.cpu_us * self.orders as f64 / 1_000_000.0;
        Some(used_s / self.seconds / drivers.threads as f64).filter(|share| share.is_finite())
    }
}

/// Groups the usage of all threads by component and name.
fn costs_by_name(
    before: &BTreeMap<u32, ThreadSample>,
    after: &BTreeMap<u32, ThreadSample>,
    us_each: impl Fn(Duration) -> f64,
) -> Vec<ThreadCost> {
    let mut by_name: BTreeMap<(Component, &str), Vec<Duration>> = BTreeMap::new();
    for (id, thread) in after {
        let own = by_name.entry((thread.component, &thread.name)).or_default();
        own.push(used_since(before, *id, thread));
    }
    let mut costs = Vec::new();
    for ((component, name), mut used) in by_name {
        used.sort_by_key(|used| std::cmp::Reverse(*used));
        let total: Duration = used.iter().sum();
        let busy = used.partition_point(|used| used.as_secs_f64() >= total.as_secs_f64() * BUSY_SHARE);
        let mut push = |name: String, used: &[Duration]| {
            costs.push(ThreadCost {
                component,
                name,
                threads: used.len(),
                cpu_us: us_each(used.iter().sum()),
            });
        };
        if component == Component::Postgres && busy > 0 && busy < used.len() {
            let (busy, rest) = used.split_at(busy);
            push(format!("{name} (busiest)"), busy);
            push(format!("{name} (others)"), rest);
        } else {
            push(name.to_owned(), &used);
        }
    }
    costs
}

/// Usage of backends that ended in the interval.
fn ended_backends_cost(
    before: &UsageSnapshot,
    after: &UsageSnapshot,
    us_each: impl Fn(Duration) -> f64,
) -> Option<ThreadCost> {
    let (earlier, remaining) = (before.threads.as_ref()?, after.threads.as_ref()?);
    let ended = earlier
        .iter()
        .filter(|(id, thread)| thread.component == Component::Postgres && !remaining.contains_key(id));
    let used_before: Duration = ended.map(|(_, thread)| thread.cpu).sum();
    let cpu = after
        .ended_backends
        .saturating_sub(before.ended_backends)
        .saturating_sub(used_before);
    (!cpu.is_zero()).then(|| ThreadCost {
        component: Component::Postgres,
        name: "ended backends".to_owned(),
        threads: 0,
        cpu_us: us_each(cpu),
    })
}

/// Formats with three decimals below 10, one below 1,000, and none above; a missing value as not measured.
#[must_use]
pub fn format_value(value: Option<f64>) -> String {
    // The sum of an empty iterator is -0.0; adding 0.0 removes the sign.
    match value.map(|value| value + 0.0) {
        None => "not measured".to_owned(),
        Some(value) if value >= 1_000.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

/// A line of the cost table.
pub(crate) struct CostRow {
    /// A part of the last row that is none.
    pub(crate) is_part: bool,
    pub(crate) name: String,
    pub(crate) value: Option<f64>,
}

impl OrderCosts {
    pub(crate) fn rows(&self) -> Vec<CostRow> {
        let row = |is_part, name, value| CostRow { is_part, name, value };
        let mut rows = Vec::new();
        for component in [Component::Service, Component::Postgres, Component::Generator] {
            rows.push(row(false, format!("{component}, CPU µs"), self.cpu_us(component)));
            let own = self
                .threads
                .iter()
                .flatten()
                .filter(|cost| cost.component == component);
            let mut by_cpu: Vec<_> = own.filter(|cost| cost.cpu_us >= 0.01).collect();
            by_cpu.sort_by(|one, other| other.cpu_us.total_cmp(&one.cpu_us));
            let parts = by_cpu.into_iter();
            rows.extend(parts.map(|cost| {
                row(
                    true,
                    format!("{} ({})", cost.name, cost.threads),
                    Some(cost.cpu_us),
                )
            }));
        }
        let others = [
            ("other processes and steal, CPU µs", self.other_processes_us),
            ("idle, µs", self.idle_us),
            ("WAL, bytes", self.wal.map(|wal| wal.bytes)),
            ("commits", self.wal.map(|wal| wal.commits)),
            ("journal records per commit", self.records_per_batch),
        ];
        rows.extend(others.map(|(name, value)| row(false, name.to_owned(), value)));
        rows
    }
}

impl fmt::Display for OrderCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "cost per order ({} acknowledged in {:.2} s)",
            self.orders, self.seconds
        )?;
        self.rows().iter().try_for_each(|row| {
            let name = format!("{}{}", if row.is_part { "    " } else { "  " }, row.name);
            writeln!(f, "{name:<48}{:>12}", format_value(row.value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(component: Component, name: &str, cpu_us: u64) -> ThreadSample {
        ThreadSample {
            component,
            name: name.to_owned(),
            cpu: Duration::from_micros(cpu_us),
        }
    }

    fn snapshot(orders: u64, threads: &[(u32, ThreadSample)], busy_us: u64) -> UsageSnapshot {
        UsageSnapshot {
            orders,
            threads: Some(threads.iter().cloned().collect()),
            machine: Some(MachineCpuTime {
                busy: Duration::from_micros(busy_us),
                idle: Duration::from_micros(busy_us * 2),
                steal: Duration::ZERO,
            }),
            ..UsageSnapshot::default()
        }
    }

    /// Costs of 100 orders between two snapshots.
    fn between(before: &[(u32, ThreadSample)], after: &[(u32, ThreadSample)]) -> OrderCosts {
        let (before, after) = (snapshot(50, before, 0), snapshot(150, after, 10_000));
        OrderCosts::between(&before, &after, Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn threads_of_one_name_are_summed_and_new_ones_count_fully() {
        let costs = between(
            &[
                (1, thread(Component::Service, "worker-*", 1_000)),
                (3, thread(Component::Generator, "load", 0)),
            ],
            &[
                (1, thread(Component::Service, "worker-*", 3_000)),
                (2, thread(Component::Service, "worker-*", 500)),
                (3, thread(Component::Generator, "load", 700)),
                (4, thread(Component::Generator, "a", 800)),
            ],
        );
        let threads = costs.threads.as_deref().unwrap();
        assert_eq!((threads[0].threads, threads[0].cpu_us), (2, 25.0));
        assert_eq!(costs.cpu_us(Component::Generator), Some(15.0));
        assert_eq!(
            (costs.other_processes_us, costs.idle_us),
            (Some(60.0), Some(200.0))
        );
    }

    #[test]
    fn generator_share_is_that_of_one_driver_thread() {
        let drivers = [
            (1, thread(Component::Generator, DRIVER_THREADS, 800_000)),
            (2, thread(Component::Generator, DRIVER_THREADS, 400_000)),
            (3, thread(Component::Generator, "load", 900_000)),
        ];
        // 1.2 s of CPU time of two threads in one second.
        assert_eq!(between(&[], &drivers).generator_share(), Some(0.6));
        assert_eq!(between(&[], &drivers[2..]).generator_share(), None);
    }

    #[test]
    fn busiest_backends_of_a_pool_are_split() {
        let name = "vouchsafe@vouchsafe";
        let backends = |all: &[(u32, u64)]| -> Vec<_> {
            let backend = |&(pid, cpu_us)| (pid, thread(Component::Postgres, name, cpu_us));
            all.iter().map(backend).collect()
        };
        let costs = between(&[], &backends(&[(1, 9_000), (2, 500), (3, 300)]))
            .threads
            .unwrap();
        assert_eq!(
            (costs[0].name.as_str(), costs[0].cpu_us),
            ("vouchsafe@vouchsafe (busiest)", 90.0)
        );
        assert_eq!((costs[1].threads, costs[1].cpu_us), (2, 8.0));

        let even: Vec<_> = (0..8).map(|pid| (pid, 100)).collect();
        assert_eq!(between(&[], &backends(&even)).threads.unwrap()[0].threads, 8);
    }

    #[test]
    fn ended_backend_is_counted_once() {
        let before = [(7, thread(Component::Postgres, "autovacuum worker", 1_000))];
        let mut after = snapshot(150, &[], 10_000);
        // The postmaster counts 3 ms of ended backends; 1 ms of that was used before the interval.
        after.ended_backends = Duration::from_millis(3);
        let costs = OrderCosts::between(&snapshot(50, &before, 0), &after, Duration::from_secs(1)).unwrap();
        assert_eq!(costs.threads.unwrap()[0].cpu_us, 20.0);
    }

    #[test]
    fn missing_readings_are_not_measured() {
        let nothing = |orders| UsageSnapshot {
            orders,
            ..UsageSnapshot::default()
        };
        let costs = OrderCosts::between(&nothing(0), &nothing(3), Duration::from_secs(1)).unwrap();
        assert_eq!((costs.cpu_us(Component::Service), costs.idle_us), (None, None));
        assert_eq!(costs.to_string().matches("not measured").count(), 8, "{costs}");
        assert_eq!(
            OrderCosts::between(&nothing(3), &nothing(3), Duration::from_secs(1)),
            None
        );
    }
}

//! Tests of cost calculation between two snapshots.

use super::*;

fn used(cpu_us: u64, voluntary: u64) -> CpuUsage {
    CpuUsage {
        cpu: Duration::from_micros(cpu_us),
        voluntary,
        involuntary: 0,
    }
}

fn task(component: Component, name: &str, cpu_us: u64, voluntary: u64) -> ThreadSample {
    ThreadSample {
        component,
        name: name.to_owned(),
        usage: used(cpu_us, voluntary),
    }
}

fn snapshot(orders: u64, tasks: &[(u32, ThreadSample)], busy_us: u64) -> UsageSnapshot {
    UsageSnapshot {
        orders,
        threads: Some(tasks.iter().cloned().collect()),
        ended_backends: Duration::ZERO,
        machine: Some(MachineCpuTime {
            busy: Duration::from_micros(busy_us),
            idle: Duration::from_micros(busy_us * 2),
        }),
        server: None,
        batches: None,
    }
}

/// Costs of 100 orders between two snapshots.
fn between(before: &[(u32, ThreadSample)], after: &[(u32, ThreadSample)]) -> OrderCosts {
    OrderCosts::between(
        &snapshot(50, before, 0),
        &snapshot(150, after, 10_000),
        Duration::from_secs(1),
    )
    .unwrap()
}

#[test]
fn threads_of_one_name_are_summed_and_new_ones_count_fully() {
    let costs = between(
        &[
            (1, task(Component::Service, "worker-*", 1_000, 10)),
            (3, task(Component::Generator, "load", 0, 0)),
        ],
        &[
            (1, task(Component::Service, "worker-*", 3_000, 60)),
            (2, task(Component::Service, "worker-*", 500, 50)),
            (3, task(Component::Generator, "load", 700, 0)),
        ],
    );
    let parts = costs.parts.as_deref().unwrap();
    assert_eq!(
        (parts[0].tasks, parts[0].cpu_us, parts[0].voluntary_switches),
        (2, 25.0, 1.0)
    );
    assert_eq!(costs.cpu_us(Component::Generator), Some(7.0));
    assert_eq!((costs.others_us, costs.idle_us), (Some(68.0), Some(200.0)));
}

#[test]
fn busiest_backends_of_a_pool_are_split() {
    let name = "vouchsafe@vouchsafe";
    let after: Vec<_> = [(1, 9_000), (2, 500), (3, 300)]
        .map(|(pid, cpu_us)| (pid, task(Component::Postgres, name, cpu_us, 0)))
        .into();
    let costs = between(&[], &after);
    let parts: Vec<_> = costs.parts.as_deref().unwrap().iter().collect();
    assert_eq!(parts.len(), 2);
    assert_eq!(
        (parts[0].name.as_str(), parts[0].cpu_us),
        ("vouchsafe@vouchsafe (busiest)", 90.0)
    );
    assert_eq!((parts[1].tasks, parts[1].cpu_us), (2, 8.0));

    // An evenly loaded pool is not split.
    let even: Vec<_> = (0..8)
        .map(|pid| (pid, task(Component::Postgres, name, 100, 0)))
        .collect();
    assert_eq!(between(&[], &even).parts.unwrap()[0].tasks, 8);
}

#[test]
fn ended_backend_is_counted_once() {
    let before = [(7, task(Component::Postgres, "autovacuum worker", 1_000, 0))];
    let mut after = snapshot(150, &[], 10_000);
    // The postmaster counts 3 ms of ended backends; 1 ms of that was used before the interval.
    after.ended_backends = Duration::from_millis(3);
    let costs = OrderCosts::between(&snapshot(50, &before, 0), &after, Duration::from_secs(1)).unwrap();
    assert_eq!(costs.parts.unwrap()[0].cpu_us, 20.0);
}

#[test]
fn missing_readings_are_not_measured() {
    let nothing = |orders| UsageSnapshot {
        orders,
        ..UsageSnapshot::default()
    };
    let costs = OrderCosts::between(&nothing(0), &nothing(3), Duration::from_secs(1)).unwrap();
    assert_eq!((costs.cpu_us(Component::Service), costs.idle_us), (None, None));
    assert_eq!(costs.to_string().matches("not measured").count(), 2, "{costs}");
    assert_eq!(
        OrderCosts::between(&nothing(3), &nothing(3), Duration::from_secs(1)),
        None
    );
}

#[test]
fn table_sorts_threads_by_cpu() {
    let costs = between(
        &[],
        &[
            (1, task(Component::Service, "a", 100, 0)),
            (2, task(Component::Service, "b", 900, 0)),
        ],
    );
    let names: Vec<_> = cost_rows(&costs).into_iter().map(|row| row.name).collect();
    assert_eq!(names[..3], ["service", "b", "a"]);
}

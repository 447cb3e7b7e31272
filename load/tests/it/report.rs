//! Tests of the report as text and JSON.

use std::time::Duration;

use vouchsafe_load::audit::Audit;
use vouchsafe_load::follow_up::FollowUp;
use vouchsafe_load::follow_up::restart::RestartTimes;
use vouchsafe_load::report::Report;
use vouchsafe_load::resources::costs::{OrderCosts, ThreadCost};
use vouchsafe_load::resources::machine::Machine;
use vouchsafe_load::resources::proc::Component;
use vouchsafe_load::resources::server::WalCost;
use vouchsafe_load::run::metrics::{RunMetrics, Setup};
use vouchsafe_load::run::resource_monitor::{MemoryUsage, ResourceUsage};
use vouchsafe_load::run::result::RunResult;
use vouchsafe_load::tally::Tally;
use vouchsafe_load::tally::run_history::SentOrders;

fn usage() -> ResourceUsage {
    ResourceUsage {
        costs: Some(OrderCosts {
            orders: 1_000,
            seconds: 2.0,
            threads: Some(vec![ThreadCost {
                component: Component::Postgres,
                name: "checkpointer".to_owned(),
                threads: 1,
                cpu_us: 7.25,
            }]),
            other_processes_us: Some(3.5),
            idle_us: None,
            wal: Some(WalCost {
                bytes: 2_510.0,
                commits: 0.01,
            }),
            records_per_batch: Some(120.0),
        }),
        memory: Some(MemoryUsage {
            min_kib: 1_024,
            max_kib: 3_072,
            last_kib: 2_048,
            samples: 11,
        }),
    }
}

#[test]
fn costs_memory_and_restarts_are_in_text_and_json() {
    let result = RunResult {
        tally: Tally::new(0),
        measured_for: Duration::from_secs(2),
        lasted: Duration::from_secs(2),
        sent: SentOrders::default(),
    };
    let report = Report {
        scenario: None,
        metrics: RunMetrics::from_run(Setup::default(), &result),
        follow_up: FollowUp {
            restarts: RestartTimes::from_durations(&[Duration::from_millis(480)]),
            ..FollowUp::default()
        },
        usage: usage(),
        audit: Audit { checks: Vec::new() },
        machine: Machine::observe_before(),
        database: None,
    };
    let text = report.to_string();
    for expected in [
        "checkpointer",
        "7.250",
        "other processes",
        "WAL, bytes",
        "2510",
        "not measured",
        "journal records per commit",
        "min 1.0  max 3.0  last 2.0",
        "median 480, max 480, of 1: 480",
    ] {
        assert!(text.contains(expected), "{expected} is not in the text: {text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["costs"]["threads"][0]["component"], "postgres");
    assert_eq!(json["costs"]["wal"]["bytes"], 2_510.0);
    assert_eq!(json["memory"]["max_kib"], 3_072);
    assert_eq!(json["restarts"]["median_ms"], 480.0);
}

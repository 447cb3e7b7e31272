//! Tests of the report as text, JSON and HTML.

use std::time::Duration;

use vouchsafe_load::audit::Audit;
use vouchsafe_load::follow_up::FollowUp;
use vouchsafe_load::follow_up::restart::RestartTimes;
use vouchsafe_load::report::{Report, render_html};
use vouchsafe_load::resources::costs::server::WalCost;
use vouchsafe_load::resources::costs::{Component, OrderCosts, ThreadCost};
use vouchsafe_load::resources::machine::Machine;
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
            parts: Some(vec![ThreadCost {
                component: Component::Postgres,
                name: "checkpointer".to_owned(),
                tasks: 1,
                cpu_us: 7.25,
                voluntary_switches: 0.5,
                involuntary_switches: 0.125,
            }]),
            others_us: Some(3.5),
            idle_us: Some(0.25),
            wal: Some(WalCost {
                bytes: 2_510.0,
                record_bytes: Some(2_400.0),
                image_bytes: None,
                records: 13.5,
                images: 0.0,
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

fn report() -> Report {
    let result = RunResult {
        tally: Tally::new(0),
        measured_for: Duration::from_secs(2),
        lasted: Duration::from_secs(2),
        sent: SentOrders::default(),
    };
    let setup = Setup {
        url: String::new(),
        order: String::new(),
        pace: String::new(),
        signing: "",
        seed: 1,
        forms: Vec::new(),
        threads: 1,
        warm_up_s: 0,
    };
    Report {
        scenario: None,
        metrics: RunMetrics::from_run(setup, &result),
        follow_up: FollowUp {
            restarts: RestartTimes::from_durations(&[Duration::from_millis(480)]),
            ..FollowUp::default()
        },
        usage: usage(),
        audit: Audit { checks: Vec::new() },
        machine: Machine::observe_before(),
        database: None,
    }
}

#[test]
fn costs_memory_and_restarts_are_in_all_formats() {
    let report = report();
    let (text, page) = (report.to_string(), render_html(&report));
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
        assert!(page.contains(expected), "{expected} is not in the page");
    }
    let (shown, _) = page.split_once("Full report").unwrap();
    assert!(shown.contains("Cost per order") && shown.contains("checkpointer"));

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["costs"]["parts"][0]["who"], "postgres");
    assert_eq!(json["costs"]["log"]["image_bytes"], serde_json::Value::Null);
    assert_eq!(json["memory"]["max_kib"], 3_072);
    assert_eq!(json["restarts"]["median_ms"], 480.0);
}

//! Tests of the report as text, JSON and HTML, and of its comparison with an earlier report.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use vouchsafe_load::audit::Audit;
use vouchsafe_load::condition::Condition;
use vouchsafe_load::follow_up::FollowUp;
use vouchsafe_load::follow_up::restart::RestartTimes;
use vouchsafe_load::report::baseline::Baseline;
use vouchsafe_load::report::{Report, RunReport, ScenarioInfo};
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::costs::{OrderCosts, ThreadCost};
use vouchsafe_load::resources::other_work::OtherWork;
use vouchsafe_load::resources::proc::Component;
use vouchsafe_load::resources::server::WalCost;
use vouchsafe_load::resources::usage_series::{UsageSeries, UsageWindow};
use vouchsafe_load::run::metrics::{Latency, RunMetrics, Setup};
use vouchsafe_load::run::resource_monitor::{MemoryUsage, ResourceUsage};
use vouchsafe_load::run::result::RunResult;
use vouchsafe_load::tally::Tally;
use vouchsafe_load::tally::run_history::SentOrders;

pub(crate) fn usage() -> ResourceUsage {
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
            min_mib: 1.0,
            max_mib: 3.0,
            last_mib: 2.0,
            samples: 11,
        }),
        usage_series: UsageSeries(vec![UsageWindow {
            end_s: 1.0,
            postgres_cores: Some(0.5),
            wal_bytes_per_s: Some(9e6),
            memory_mib: Some(3.0),
            has_checkpoint: true,
            ..UsageWindow::default()
        }]),
        other_work: None,
    }
}

pub(crate) fn metrics() -> RunMetrics {
    let result = RunResult {
        tally: Tally::new(0, Instant::now()),
        loaded_for: Duration::from_secs(2),
        measured_for: Duration::from_secs(2),
        lasted: Duration::from_secs(2),
        offered: None,
        sent: SentOrders::default(),
    };
    let setup = Setup {
        length: "2 s".to_owned(),
        ..Setup::default()
    };
    RunMetrics {
        orders_per_s: 500.0,
        failed_share: 0.25,
        latency_ms: Latency {
            p50: 4.0,
            p99: 40.0,
            ..Latency::default()
        },
        percentiles: vec![(50.0, 4.0), (99.0, 40.0), (100.0, 41.0)],
        ..RunMetrics::from_run(setup, &result)
    }
}

/// A run of the scenario with this name.
pub(crate) fn run(name: &str) -> RunReport {
    let conditions = Conditions {
        started_at: "2026-11-24T10:00:00Z".to_owned(),
        program: Some("vouchsafe 0.2.0".to_owned()),
        profile: Some("release".to_owned()),
        disk_sync_ms: Some(0.25),
        environment: Some(BTreeMap::new()),
        ..Conditions::default()
    };
    RunReport {
        scenario: Some(ScenarioInfo {
            name: name.to_owned(),
            description: "Throughput <of> one SKU.".to_owned(),
            hash: "0a0b0c0d0e0f".to_owned(),
            seeding_s: 1.0,
            pauses: None,
        }),
        follow_up: FollowUp {
            restarts: RestartTimes::from_durations(&[Duration::from_millis(480)]),
            ..FollowUp::default()
        },
        ..RunReport::new(conditions, metrics(), usage(), Audit { checks: Vec::new() })
    }
}

pub(crate) fn html(report: &Report) -> String {
    report.to_html().unwrap()
}

pub(crate) fn conditions(texts: &[&str]) -> Vec<Condition> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn costs_memory_and_restarts_are_in_text_json_and_html() {
    let report = Report {
        runs: vec![run("hot-sku")],
    };
    for text in [report.to_string(), html(&report)] {
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
            "2026-11-24T10:00:00Z",
            "vouchsafe 0.2.0, profile release, commit unknown",
            "0.250 ms to write and sync 8 KiB",
            "40.0",
        ] {
            assert!(text.contains(expected), "{expected} is not in the text: {text}");
        }
    }
    let json = serde_json::to_value(&report).unwrap();
    let run = &json["runs"][0];
    assert_eq!(run["costs"]["threads"][0]["component"], "postgres");
    assert_eq!(run["costs"]["wal"]["bytes"], 2_510.0);
    assert_eq!(run["memory"]["max_mib"], 3.0);
    assert_eq!(run["restarts"]["median_ms"], 480.0);
    assert_eq!(run["conditions"]["disk_sync_ms"], 0.25);
    assert_eq!(run["series"]["windows"].as_array().unwrap().len(), 2);
}

#[test]
fn html_page_is_self_contained_and_escaped() {
    let page = html(&Report {
        runs: vec![run("hot-sku"), run("mixed")],
    });
    assert!(page.contains("Throughput &lt;of&gt; one SKU."), "{page}");
    assert_eq!(page.matches("<svg").count(), 2 * 6, "six charts per run");
    for shown in [
        "orders per second",
        "latency, ms",
        "time after the warm-up, s",
        "Latency by percentile",
        "busy cores",
        "MiB per second",
        "a checkpoint ended",
        "resident, MiB",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(
        page.contains(r##"href="#mixed""##) && page.contains(r#"id="mixed""#),
        "{page}"
    );
    let references = page.replace("http://www.w3.org/2000/svg", "");
    for reference in ["<script", "<link", "<img", "http", "url(", "@import"] {
        assert!(!references.contains(reference), "{reference} in {page}");
    }
}

#[test]
fn other_work_makes_figures_a_lower_bound() {
    for (share, warns) in [(0.01, false), (0.12, true)] {
        let usage = ResourceUsage {
            other_work: Some(OtherWork {
                share: Some(share),
                steal_share: 0.0,
            }),
            ..usage()
        };
        let run = RunReport::new(
            Conditions::default(),
            metrics(),
            usage,
            Audit { checks: Vec::new() },
        );
        let report = Report { runs: vec![run] };
        for text in [
            report.to_string(),
            html(&report),
            serde_json::to_string(&report).unwrap(),
        ] {
            assert_eq!(text.contains("figures are a lower bound"), warns, "{text}");
        }
    }
}

/// Writes a report and reads it as a baseline for these scenarios.
pub(crate) fn baseline(report: &Report, scenarios: &[Option<&str>]) -> anyhow::Result<Baseline> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("earlier.json");
    std::fs::write(&path, serde_json::to_vec(report).unwrap()).unwrap();
    Baseline::read(&path, scenarios)
}

#[test]
fn baseline_gives_ratios_and_differing_conditions() {
    let mut earlier = run("hot-sku");
    earlier.metrics.orders_per_s = 400.0;
    earlier.conditions.profile = Some("dist".to_owned());
    earlier.conditions.environment = Some([("VOUCHSAFE_LANES".to_owned(), "4".to_owned())].into());
    earlier.metrics.setup.length = "60 s".to_owned();
    earlier.conditions.disk_sync_ms = Some(1.0);
    earlier.warnings.push("other work used the machine".to_owned());
    let earlier = Report {
        runs: vec![run("mixed"), earlier],
    };
    let baseline = baseline(&earlier, &[Some("hot-sku")]).unwrap();
    let mut current = run("hot-sku");
    current.compare_with(&baseline, &[]).unwrap();
    let report = Report { runs: vec![current] };
    for text in [report.to_string(), html(&report)] {
        for expected in [
            "1.25 ×",
            "postgres, CPU µs per order",
            "profile: dist then, release now",
            "environment VOUCHSAFE_LANES: 4 then, not set now",
            "length: 60 s then, 2 s now",
            "disk sync, ms: 1.000 then, 0.250 now",
            "warning of the baseline: other work used the machine",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert!(!text.contains("program: vouchsafe 0.2.0 then"), "{text}");
    }
}

#[test]
fn unusable_baseline_is_rejected_before_the_run() {
    let report = Report {
        runs: vec![run("mixed"), run("restart")],
    };
    let error = baseline(&report, &[Some("mixed"), Some("hot-sku")])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is a report of mixed, restart: it has no run of hot-sku"),
        "{error}"
    );
    let error = baseline(&report, &[None]).unwrap_err().to_string();
    assert!(error.contains("it has no run of load run"), "{error}");
    let error = Baseline::read(Path::new("/nonexistent.json"), &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot read the baseline"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    for text in [
        "not JSON",
        "{}",
        r#"{"runs":[]}"#,
        r#"{"runs":[{"scenario":null}]}"#,
    ] {
        let path = directory.path().join("other.json");
        std::fs::write(&path, text).unwrap();
        let error = Baseline::read(&path, &[None]).unwrap_err().to_string();
        assert!(error.contains("is not a JSON report"), "{text}: {error}");
    }
}

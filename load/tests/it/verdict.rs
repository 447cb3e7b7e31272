//! Tests of the verdict of a report: thresholds, ratios to a baseline, missed rates, figures that decide
//! nothing.

use vouchsafe_load::audit::{Audit, Check};
use vouchsafe_load::report::{Report, RunReport, Verdict};
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::other_work::OtherWork;
use vouchsafe_load::run::metrics::{Latency, RunMetrics};
use vouchsafe_load::run::resource_monitor::ResourceUsage;
use vouchsafe_load::sweep::{Step, SweepReport};
use vouchsafe_load::tally::open_loop::OfferedLoad;

use crate::report::{baseline, conditions, html, metrics, run, usage};

/// A run with one passed threshold.
fn decided_run(metrics: RunMetrics, usage: ResourceUsage) -> RunReport {
    let mut run = RunReport::new(
        Conditions::default(),
        metrics,
        usage,
        Audit { checks: Vec::new() },
    );
    run.check_thresholds(&conditions(&["orders_per_s>1"])).unwrap();
    run
}

#[test]
fn starved_generator_or_busy_machine_makes_thresholds_inconclusive() {
    let delayed = |p99| RunMetrics {
        send_delay_ms: Some(Latency {
            p99,
            ..Latency::default()
        }),
        ..metrics()
    };
    let busy = |share| ResourceUsage {
        other_work: Some(OtherWork {
            share: Some(share),
            steal_share: 0.0,
        }),
        ..usage()
    };
    // p99 is 40 ms.
    for (metrics, usage, warns, verdict) in [
        (delayed(4.0), usage(), false, Verdict::Passed),
        (delayed(4.1), usage(), true, Verdict::Passed),
        (delayed(20.1), usage(), true, Verdict::Inconclusive),
        (metrics(), busy(0.09), true, Verdict::Passed),
        (metrics(), busy(0.11), true, Verdict::Inconclusive),
    ] {
        let mut run = decided_run(metrics, usage);
        assert_eq!(
            (!run.warnings.is_empty(), run.verdict()),
            (warns, verdict),
            "{run}"
        );
        assert_eq!(
            run.to_string().contains("  inconclusive: "),
            verdict == Verdict::Inconclusive,
            "{run}"
        );
        run.thresholds.clear();
        assert_eq!(run.verdict(), Verdict::Passed, "no decision is due");
    }
}

#[test]
fn sweep_is_inconclusive_unless_the_service_is_the_limit() {
    let late = |p99| {
        Some(Latency {
            p99,
            ..Latency::default()
        })
    };
    // p99 is 40 ms. Requests that waited for a connection left late because of the service.
    let waiting = RunMetrics {
        send_delay_ms: late(39.0),
        generator_delay_ms: late(1.0),
        ..metrics()
    };
    let starved = RunMetrics {
        generator_delay_ms: late(21.0),
        ..waiting.clone()
    };
    let step = |per_s, is_within, metrics: &RunMetrics| Step {
        per_s,
        is_within,
        run: decided_run(metrics.clone(), usage()),
    };
    let (low, high) = (step(100.0, true, &metrics()), step(200.0, false, &waiting));
    assert!(!high.run.doubts.is_empty() && high.run.other_limits.is_empty());
    let higher = step(400.0, false, &starved);
    for (steps, verdict) in [
        (vec![low.clone(), high.clone(), higher.clone()], Verdict::Passed),
        (vec![high], Verdict::ThresholdMissed),
        (vec![low.clone(), higher], Verdict::Inconclusive),
        (vec![low], Verdict::Inconclusive),
    ] {
        let within = steps.iter().filter(|step| step.is_within).map(|step| step.per_s);
        let report = SweepReport {
            scenario: "hot-sku".to_owned(),
            bounds: conditions(&["p99<=50"]),
            highest_per_s: within.reduce(f64::max),
            steps,
        };
        assert_eq!(report.verdict(), verdict, "{report}");
        assert_eq!(
            report.to_string().contains("\ninconclusive"),
            verdict == Verdict::Inconclusive,
            "{report}"
        );
    }
}

#[test]
fn missed_rate_has_an_exit_code_and_a_missed_threshold_outweighs_it() {
    let offered = OfferedLoad {
        load_s: 2.0,
        drain_deadline_s: 10.0,
        offered: 4_000,
        offered_per_s: 2_000.0,
        sent_per_s: 500.0,
        completed_per_s: 500.0,
        drained: 2_000,
        dropped: 1_000,
        dropped_per_s: 500.0,
        is_reached: false,
    };
    let late = RunMetrics {
        offered_load: Some(offered),
        ..metrics()
    };
    let mut run = decided_run(late, usage());
    assert_eq!(run.verdict().exit_code(), 4);
    let report = Report {
        runs: vec![run.clone()],
    };
    for text in [report.to_string(), html(&report)] {
        assert!(
            text.contains("offered rate NOT REACHED: 2000 requests/s due, 500 sent"),
            "{text}"
        );
    }
    run.check_thresholds(&conditions(&["p99<1"])).unwrap();
    assert_eq!(run.verdict().exit_code(), 3);
}

#[test]
fn missed_threshold_is_named_and_outweighed_by_a_failed_audit() {
    let mut report = Report {
        runs: vec![run("hot-sku"), run("mixed")],
    };
    assert_eq!(report.verdict(), Verdict::Passed);
    let met = conditions(&["p99<=40", "orders_per_s >= 500", "costs.wal.bytes<3000"]);
    report.runs[1].check_thresholds(&met).unwrap();
    assert_eq!(report.verdict(), Verdict::Passed);
    let missed = conditions(&["p99<=39", "failed_share<0.25", "orders_per_s>500"]);
    report.runs[1].check_thresholds(&missed).unwrap();
    assert_eq!(report.verdict(), Verdict::ThresholdMissed);
    for text in [report.to_string(), html(&report)] {
        assert!(text.contains("3 MISSED"), "{text}");
        assert!(
            text.contains("p99 &lt;= 39: 40.0") || text.contains("p99 <= 39: 40.0"),
            "{text}"
        );
    }
    report.runs[0]
        .audit
        .checks
        .push(Check::new("wallet", Err("12 missing".to_owned())));
    assert_eq!(report.verdict(), Verdict::AuditFailed);
    assert!(
        report.to_string().contains("FAILED wallet: 12 missing"),
        "{report}"
    );
}

#[test]
fn ratio_to_the_baseline_fails_the_run() {
    let mut earlier = run("hot-sku");
    earlier.metrics.orders_per_s = 3_000.0;
    let earlier = Report { runs: vec![earlier] };
    let baseline = baseline(&earlier, &[Some("hot-sku")]).unwrap();
    for (fail_if, verdict) in [
        ("orders_per_s<0.95", Verdict::ThresholdMissed),
        ("orders_per_s<0.1", Verdict::Passed),
        ("postgres_cpu>1.05", Verdict::Passed),
    ] {
        let mut current = run("hot-sku");
        current.compare_with(&baseline, &conditions(&[fail_if])).unwrap();
        assert_eq!(current.verdict(), verdict, "{current}");
    }
    let check = |name: &str| baseline.check_figures(&conditions(&[name]), &[Some("hot-sku")]);
    check("postgres_cpu>1").unwrap();
    let error = check("postgres_cp>1").unwrap_err().to_string();
    assert!(
        error.contains("`postgres_cp` is not a number of the run of hot-sku")
            && error.contains("service_cpu, postgres_cpu"),
        "{error}"
    );
}

//! Tests of load runs: stalls in open and closed loops, presigning, mixed traffic with changing responses.

use std::sync::Arc;
use std::time::Duration;

use vouchsafe_load::audit::{check_refusals, check_stable_responses};
use vouchsafe_load::follow_up::replays;
use vouchsafe_load::follow_up::replays::ReplayReport;
use vouchsafe_load::run::driver::{LoadPlan, run_load};
use vouchsafe_load::run::event_arrivals::EventArrivals;
use vouchsafe_load::run::metrics::{RunMetrics, Setup};
use vouchsafe_load::run::progress::Progress;
use vouchsafe_load::run::result::RunResult;
use vouchsafe_load::tally::run_history::{OrderHistory, RunHistory};
use vouchsafe_load::traffic::generator::Traffic;
use vouchsafe_load::traffic::pace::{Pace, RunLength, Spacing};
use vouchsafe_load::traffic::request::RequestKind;
use vouchsafe_load::traffic::scenario::Scenario;

use crate::fake::{Defect, FakeService, STALL_DURATION};

const ORDERS: u64 = 60;

/// One order every 10 ms.
const RATE: f64 = 100.0;

fn plan(service: &FakeService, pace: Pace) -> LoadPlan {
    service.plan(pace, RunLength::Orders(ORDERS))
}

fn run(plan: LoadPlan) -> RunResult {
    run_load(plan, &Progress::default()).unwrap()
}

fn open(connections: usize) -> Pace {
    Pace::Open {
        connections,
        per_second: RATE,
        spacing: Spacing::Constant,
    }
}

/// Number of orders that took at least half of the stall.
fn count_slow(result: &RunResult) -> u64 {
    let half = u64::try_from(STALL_DURATION.as_micros() / 2).unwrap();
    result.tally.latency_us.count_between(half, u64::MAX)
}

#[test]
fn open_loop_latency_includes_stall() {
    let service = FakeService::start(Defect::Stall);
    let result = run(plan(&service, open(1)));
    assert_eq!(result.tally.latency_us.len(), ORDERS);
    // Fifteen orders are due in the first half of the stall, 10 ms apart; the last one may fall on the
    // boundary.
    assert!(count_slow(&result) >= 14, "{} slow", count_slow(&result));
    assert_eq!(result.tally.send_delay_us.len(), ORDERS);
    assert!(result.tally.send_delay_us.max() >= u64::try_from(STALL_DURATION.as_micros() / 2).unwrap());
}

#[test]
fn closed_loop_has_no_send_delay() {
    let service = FakeService::start(Defect::Stall);
    let result = run(plan(&service, Pace::Closed { connections: 1 }));
    assert_eq!(result.tally.latency_us.len(), ORDERS);
    assert!(count_slow(&result) >= 1);
    assert!(result.tally.send_delay_us.is_empty());
}

#[test]
fn backlog_is_dropped_at_the_drain_deadline_and_audited() {
    let service = FakeService::start(Defect::Stall);
    // The stall lasts longer than the load and its drain.
    let mut result = run(LoadPlan {
        drain: Duration::ZERO,
        length: RunLength::Orders(10),
        ..plan(&service, open(1))
    });
    let offered = result.offered.unwrap();
    assert!(!offered.is_reached, "{offered}");
    // Order 7 has no response; the ones after it were never sent.
    assert_eq!(
        (offered.offered, offered.dropped),
        (10, 10 - result.tally.latency_us.len())
    );
    assert!(offered.dropped >= 3, "{offered}");
    assert!(
        result
            .tally
            .measured
            .keys()
            .all(|outcome| outcome.to_string() == "201"),
        "{offered}"
    );
    let figures = RunMetrics::from_run(setup(Vec::new()), &result);
    assert!(
        figures.to_string().contains("offered rate NOT REACHED"),
        "{figures}"
    );

    result = run(plan(&service, open(4)));
    let offered = result.offered.unwrap();
    assert_eq!((offered.offered, offered.dropped), (ORDERS, 0), "{offered}");
    assert_eq!(run(plan(&service, Pace::Closed { connections: 1 })).offered, None);
}

/// Runs all kinds of requests for one partner.
fn run_mixed(defect: Defect) -> RunResult {
    let service = FakeService::start(defect);
    let scenario = r#"{ "name": "run_mixed", "description": "?", "partners": 1,
        "skus": { "count": 1, "vouchers": 1, "popularity": "uniform" },
        "orders": [{ "weight": 1, "skus": 1, "quantity": 1 }],
        "requests": [{ "kind": "order", "weight": 4 }, { "kind": "duplicate", "weight": 2 },
            { "kind": "read", "weight": 4 }, { "kind": "codes", "weight": 1 },
            { "kind": "wallets", "weight": 1 }, { "kind": "feed", "weight": 1 }],
        "pace": { "closed": { "connections": 3 } }, "warm_up_s": 0, "seconds": 1 }"#;
    let scenario = Scenario::parse(scenario.as_bytes()).unwrap();
    let plan = LoadPlan {
        traffic: Traffic::from_scenario(&scenario).unwrap(),
        length: RunLength::Orders(400),
        ..plan(&service, scenario.pace)
    };
    run(plan)
}

#[test]
fn consistent_service_passes_mixed_traffic() {
    let result = run_mixed(Defect::None);
    let kinds: Vec<_> = result.tally.background.keys().copied().collect();
    let all = [
        RequestKind::Duplicate,
        RequestKind::Read,
        RequestKind::Codes,
        RequestKind::Wallets,
        RequestKind::Feed,
    ];
    assert_eq!(kinds, all);
    let requests = |kind| result.tally.background[&kind].latency_us.len();
    let background: u64 = all.into_iter().map(requests).sum();
    assert_eq!(
        result.tally.latency_us.len() + background,
        400,
        "each request is counted once"
    );
    assert!(check_stable_responses(&result.tally.mismatches).passed);
    assert!(
        result.tally.mismatches.compared >= requests(RequestKind::Read),
        "reads and duplicates are compared"
    );
    let refusals = check_refusals(&result.tally, &[]);
    assert!(refusals.passed, "{}", refusals.detail);
}

#[test]
fn life_of_an_order_ends_with_its_events() {
    let service = FakeService::start(Defect::None);
    let events = Arc::<EventArrivals>::default();
    let first_orders = 1..=u128::from(ORDERS);
    first_orders.for_each(|order| (0..3).for_each(|_| events.record(order)));
    let plan = plan(&service, Pace::Closed { connections: 3 });
    let traffic = plan.traffic.clone().into_lives();
    let lives = |events| {
        let traffic = traffic.clone();
        run(LoadPlan {
            traffic,
            events,
            ..plan.clone()
        })
    };

    let result = lives(Some(events));
    for kind in [RequestKind::Life, RequestKind::Codes, RequestKind::Read] {
        assert_eq!(result.tally.background[&kind].latency_us.len(), ORDERS, "{kind}");
    }
    assert!(check_refusals(&result.tally, &[]).passed);
    assert_eq!(
        result.tally.mismatches.compared, ORDERS,
        "each order is read once"
    );

    let without_events = lives(None);
    assert!(
        !check_refusals(&without_events.tally, &[]).passed,
        "no life has ended"
    );
}

#[test]
fn changed_responses_are_detected_in_run() {
    for defect in [Defect::ChangesReplay, Defect::ChangesOrder] {
        let check = check_stable_responses(&run_mixed(defect).tally.mismatches);
        assert!(!check.passed, "{defect:?}: {}", check.detail);
    }
}

fn setup(forms: Vec<String>) -> Setup {
    Setup {
        forms,
        ..Setup::default()
    }
}

#[test]
fn latency_is_reported_per_order_form() {
    let service = FakeService::start(Defect::None);
    let scenario = r#"{ "name": "forms", "description": "?", "partners": 1,
        "skus": { "count": 2, "vouchers": 1, "popularity": "uniform" },
        "orders": [{ "weight": 1, "skus": 1, "quantity": 1 }, { "weight": 1, "skus": 2, "quantity": 3 }],
        "pace": { "closed": { "connections": 3 } }, "warm_up_s": 0, "seconds": 1 }"#;
    let scenario = Scenario::parse(scenario.as_bytes()).unwrap();
    let traffic = Traffic::from_scenario(&scenario).unwrap();
    let forms = traffic.forms();
    let plan = LoadPlan {
        traffic,
        ..plan(&service, scenario.pace)
    };
    let figures = RunMetrics::from_run(setup(forms), &run(plan));
    let names: Vec<_> = figures.forms.iter().map(|form| form.form.as_str()).collect();
    assert_eq!(names, ["1 voucher", "3 vouchers of each of 2 SKUs"]);
    assert!(figures.forms.iter().all(|form| form.latency_ms.max > 0.0));
    let orders: f64 = figures.forms.iter().map(|form| form.per_s).sum();
    assert!((orders - figures.orders_per_s).abs() < 1e-6, "{figures}");
    // The fake service delivers one voucher per order, whatever the request.
    assert!((figures.vouchers_per_s - figures.orders_per_s).abs() < 1e-6);
}

#[test]
fn refusals_are_reported_and_unexpected_ones_named() {
    let service = FakeService::start(Defect::Overloaded);
    let result = run(plan(&service, Pace::Closed { connections: 2 }));
    let figures = RunMetrics::from_run(setup(Vec::new()), &result);
    let rejections = &figures.refusals[&503];
    assert_eq!((rejections.count, figures.orders), (ORDERS, 0));
    // However long they took on this machine.
    let prompt = result.tally.breakdown.refusals[&503].count_between(0, 50_000);
    assert!(rejections.latency_ms.max > 0.0);
    assert_eq!(rejections.prompt_share, prompt as f64 / ORDERS as f64);
    let text = figures.to_string();
    assert!(
        text.contains("rejected with 503, ") && text.contains("within 50 ms  "),
        "{text}"
    );
    let unsettled = result.tally.acknowledgements.unsettled.len();
    assert_eq!(unsettled as u64, ORDERS, "a 503 leaves the outcome open");
    assert!(check_refusals(&result.tally, &["503 SERVICE_UNAVAILABLE".to_owned()]).passed);
    let check = check_refusals(&result.tally, &[]);
    assert!(
        check.detail.contains("503 SERVICE_UNAVAILABLE × 60"),
        "{}",
        check.detail
    );
}

/// Runs orders, then replays of their keys.
fn run_replays(defect: Defect) -> (RunResult, usize) {
    let service = FakeService::start(defect);
    let recording_plan = LoadPlan {
        history: RunHistory {
            orders: OrderHistory::Keep,
            latency_samples: true,
        },
        threads: 2,
        ..plan(&service, Pace::Closed { connections: 4 })
    };
    let result = run(recording_plan.clone());
    assert_eq!(
        result.tally.latency_samples.as_ref().map(Vec::len),
        Some(usize::try_from(ORDERS).unwrap())
    );
    let count = result.sent.count();
    let replay_run = LoadPlan {
        traffic: recording_plan.traffic.clone().into_replays(),
        history: RunHistory {
            orders: OrderHistory::FromRun(Arc::new(result.sent)),
            latency_samples: false,
        },
        length: RunLength::Orders(200),
        ..recording_plan
    };
    (run(replay_run), count)
}

#[test]
fn replays_are_compared_with_earlier_run() {
    let (replay_run, orders) = run_replays(Defect::None);
    assert_eq!(orders, usize::try_from(ORDERS).unwrap());
    let check = replays::check_replays(&replay_run.tally);
    assert!(
        check.passed && check.detail.starts_with("200 "),
        "{}",
        check.detail
    );
    let report = ReplayReport::from_run(&replay_run, orders, 100.0).unwrap();
    assert!(report.replays.per_s > 0.0, "{report}");

    let check = replays::check_replays(&run_replays(Defect::ChangesReplay).0.tally);
    assert!(
        !check.passed && check.detail.contains("200 of 200 responses differ"),
        "{}",
        check.detail
    );
}

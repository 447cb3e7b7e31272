//! Does an open loop show what a closed one hides, and does mixed traffic notice answers that change?

use std::sync::Arc;
use std::time::Duration;

use vouchsafe_load::arrivals::Spacing;
use vouchsafe_load::audit::{check_refusals, check_stable_responses};
use vouchsafe_load::load_run::{LoadPlan, SigningTime, run_load};
use vouchsafe_load::run_history::{RunHistory, OrderHistory};
use vouchsafe_load::progress::Progress;
use vouchsafe_load::replays::{self, ReplayReport};
use vouchsafe_load::report::{RunMetrics, Setup};
use vouchsafe_load::run::{RunLength, RunResult};
use vouchsafe_load::scenario::{Pace, Scenario};
use vouchsafe_load::traffic::{RequestKind, Traffic};
use vouchsafe_load::workload::Workload;

use crate::fake::{FakeService, Defect, STALL_DURATION};

const ORDERS: u64 = 60;

/// One every 10 ms.
const RATE: f64 = 100.0;

fn plan(fake: &FakeService, pace: Pace) -> LoadPlan {
    LoadPlan {
        base_url: fake.url.clone(),
        partners: vec![FakeService::credentials()],
        traffic: Traffic::single(Workload::one_sku("sbx-instant", "25", 1).unwrap()),
        pace,
        signing: SigningTime::OnDemand,
        seed: 1,
        threads: 1,
        warm_up: Duration::ZERO,
        length: RunLength::Orders(ORDERS),
        timeout: Duration::from_secs(5),
        samples: 10,
        history: RunHistory::default(),
    }
}

fn open(connections: usize) -> Pace {
    Pace::Open {
        connections,
        per_second: RATE,
        spacing: Spacing::Constant,
    }
}

/// Orders that took at least half of the stall.
fn slow(ran: &RunResult) -> u64 {
    let half = u64::try_from(STALL_DURATION.as_micros() / 2).unwrap();
    ran.tally.latency_us.count_between(half, u64::MAX)
}

#[test]
fn who_was_due_during_a_stall_has_waited_it_out() {
    let fake = FakeService::start(Defect::Stall);
    let ran = run_load(plan(&fake, open(1)), &Progress::default()).unwrap();
    assert_eq!(ran.tally.latency_us.len(), ORDERS);
    // Fifteen were due in the first half of the stall, each 10 ms after the other; the last may fall on its edge.
    assert!(slow(&ran) >= 14, "{} slow", slow(&ran));
    assert_eq!(ran.tally.late_us.len(), ORDERS);
    assert!(ran.tally.late_us.max() >= u64::try_from(STALL_DURATION.as_micros() / 2).unwrap());
}

#[test]
fn a_closed_loop_knows_no_due_time() {
    let fake = FakeService::start(Defect::Stall);
    let ran = run_load(plan(&fake, Pace::Closed { connections: 1 }), &Progress::default()).unwrap();
    assert_eq!(ran.tally.latency_us.len(), ORDERS);
    assert!(slow(&ran) >= 1);
    assert!(ran.tally.late_us.is_empty());
}

#[test]
fn orders_that_were_signed_beforehand_are_taken() {
    for pace in [open(4), Pace::Closed { connections: 4 }] {
        let fake = FakeService::start(Defect::None);
        let progress = Progress::default();
        let presigned = LoadPlan {
            signing: SigningTime::Presigned,
            threads: 3,
            ..plan(&fake, pace)
        };
        let ran = run_load(presigned, &progress).unwrap();
        assert_eq!(ran.tally.acknowledgements.orders, ORDERS, "{:?}", ran.tally.measured);
        assert_eq!(progress.completed_requests(), ORDERS);
    }
}

/// All kinds of requests, of one partner.
fn mixed(lie: Defect) -> RunResult {
    let fake = FakeService::start(lie);
    let scenario = r#"{ "name": "mixed", "question": "?", "partners": 1,
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
        ..plan(&fake, scenario.pace)
    };
    run_load(plan, &Progress::default()).unwrap()
}

#[test]
fn an_honest_service_answers_the_same_again() {
    let ran = mixed(Defect::None);
    let kinds: Vec<_> = ran.tally.background.keys().copied().collect();
    let all = [
        RequestKind::Duplicate,
        RequestKind::Read,
        RequestKind::Codes,
        RequestKind::Wallets,
        RequestKind::Feed,
    ];
    assert_eq!(kinds, all);
    let requests = |kind| ran.tally.background[&kind].latency_us.len();
    let beside: u64 = all.into_iter().map(requests).sum();
    assert_eq!(
        ran.tally.latency_us.len() + beside,
        400,
        "each request counts once"
    );
    assert!(check_stable_responses(&ran.tally.mismatches).passed);
    assert!(
        ran.tally.mismatches.compared >= requests(RequestKind::Read),
        "reads and duplicates are compared"
    );
    let refusals = check_refusals(&ran.tally, &[]);
    assert!(refusals.passed, "{}", refusals.detail);
}

#[test]
fn answers_that_change_are_noticed_in_the_run() {
    for lie in [Defect::ChangesReplay, Defect::ChangesOrder] {
        let check = check_stable_responses(&mixed(lie).tally.mismatches);
        assert!(!check.passed, "{lie:?}: {}", check.detail);
    }
}

fn setup(forms: Vec<String>) -> Setup {
    Setup {
        url: String::new(),
        order: String::new(),
        pace: String::new(),
        signing: "",
        seed: 1,
        forms,
        threads: 1,
        warm_up_s: 0,
    }
}

#[test]
fn each_form_of_order_has_a_latency_of_its_own() {
    let fake = FakeService::start(Defect::None);
    let scenario = r#"{ "name": "forms", "question": "?", "partners": 1,
        "skus": { "count": 2, "vouchers": 1, "popularity": "uniform" },
        "orders": [{ "weight": 1, "skus": 1, "quantity": 1 }, { "weight": 1, "skus": 2, "quantity": 3 }],
        "pace": { "closed": { "connections": 3 } }, "warm_up_s": 0, "seconds": 1 }"#;
    let scenario = Scenario::parse(scenario.as_bytes()).unwrap();
    let traffic = Traffic::from_scenario(&scenario).unwrap();
    let forms = traffic.forms();
    let plan = LoadPlan {
        traffic,
        ..plan(&fake, scenario.pace)
    };
    let figures = RunMetrics::from_run(setup(forms), &run_load(plan, &Progress::default()).unwrap());
    let names: Vec<_> = figures.forms.iter().map(|form| form.form.as_str()).collect();
    assert_eq!(names, ["1 voucher", "3 vouchers of each of 2 SKUs"]);
    assert!(figures.forms.iter().all(|form| form.latency_us.max > 0));
    let orders: f64 = figures.forms.iter().map(|form| form.per_s).sum();
    assert!((orders - figures.orders_per_s).abs() < 1e-6, "{figures}");
    // What was asked for is no matter: the small service gives a voucher an order.
    assert!((figures.vouchers_per_s - figures.orders_per_s).abs() < 1e-6);
}

#[test]
fn how_soon_refusals_come_is_told() {
    let fake = FakeService::start(Defect::Overloaded);
    let ran = run_load(plan(&fake, Pace::Closed { connections: 2 }), &Progress::default()).unwrap();
    let figures = RunMetrics::from_run(setup(Vec::new()), &ran);
    let refused = &figures.refusals[&503];
    assert_eq!((refused.count, figures.orders), (ORDERS, 0));
    assert!(refused.latency_us.max > 0 && refused.soon > 0.0);
    let text = figures.to_string();
    assert!(
        text.contains("refused with 503: ") && text.contains("within 50 ms, latency"),
        "{text}"
    );
}

/// Orders, and then their keys, drawn from all of them.
fn replayed(lie: Defect) -> (RunResult, usize) {
    let fake = FakeService::start(lie);
    let keeping = LoadPlan {
        history: RunHistory {
            orders: OrderHistory::Keep,
            latency_samples: true,
        },
        threads: 2,
        ..plan(&fake, Pace::Closed { connections: 4 })
    };
    let ran = run_load(keeping.clone(), &Progress::default()).unwrap();
    assert_eq!(
        ran.tally.latency_samples.as_ref().map(Vec::len),
        Some(usize::try_from(ORDERS).unwrap())
    );
    let count = ran.sent.count();
    let again = LoadPlan {
        traffic: keeping.traffic.clone().into_replays(),
        history: RunHistory {
            orders: OrderHistory::FromRun(Arc::new(ran.sent)),
            latency_samples: false,
        },
        length: RunLength::Orders(200),
        ..keeping
    };
    (run_load(again, &Progress::default()).unwrap(), count)
}

#[test]
fn replays_of_an_earlier_run_are_compared_with_it() {
    let (again, orders) = replayed(Defect::None);
    assert_eq!(orders, usize::try_from(ORDERS).unwrap());
    let check = replays::check_replays(&again.tally);
    assert!(
        check.passed && check.detail.starts_with("200,"),
        "{}",
        check.detail
    );
    let told = ReplayReport::from_run(&again, orders, 100.0).unwrap();
    assert!(told.replays.per_s > 0.0, "{told}");

    let check = replays::check_replays(&replayed(Defect::ChangesReplay).0.tally);
    assert!(
        !check.passed && check.detail.contains("200 of 200 differ"),
        "{}",
        check.detail
    );
}

#[test]
fn refusals_that_do_not_belong_are_named() {
    let fake = FakeService::start(Defect::Overloaded);
    let ran = run_load(plan(&fake, Pace::Closed { connections: 2 }), &Progress::default()).unwrap();
    let overloaded = ["503 SERVICE_UNAVAILABLE".to_owned()];
    assert!(check_refusals(&ran.tally, &overloaded).passed);
    let check = check_refusals(&ran.tally, &[]);
    assert!(
        !check.passed && check.detail.contains("503 SERVICE_UNAVAILABLE × 60"),
        "{}",
        check.detail
    );
}

//! Tests of the audit: a correct service passes, and each defect fails the check for it.

use std::time::Duration;

use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::audit::{Audit, AuditedPartner, WalletBalances, audit_all, read_wallets};
use vouchsafe_load::run::driver::{LoadPlan, run_load};
use vouchsafe_load::run::progress::Progress;
use vouchsafe_load::run::result::RunResult;
use vouchsafe_load::runtime::new_runtime;
use vouchsafe_load::tally::Outcome;
use vouchsafe_load::tally::acknowledgements::Acknowledgements;
use vouchsafe_load::traffic::pace::{Pace, RunLength, Spacing};

use crate::fake::{Defect, FakeService};

const ORDERS: u64 = 40;

fn plan(service: &FakeService, orders: u64) -> LoadPlan {
    LoadPlan {
        threads: 2,
        ..service.plan(Pace::Closed { connections: 5 }, RunLength::Orders(orders))
    }
}

fn run(plan: LoadPlan) -> RunResult {
    run_load(plan, &Progress::default()).unwrap()
}

/// Runs and audits a service with this defect.
fn run_and_audit(defect: Defect) -> (RunResult, Audit) {
    let service = FakeService::start(defect);
    let runtime = new_runtime().unwrap();
    let mut auditor = PartnerClient::new(&service.url, FakeService::credentials()).unwrap();
    let opening = runtime.block_on(read_wallets(&mut auditor)).unwrap();
    let mut result = run(plan(&service, ORDERS));
    let acknowledgements = std::mem::replace(&mut result.tally.acknowledgements, Acknowledgements::new(0));
    let audit = runtime.block_on(audit(auditor, acknowledgements, Some(opening)));
    (result, audit)
}

async fn audit(
    auditor: PartnerClient,
    acknowledgements: Acknowledgements,
    opening: Option<WalletBalances>,
) -> Audit {
    let partner = AuditedPartner::without_order_check(auditor, opening);
    audit_all(&mut [partner], acknowledgements).await.0
}

fn failed_checks(audit: &Audit) -> Vec<&str> {
    audit
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.name)
        .collect()
}

fn count(result: &RunResult, outcome: &Outcome) -> u64 {
    result
        .tally
        .measured
        .get(outcome)
        .map_or(0, |latency| latency.count)
}

const CREATED: Outcome = Outcome::Response {
    status: 201,
    code: None,
};

#[test]
fn correct_service_passes() {
    let (result, audit) = run_and_audit(Defect::None);
    assert!(audit.has_passed(), "{audit}");
    assert_eq!(count(&result, &CREATED), ORDERS);
    assert_eq!(result.tally.latency_us.len(), ORDERS);
    assert!(result.measured_for > Duration::ZERO);
    assert!(
        audit.to_string().contains("USD 1000000.00 − 1000.00 = 999000.00"),
        "{audit}"
    );
}

#[test]
fn broken_connections_are_settled_by_key() {
    let (result, audit) = run_and_audit(Defect::HangsUp);
    assert!(audit.has_passed(), "{audit}");
    assert_eq!(count(&result, &CREATED), ORDERS - ORDERS / 5);
    assert_eq!(count(&result, &Outcome::Unknown), ORDERS / 5);
    assert!(
        audit.checks[0].detail.contains("8 open, 8 of them executed"),
        "{audit}"
    );
}

#[test]
fn each_defect_fails_its_check() {
    for (defect, expected) in [
        (Defect::SellsVoucherTwice, &["vouchers unique"][..]),
        (Defect::LosesOrder, &["read back"]),
        (Defect::ChangesOrder, &["read back"]),
        (Defect::ChangesReplay, &["replayed"]),
        (Defect::HidesReplay, &["replayed"]),
        (Defect::Overcharges, &["wallet"]),
        (Defect::HangsUpAndForgets, &["wallet"]),
    ] {
        let (_, audit) = run_and_audit(defect);
        assert_eq!(failed_checks(&audit), expected, "{defect:?}\n{audit}");
    }
}

#[test]
fn order_list_contains_exactly_acknowledged_orders() {
    let audit_order_list = |defect, before: u64, drop_acknowledgement: bool| {
        let service = FakeService::start(defect);
        let runtime = new_runtime().unwrap();
        let partner = || PartnerClient::new(&service.url, FakeService::credentials()).unwrap();
        for number in 0..before {
            let earlier = runtime.block_on(partner().order(&format!("earlier-{number}"), &b"{}"[..]));
            assert_eq!(earlier.unwrap().status, 201);
        }
        let account = runtime
            .block_on(AuditedPartner::with_baseline(partner()))
            .unwrap();
        let mut result = run(plan(&service, 130));
        if drop_acknowledgement {
            result.tally.acknowledgements.partners[0].orders.pop();
        }
        runtime
            .block_on(audit_all(&mut [account], result.tally.acknowledgements))
            .0
    };
    let honest = audit_order_list(Defect::None, 2, false);
    assert!(honest.has_passed(), "{honest}");
    assert!(honest.to_string().contains("listed: 130 orders"), "{honest}");
    assert_eq!(
        failed_checks(&audit_order_list(Defect::OmitsFromList, 0, false)),
        ["listed"]
    );
    let phantom = audit_order_list(Defect::None, 0, true);
    assert_eq!(failed_checks(&phantom), ["listed"]);
    assert!(
        phantom.to_string().contains("was never acknowledged"),
        "{phantom}"
    );
}

#[test]
fn malformed_order_response_fails() {
    let (_, audit) = run_and_audit(Defect::MalformedOrder);
    assert!(failed_checks(&audit).contains(&"orders acknowledged"), "{audit}");
    assert!(
        audit.to_string().contains("{\"hello\":1}"),
        "the response is shown"
    );
}

#[test]
fn run_without_acknowledged_order_fails() {
    let service = FakeService::start(Defect::None);
    let result = run(LoadPlan {
        partners: vec![Credentials::new("other", "secret").unwrap()],
        ..plan(&service, ORDERS)
    });
    let rejected = Outcome::Response {
        status: 401,
        code: Some("INVALID_CREDENTIALS".into()),
    };
    assert_eq!(count(&result, &rejected), ORDERS);
    assert!(result.tally.latency_us.is_empty(), "latency excludes refusals");
    let runtime = new_runtime().unwrap();
    let auditor = PartnerClient::new(&service.url, FakeService::credentials()).unwrap();
    let audit = runtime.block_on(audit(auditor, result.tally.acknowledgements, None));
    assert_eq!(failed_checks(&audit), ["orders acknowledged"]);
}

#[test]
fn stopped_service_is_counted_as_not_sent() {
    let service = FakeService::start(Defect::None);
    let plan = plan(&service, 6);
    drop(service);
    let result = run(plan);
    assert_eq!(count(&result, &Outcome::NotSent), 6);
    assert!(result.tally.acknowledgements.unsettled.is_empty());
}

#[test]
fn warm_up_is_audited_but_not_measured() {
    let service = FakeService::start(Defect::None);
    // In an open loop the due time decides the phase, however late a slow machine sends a request.
    let pace = Pace::Open {
        connections: 5,
        per_second: 100.0,
        spacing: Spacing::Constant,
    };
    let result = run(LoadPlan {
        warm_up: Duration::from_millis(50),
        ..service.plan(pace, RunLength::Orders(ORDERS))
    });
    let warm_up: u64 = result.tally.warm_up.values().map(|latency| latency.count).sum();
    let measured = result.tally.latency_us.len();
    assert!(warm_up > 0);
    assert_eq!(measured, ORDERS);
    assert_eq!(result.tally.acknowledgements.orders, warm_up + measured);
}

//! Does a run's audit pass an honest service and fail each lying one, by the check that is meant for it?

use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use vouchsafe_load::audit::{AuditedPartner, Audit, audit, audit_all, read_wallets};
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::run::{RunLength, SinglePartnerRun, RunResult, run_single_partner};
use vouchsafe_load::signer::Credentials;
use vouchsafe_load::tally::Outcome;
use vouchsafe_load::workload::Workload;

use crate::fake::{FakeService, Defect};

const ORDERS: u64 = 40;

fn plan(fake: &FakeService) -> SinglePartnerRun {
    SinglePartnerRun {
        base_url: fake.url.clone(),
        credentials: FakeService::credentials(),
        workload: Workload::one_sku("sbx-instant", "25", 1).unwrap(),
        connections: 5,
        threads: 2,
        warm_up: Duration::ZERO,
        length: RunLength::Orders(ORDERS),
        timeout: Duration::from_secs(5),
        samples: 100,
    }
}

/// Runs and audits a service with this lie.
fn audited(lie: Defect) -> (RunResult, Audit) {
    let fake = FakeService::start(lie);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut auditor = PartnerClient::new(&fake.url, FakeService::credentials()).unwrap();
    let opening = runtime.block_on(read_wallets(&mut auditor)).unwrap();
    let mut ran = run_single_partner(plan(&fake)).unwrap();
    let books = std::mem::replace(&mut ran.tally.acknowledgements, vouchsafe_load::acknowledgements::Acknowledgements::new(0));
    let audit = runtime.block_on(audit(&mut auditor, books, Some(opening)));
    (ran, audit)
}

fn failed(audit: &Audit) -> Vec<&str> {
    audit
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.name)
        .collect()
}

fn count(ran: &RunResult, outcome: &Outcome) -> u64 {
    ran.tally.measured.get(outcome).map_or(0, |seen| seen.count)
}

const CREATED: Outcome = Outcome::Response {
    status: 201,
    code: None,
};

#[test]
fn an_honest_service_passes() {
    let (ran, audit) = audited(Defect::None);
    assert!(audit.has_passed(), "{audit}");
    assert_eq!(count(&ran, &CREATED), ORDERS);
    assert_eq!(ran.tally.latency_us.len(), ORDERS);
    assert!(ran.measured_for > Duration::ZERO);
    assert!(
        audit.to_string().contains("USD 1000000 − 1000 = 999000"),
        "{audit}"
    );
}

#[test]
fn connections_that_break_are_settled_by_their_keys() {
    let (ran, audit) = audited(Defect::HangsUp);
    assert!(audit.has_passed(), "{audit}");
    assert_eq!(count(&ran, &CREATED), ORDERS - ORDERS / 5);
    assert_eq!(count(&ran, &Outcome::Unknown), ORDERS / 5);
    assert!(
        audit.checks[0].detail.contains("8 open, 8 of them orders"),
        "{audit}"
    );
}

#[test]
fn each_lie_fails_the_check_meant_for_it() {
    for (lie, expected) in [
        (Defect::SellsVoucherTwice, &["no voucher twice"][..]),
        (Defect::LosesOrder, &["read back"]),
        (Defect::ChangesOrder, &["read back"]),
        (Defect::ChangesReplay, &["replayed"]),
        (Defect::HidesReplay, &["replayed"]),
        (Defect::Overcharges, &["wallet"]),
        (Defect::HangsUpAndForgets, &["wallet"]),
    ] {
        let (_, audit) = audited(lie);
        assert_eq!(failed(&audit), expected, "{lie:?}\n{audit}");
    }
}

#[test]
fn every_order_is_in_the_list_and_no_other() {
    let listed = |lie, before: u64, forget: bool| {
        let fake = FakeService::start(lie);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let partner = || PartnerClient::new(&fake.url, FakeService::credentials()).unwrap();
        for number in 0..before {
            let earlier = runtime.block_on(partner().order(&format!("earlier-{number}"), &b"{}"[..]));
            assert_eq!(earlier.unwrap().status, 201);
        }
        let account = runtime.block_on(AuditedPartner::with_baseline(partner())).unwrap();
        // More than a page.
        let length = RunLength::Orders(130);
        let mut ran = run_single_partner(SinglePartnerRun {
            length,
            ..plan(&fake)
        })
        .unwrap();
        if forget {
            ran.tally.acknowledgements.partners[0].orders.pop();
        }
        runtime.block_on(audit_all(&mut [account], ran.tally.acknowledgements)).0
    };
    let honest = listed(Defect::None, 2, false);
    assert!(honest.has_passed(), "{honest}");
    assert!(honest.to_string().contains("listed: 130 orders"), "{honest}");
    assert_eq!(failed(&listed(Defect::OmitsFromList, 0, false)), ["listed"]);
    let phantom = listed(Defect::None, 0, true);
    assert_eq!(failed(&phantom), ["listed"]);
    assert!(phantom.to_string().contains("nobody was told of it"), "{phantom}");
}

#[test]
fn an_answer_that_is_no_order_fails() {
    let (_, audit) = audited(Defect::MalformedOrder);
    assert!(failed(&audit).contains(&"orders acknowledged"), "{audit}");
    assert!(
        audit.to_string().contains("{\"hello\":1}"),
        "the answer itself is shown"
    );
}

#[test]
fn a_run_that_could_order_nothing_proves_nothing() {
    let fake = FakeService::start(Defect::None);
    let strangers = SinglePartnerRun {
        credentials: Credentials::new("other", "secret").unwrap(),
        ..plan(&fake)
    };
    let ran = run_single_partner(strangers).unwrap();
    let refused = Outcome::Response {
        status: 401,
        code: Some("INVALID_CREDENTIALS".into()),
    };
    assert_eq!(count(&ran, &refused), ORDERS);
    assert!(
        ran.tally.latency_us.is_empty(),
        "a refusal has no part in the latencies"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut auditor = PartnerClient::new(&fake.url, FakeService::credentials()).unwrap();
    let audit = runtime.block_on(audit(&mut auditor, ran.tally.acknowledgements, None));
    assert_eq!(failed(&audit), ["orders acknowledged"]);
}

#[test]
fn overload_is_counted_and_kept_open() {
    let fake = FakeService::start(Defect::Overloaded);
    let ran = run_single_partner(plan(&fake)).unwrap();
    let refused = Outcome::Response {
        status: 503,
        code: Some("SERVICE_UNAVAILABLE".into()),
    };
    assert_eq!(count(&ran, &refused), ORDERS);
    assert_eq!(ran.tally.acknowledgements.unsettled.len(), usize::try_from(ORDERS).unwrap());
}

#[test]
fn a_service_that_is_down_is_counted_as_not_sent() {
    let fake = FakeService::start(Defect::None);
    let plan = SinglePartnerRun {
        length: RunLength::Orders(6),
        ..plan(&fake)
    };
    drop(fake);
    let ran = run_single_partner(plan).unwrap();
    assert_eq!(count(&ran, &Outcome::NotSent), 6);
    assert!(ran.tally.acknowledgements.unsettled.is_empty());
}

#[test]
fn warm_up_is_audited_and_not_measured() {
    let fake = FakeService::start(Defect::None);
    let length = RunLength::Time(Duration::from_millis(50));
    let ran = run_single_partner(SinglePartnerRun {
        warm_up: Duration::from_millis(50),
        length,
        ..plan(&fake)
    })
    .unwrap();
    let warm_up: u64 = ran.tally.warm_up.values().map(|seen| seen.count).sum();
    let measured = ran.tally.latency_us.len();
    assert!(warm_up > 0 && measured > 0);
    assert_eq!(ran.tally.acknowledgements.orders, warm_up + measured);
}

#[tokio::test]
async fn signed_calls_are_taken_and_bent_ones_refused() {
    let fake = FakeService::start(Defect::None);
    let mut partner = PartnerClient::new(&fake.url, FakeService::credentials()).unwrap();
    let answer = partner.order("k", &b"{}"[..]).await.unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(
        partner
            .get_codes("ord_00000000000000000000000000000001")
            .await
            .unwrap()
            .status,
        200
    );
    let unkeyed = partner
        .send_signed(Method::POST, "/orders", &b"{}"[..], HeaderMap::new())
        .await
        .unwrap();
    assert_eq!(unkeyed.error_code().as_deref(), Some("MISSING_IDEMPOTENCY_KEY"));

    let mut headers = HeaderMap::new();
    partner
        .credentials()
        .sign("POST", "/api/v1/orders", b"{}", 1_000_000_000)
        .apply_to(&mut headers);
    let old = partner
        .send_raw(Method::POST, "/api/v1/orders", headers.clone(), &b"{}"[..])
        .await
        .unwrap();
    assert_eq!(old.error_code().as_deref(), Some("TIMESTAMP_OUT_OF_RANGE"));
    headers.append("x-api-key", "again".parse().unwrap());
    let doubled = partner
        .send_raw(Method::POST, "/api/v1/orders", headers, Bytes::from_static(b"{}"))
        .await
        .unwrap();
    assert_eq!(doubled.error_code().as_deref(), Some("INVALID_CREDENTIALS"));
}

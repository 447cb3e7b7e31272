//! Does a run's audit pass an honest service and fail each lying one, by the check that is meant for it?

use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use vouchsafe_load::audit::{Account, Audit, audit, audit_all, wallets};
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::run::{Length, Plan, Ran, run};
use vouchsafe_load::signer::Credentials;
use vouchsafe_load::tally::Outcome;
use vouchsafe_load::workload::Workload;

use crate::fake::{Fake, Lie};

const ORDERS: u64 = 40;

fn plan(fake: &Fake) -> Plan {
    Plan {
        base_url: fake.url.clone(),
        credentials: Fake::credentials(),
        workload: Workload::one_sku("sbx-instant", "25", 1).unwrap(),
        connections: 5,
        threads: 2,
        warm_up: Duration::ZERO,
        length: Length::Orders(ORDERS),
        timeout: Duration::from_secs(5),
        samples: 100,
    }
}

/// Runs and audits a service with this lie.
fn audited(lie: Lie) -> (Ran, Audit) {
    let fake = Fake::start(lie);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut auditor = PartnerClient::new(&fake.url, Fake::credentials()).unwrap();
    let opening = runtime.block_on(wallets(&mut auditor)).unwrap();
    let mut ran = run(plan(&fake)).unwrap();
    let books = std::mem::replace(&mut ran.tally.books, vouchsafe_load::books::Books::new(0));
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

fn count(ran: &Ran, outcome: &Outcome) -> u64 {
    ran.tally.measured.get(outcome).map_or(0, |seen| seen.count)
}

const CREATED: Outcome = Outcome::Answered {
    status: 201,
    code: None,
};

#[test]
fn an_honest_service_passes() {
    let (ran, audit) = audited(Lie::None);
    assert!(audit.passed(), "{audit}");
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
    let (ran, audit) = audited(Lie::HangsUp);
    assert!(audit.passed(), "{audit}");
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
        (Lie::SellsVoucherTwice, &["no voucher twice"][..]),
        (Lie::LosesOrder, &["read back"]),
        (Lie::ChangesOrder, &["read back"]),
        (Lie::ChangesReplay, &["replayed"]),
        (Lie::HidesReplay, &["replayed"]),
        (Lie::Overcharges, &["wallet"]),
        (Lie::HangsUpAndForgets, &["wallet"]),
    ] {
        let (_, audit) = audited(lie);
        assert_eq!(failed(&audit), expected, "{lie:?}\n{audit}");
    }
}

#[test]
fn every_order_is_in_the_list_and_no_other() {
    let listed = |lie, before: u64, forget: bool| {
        let fake = Fake::start(lie);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let partner = || PartnerClient::new(&fake.url, Fake::credentials()).unwrap();
        for number in 0..before {
            let earlier = runtime.block_on(partner().order(&format!("earlier-{number}"), &b"{}"[..]));
            assert_eq!(earlier.unwrap().status, 201);
        }
        let account = runtime.block_on(Account::open(partner())).unwrap();
        // More than a page.
        let length = Length::Orders(130);
        let mut ran = run(Plan {
            length,
            ..plan(&fake)
        })
        .unwrap();
        if forget {
            ran.tally.books.partners[0].orders.pop();
        }
        runtime.block_on(audit_all(&mut [account], ran.tally.books)).0
    };
    let honest = listed(Lie::None, 2, false);
    assert!(honest.passed(), "{honest}");
    assert!(honest.to_string().contains("listed: 130 orders"), "{honest}");
    assert_eq!(failed(&listed(Lie::ForgetsToList, 0, false)), ["listed"]);
    let phantom = listed(Lie::None, 0, true);
    assert_eq!(failed(&phantom), ["listed"]);
    assert!(phantom.to_string().contains("nobody was told of it"), "{phantom}");
}

#[test]
fn an_answer_that_is_no_order_fails() {
    let (_, audit) = audited(Lie::Babbles);
    assert!(failed(&audit).contains(&"orders acknowledged"), "{audit}");
    assert!(
        audit.to_string().contains("{\"hello\":1}"),
        "the answer itself is shown"
    );
}

#[test]
fn a_run_that_could_order_nothing_proves_nothing() {
    let fake = Fake::start(Lie::None);
    let strangers = Plan {
        credentials: Credentials::new("other", "secret").unwrap(),
        ..plan(&fake)
    };
    let ran = run(strangers).unwrap();
    let refused = Outcome::Answered {
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
    let mut auditor = PartnerClient::new(&fake.url, Fake::credentials()).unwrap();
    let audit = runtime.block_on(audit(&mut auditor, ran.tally.books, None));
    assert_eq!(failed(&audit), ["orders acknowledged"]);
}

#[test]
fn overload_is_counted_and_kept_open() {
    let fake = Fake::start(Lie::IsOverloaded);
    let ran = run(plan(&fake)).unwrap();
    let refused = Outcome::Answered {
        status: 503,
        code: Some("SERVICE_UNAVAILABLE".into()),
    };
    assert_eq!(count(&ran, &refused), ORDERS);
    assert_eq!(ran.tally.books.unsettled.len(), usize::try_from(ORDERS).unwrap());
}

#[test]
fn a_service_that_is_down_is_counted_as_not_sent() {
    let fake = Fake::start(Lie::None);
    let plan = Plan {
        length: Length::Orders(6),
        ..plan(&fake)
    };
    drop(fake);
    let ran = run(plan).unwrap();
    assert_eq!(count(&ran, &Outcome::NotSent), 6);
    assert!(ran.tally.books.unsettled.is_empty());
}

#[test]
fn warm_up_is_audited_and_not_measured() {
    let fake = Fake::start(Lie::None);
    let length = Length::Time(Duration::from_millis(50));
    let ran = run(Plan {
        warm_up: Duration::from_millis(50),
        length,
        ..plan(&fake)
    })
    .unwrap();
    let warm_up: u64 = ran.tally.warm_up.values().map(|seen| seen.count).sum();
    let measured = ran.tally.latency_us.len();
    assert!(warm_up > 0 && measured > 0);
    assert_eq!(ran.tally.books.orders, warm_up + measured);
}

#[tokio::test]
async fn signed_calls_are_taken_and_bent_ones_refused() {
    let fake = Fake::start(Lie::None);
    let mut partner = PartnerClient::new(&fake.url, Fake::credentials()).unwrap();
    let answer = partner.order("k", &b"{}"[..]).await.unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(
        partner
            .codes("ord_00000000000000000000000000000001")
            .await
            .unwrap()
            .status,
        200
    );
    let unkeyed = partner
        .signed(Method::POST, "/orders", &b"{}"[..], HeaderMap::new())
        .await
        .unwrap();
    assert_eq!(unkeyed.error_code().as_deref(), Some("MISSING_IDEMPOTENCY_KEY"));

    let mut headers = HeaderMap::new();
    partner
        .credentials()
        .sign("POST", "/api/v1/orders", b"{}", 1_000_000_000)
        .apply(&mut headers);
    let old = partner
        .raw(Method::POST, "/api/v1/orders", headers.clone(), &b"{}"[..])
        .await
        .unwrap();
    assert_eq!(old.error_code().as_deref(), Some("TIMESTAMP_OUT_OF_RANGE"));
    headers.append("x-api-key", "again".parse().unwrap());
    let doubled = partner
        .raw(Method::POST, "/api/v1/orders", headers, Bytes::from_static(b"{}"))
        .await
        .unwrap();
    assert_eq!(doubled.error_code().as_deref(), Some("INVALID_CREDENTIALS"));
}

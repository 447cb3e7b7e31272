//! Vendor protocol between the HTTP adapter and the vendor simulator with faults: outcomes, single sale, no
//! leaked codes.
//!
//! The simulator's records show what was sold.

mod captured_log;
mod faults;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::clock::{Clock, SystemClock};
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};
use vouchsafe_domain::vendor::{AdapterKind, VendorNetwork};
use vouchsafe_procurement::http::{HttpVendor, Timeouts};
use vouchsafe_procurement::{
    AdapterConfig, FailureReason, InvalidResponse, PurchaseResult, Shortfall, VendorAdapter, VendorFailure,
    VendorRecord,
};

use self::faults::{fault_table, invalid_response, unknown_outcome};
use vouchsafe_test_harness::{VendorSimulator, WAIT_TIMEOUT, eventually};

use self::captured_log::CapturedLog;
use vouchsafe_test_harness::program;

/// Prefix of every code that the simulator sells.
const CODE: &str = "SIMULATED";

/// Default credential of the simulator.
const CREDENTIAL: &str = "simulator";

fn terms(url: &str, credential: &str) -> AdapterConfig {
    AdapterConfig {
        kind: AdapterKind::Http,
        url: Some(url.parse().unwrap()),
        credential: Some(credential.to_owned().into()),
        network: VendorNetwork::Any,
    }
}

fn adapter_with(terms: &AdapterConfig, timeouts: Timeouts) -> VendorAdapter {
    let vendor = HttpVendor::new(terms, timeouts, Arc::new(SystemClock::new()));
    VendorAdapter::Http(Box::new(vendor.unwrap()))
}

/// A clock whose monotonic time never advances.
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> OffsetDateTime {
        SystemClock::new().now()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Creates an adapter with a closed circuit breaker.
pub(crate) fn adapter(url: &str) -> VendorAdapter {
    adapter_with(&terms(url, CREDENTIAL), Timeouts::default())
}

fn request(product_id: &str, quantity: u32) -> BuyRequest {
    BuyRequest {
        key: PurchaseKey(Uuid::now_v7()),
        product_id: product_id.parse().unwrap(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity,
        requested_at: SystemClock::new().now(),
        expiry_policy: ExpiryPolicy::fixed_date("2098-12-31"),
    }
}

/// Returns the vendor's records of a purchase, which may have been sold after midnight.
async fn vendor_records_of(adapter: &VendorAdapter, request: &BuyRequest) -> Vec<VendorRecord> {
    let first = request.requested_at.date();
    let mut found = Vec::new();
    for day in [first, first.next_day().unwrap()] {
        let mut records = adapter.records(day).unwrap();
        while let Some(record) = records.next().await.unwrap() {
            if record.key == request.key {
                found.push(record);
            }
        }
    }
    found
}

/// Number of vouchers and state of the remainder.
type CallOutcome = Result<(usize, Shortfall), VendorFailure>;

fn outcome_of(outcome: &Result<PurchaseResult, VendorFailure>) -> CallOutcome {
    match outcome {
        Ok(bought) => Ok((bought.vouchers.len(), bought.shortfall)),
        Err(failure) => Err(failure.clone()),
    }
}

/// Returns the parts of the first voucher's code.
fn first_code(outcome: &Result<PurchaseResult, VendorFailure>) -> Vec<String> {
    let voucher = &outcome.as_ref().unwrap().vouchers[0];
    voucher.code.parts().map(|(_, text)| text.to_owned()).collect()
}

#[tokio::test]
async fn vendor_fault_leaves_known_outcome_and_single_sale() {
    let simulator = VendorSimulator::start(&["--slow-ms", "10"]);
    let (log, _guard) = CapturedLog::start();
    let mut texts = String::new();
    for (product_id, bought, polled, repeated, sold) in fault_table() {
        let (adapter, request) = (adapter(&simulator.url), request(product_id, 5));
        let outcomes = [
            adapter.buy(&request).await,
            adapter.poll(&request).await,
            adapter.buy(&request).await,
            adapter.buy(&request).await,
        ];
        for (outcome, expected) in outcomes.iter().zip([&bought, &polled, &repeated, &repeated]) {
            assert_eq!(outcome_of(outcome), *expected, "{product_id}");
            texts += &format!("{outcome:?}\n");
            if let Err(failure) = outcome {
                texts += &format!("{failure}\n");
            }
        }
        let records = vendor_records_of(&adapter, &request).await;
        assert_eq!(records.len(), sold, "{product_id}");
        texts += &format!("{adapter:?} {records:?}\n");
    }
    let lines = log.text();
    assert!(lines.contains("TRACE"), "trace logging must be on: {lines}");
    for secret in [CODE, CREDENTIAL] {
        assert!(!texts.contains(secret), "{secret} appears in {texts}");
        assert!(!lines.contains(secret), "{secret} appears in {lines}");
    }
}

#[tokio::test]
async fn poll_after_timeout_finds_purchase() {
    let simulator = VendorSimulator::start(&[]);
    let impatient = Timeouts {
        total: Duration::from_secs(2),
        ..Timeouts::default()
    };
    let impatient = adapter_with(&terms(&simulator.url, CREDENTIAL), impatient);
    let adapter = adapter(&simulator.url);
    let request = request("sim-timeout", 3);
    assert_eq!(
        outcome_of(&impatient.buy(&request).await),
        unknown_outcome(FailureReason::TimedOut)
    );
    // A busy simulator may read the request after its client has left.
    let polled = eventually("the purchase to be found", WAIT_TIMEOUT, async || {
        let polled = adapter.poll(&request).await;
        (outcome_of(&polled) == Ok((3, Shortfall::None))).then_some(polled)
    })
    .await;
    let repeated = adapter.buy(&request).await;
    assert_eq!(first_code(&repeated), first_code(&polled));
    assert!(first_code(&repeated)[0].starts_with(CODE));
    assert_eq!(vendor_records_of(&adapter, &request).await.len(), 3);
}

#[tokio::test]
async fn repeated_code_is_returned_unchanged() {
    let simulator = VendorSimulator::start(&[]);
    let adapter = adapter(&simulator.url);
    let first = adapter.buy(&request("sim-repeat-code", 2)).await;
    let second = adapter.buy(&request("sim-repeat-code", 2)).await;
    assert_eq!(first_code(&first), first_code(&second));
}

#[tokio::test]
async fn concurrent_purchases_with_same_key_buy_once() {
    let simulator = VendorSimulator::start(&[]);
    let (adapter, request) = (adapter(&simulator.url), request("game-us", 4));
    let one = || adapter.buy(&request);
    let outcomes = tokio::join!(one(), one(), one(), one(), one(), one());
    let outcomes = [
        outcomes.0, outcomes.1, outcomes.2, outcomes.3, outcomes.4, outcomes.5,
    ];
    for outcome in &outcomes {
        assert_eq!(outcome_of(outcome), Ok((4, Shortfall::None)));
        assert_eq!(first_code(outcome), first_code(&outcomes[0]));
    }
    assert_eq!(vendor_records_of(&adapter, &request).await.len(), 4);
}

#[tokio::test]
async fn purchase_key_with_other_request_is_rejected() {
    let simulator = VendorSimulator::start(&[]);
    let (adapter, request) = (adapter(&simulator.url), request("game-us", 4));
    assert_eq!(outcome_of(&adapter.buy(&request).await), Ok((4, Shortfall::None)));
    let other = BuyRequest {
        quantity: 5,
        ..request.clone()
    };
    assert_eq!(
        outcome_of(&adapter.buy(&other).await),
        invalid_response(InvalidResponse::KeyReused)
    );
    assert_eq!(vendor_records_of(&adapter, &request).await.len(), 4);
}

#[tokio::test]
async fn misconfigured_vendor_buys_nothing_and_states_remedy() {
    let simulator = VendorSimulator::start(&[]);
    let request = request("game-us", 1);
    let wrong_credential = adapter_with(&terms(&simulator.url, "wrong"), Timeouts::default());
    let refused = VendorFailure::RetryLater {
        reason: FailureReason::Credential(401),
        retry_after: None,
    };
    assert_eq!(
        outcome_of(&wrong_credential.buy(&request).await),
        Err(refused.clone())
    );
    assert!(refused.to_string().contains("vouchsafe vendor put"), "{refused}");
    assert_eq!(
        outcome_of(&wrong_credential.poll(&request).await),
        unknown_outcome(FailureReason::Credential(401))
    );
    let wrong_path = adapter(&format!("{}/elsewhere", simulator.url));
    for outcome in [wrong_path.buy(&request).await, wrong_path.poll(&request).await] {
        assert_eq!(
            outcome_of(&outcome),
            unknown_outcome(FailureReason::UnexpectedStatus(404))
        );
    }
    assert_eq!(
        outcome_of(&adapter(&simulator.url).poll(&request).await),
        Err(VendorFailure::PurchaseNotFound)
    );
    let url = simulator.url.clone();
    drop(simulator);
    let unreachable_vendor = adapter(&url);
    let unreachable = VendorFailure::RetryLater {
        reason: FailureReason::Unreachable,
        retry_after: None,
    };
    assert_eq!(
        outcome_of(&unreachable_vendor.buy(&request).await),
        Err(unreachable)
    );
    assert_eq!(
        outcome_of(&unreachable_vendor.poll(&request).await),
        unknown_outcome(FailureReason::Unreachable)
    );
}

#[tokio::test]
async fn failing_vendor_opens_circuit() {
    let simulator = VendorSimulator::start(&["--faults", "down"]);
    let (log, _guard) = CapturedLog::start();
    let vendor = HttpVendor::new(
        &terms(&simulator.url, CREDENTIAL),
        Timeouts::default(),
        Arc::new(FrozenClock),
    );
    let adapter = VendorAdapter::Http(Box::new(vendor.unwrap()));
    for _ in 0..5 {
        assert_eq!(
            outcome_of(&adapter.buy(&request("game-us", 1)).await),
            unknown_outcome(FailureReason::ServerError(503))
        );
    }
    let blocked_request = request("game-us", 1);
    let circuit_open = VendorFailure::RetryLater {
        reason: FailureReason::CircuitOpen,
        retry_after: Some(Duration::from_secs(1)),
    };
    assert_eq!(
        outcome_of(&adapter.buy(&blocked_request).await),
        Err(circuit_open)
    );
    assert!(log.text().contains("vendor circuit opened"), "{}", log.text());
    // Another adapter confirms that the call behind the open circuit was not sent.
    assert_eq!(
        outcome_of(&self::adapter(&simulator.url).poll(&blocked_request).await),
        Err(VendorFailure::PurchaseNotFound)
    );
}

#[tokio::test]
async fn vendor_records_are_paginated_completely() {
    let simulator = VendorSimulator::start(&[]);
    let adapter = adapter(&simulator.url);
    let request = request("sim-record-altered", 250);
    let bought = adapter.buy(&request).await.unwrap();
    let records = vendor_records_of(&adapter, &request).await;
    assert_eq!(records.len(), 250);
    let names: Vec<_> = records.iter().map(|record| record.reference.clone()).collect();
    let sold: Vec<_> = bought
        .vouchers
        .iter()
        .map(|voucher| voucher.reference.clone())
        .collect();
    assert_eq!(names, sold);
    let altered: Vec<_> = records
        .iter()
        .filter(|record| record.denomination != request.denomination)
        .collect();
    assert_eq!(
        (altered.len(), altered[0].denomination.amount.minor()),
        (1, 5_000)
    );
    assert!(
        records
            .iter()
            .all(|record| record.product_id == request.product_id)
    );
}

#[test]
fn simulator_with_invalid_arguments_fails() {
    for (arguments, expected) in [
        (["--listen", "0.0.0.0:0"], "expected a loopback address"),
        (["--faults", "gremlins"], "expected a fault such as slow"),
        (["--faults", "slow=x"], "expected a fault such as slow"),
    ] {
        let output = Command::new(program())
            .arg("vendor-simulator")
            .args(arguments)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(expected), "{complaint}");
    }
}

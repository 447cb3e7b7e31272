//! The vendor protocol between the adapter and the simulator, a real server with faults: what is known after each call,
//! is anything bought twice, and does a code show where it is not meant to?
//!
//! The simulator's own books say what was sold.

pub(crate) mod simulator;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe::vendor::http::{HttpVendor, Timeouts};
use vouchsafe::vendor::{
    Adapter, AdapterKind, Bought, BuyRequest, Failure, Nonsense, PurchaseKey, Rest, Terms, VendorRecord, Why,
};
use vouchsafe_actors::domain::clock::{Clock, SystemClock};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::{ExpiryKind, ExpiryPolicy};

use self::simulator::{Log, Simulator};
use crate::support::PROGRAM;

/// In every code that the simulator sells.
const CODE: &str = "SIMULATED";

/// What the simulator sells to unless it is told otherwise.
const CREDENTIAL: &str = "simulator";

fn terms(url: &str, credential: &str) -> Terms {
    Terms {
        kind: AdapterKind::Http,
        url: Some(url.parse().unwrap()),
        credential: Some(credential.to_owned().into()),
    }
}

fn adapter_with(terms: &Terms, timeouts: Timeouts) -> Adapter {
    let vendor = HttpVendor::new(terms, timeouts, Arc::new(SystemClock::new()));
    Adapter::Http(Box::new(vendor.unwrap()))
}

/// A clock on which no pause is ever over.
struct Standing;

impl Clock for Standing {
    fn now(&self) -> OffsetDateTime {
        SystemClock::new().now()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A fresh adapter: its breaker knows nothing against the vendor.
pub(crate) fn adapter(url: &str) -> Adapter {
    adapter_with(&terms(url, CREDENTIAL), Timeouts::default())
}

fn request(product_id: &str, quantity: u32) -> BuyRequest {
    BuyRequest {
        key: PurchaseKey(Uuid::now_v7()),
        product_id: product_id.parse().unwrap(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity,
        requested_at: SystemClock::new().now(),
        expiry_policy: ExpiryPolicy {
            kind: ExpiryKind::FixedDate,
            value: Some(json!("2098-12-31")),
        },
    }
}

/// What the vendor's books have of a purchase. It may have been sold after midnight.
async fn recorded(adapter: &Adapter, request: &BuyRequest) -> Vec<VendorRecord> {
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

/// How many came, and what becomes of the rest.
type Seen = Result<(usize, Rest), Failure>;

fn seen(outcome: &Result<Bought, Failure>) -> Seen {
    match outcome {
        Ok(bought) => Ok((bought.vouchers.len(), bought.rest)),
        Err(failure) => Err(failure.clone()),
    }
}

/// The parts of the first voucher's code.
fn first_code(outcome: &Result<Bought, Failure>) -> Vec<String> {
    let voucher = &outcome.as_ref().unwrap().vouchers[0];
    voucher
        .code
        .credentials()
        .map(|(_, text)| text.to_owned())
        .collect()
}

fn nonsense(nonsense: Nonsense) -> Seen {
    Err(nonsense.into())
}

fn unknown(why: Why) -> Seen {
    Err(Failure::Unknown { why, after: None })
}

/// What is seen of a product: bought, polled, bought again under the same key; and how many the books have.
fn table() -> Vec<(&'static str, Seen, Seen, Seen, usize)> {
    let all = || Ok((5, Rest::None));
    let same = |product_id, seen: Seen, sold| (product_id, seen.clone(), seen.clone(), seen, sold);
    let busy = Failure::NotNow {
        why: Why::Busy,
        after: Some(Duration::from_secs(1)),
    };
    let schema = Nonsense::Schema {
        field: "vouchers[0]".to_owned(),
    };
    let expired = Nonsense::Expired {
        index: 0,
        on: time::macros::date!(2001 - 01 - 01),
    };
    vec![
        same("game-us", all(), 5),
        same("sim-slow", all(), 5),
        ("sim-drop", unknown(Why::Lost), all(), all(), 5),
        (
            "sim-down",
            unknown(Why::Broken(503)),
            Err(Failure::Unheard),
            all(),
            5,
        ),
        ("sim-busy", Err(busy), Err(Failure::Unheard), all(), 5),
        (
            "sim-out-of-stock",
            Err(Failure::OutOfStock),
            Err(Failure::Unheard),
            Err(Failure::OutOfStock),
            0,
        ),
        same("sim-part", Ok((2, Rest::Never)), 2),
        ("sim-pending", Ok((2, Rest::ToCome(None))), all(), all(), 5),
        same("sim-same-code", nonsense(Nonsense::RepeatedCode { index: 1 }), 5),
        same(
            "sim-too-many",
            nonsense(Nonsense::TooMany { asked: 5, got: 6 }),
            6,
        ),
        same("sim-other-sku", nonsense(Nonsense::OtherSku { index: 0 }), 5),
        same("sim-expired", nonsense(expired), 5),
        same(
            "sim-negative-price",
            nonsense(Nonsense::NegativePrice { index: 0 }),
            5,
        ),
        same("sim-wrong-schema", nonsense(schema), 5),
        same("sim-huge", nonsense(Nonsense::TooLarge), 5),
        same("sim-record-dropped", all(), 4),
        same("sim-record-added", all(), 6),
        same("sim-record-altered", all(), 5),
    ]
}

#[tokio::test]
async fn after_each_fault_it_is_known_what_was_bought_and_nothing_is_bought_twice() {
    let simulator = Simulator::start(&["--slow-ms", "10"]);
    let (log, _guard) = Log::kept();
    let mut texts = String::new();
    for (product_id, bought, polled, again, sold) in table() {
        let (adapter, request) = (adapter(&simulator.url), request(product_id, 5));
        let outcomes = [
            adapter.buy(&request).await,
            adapter.poll(&request).await,
            adapter.buy(&request).await,
            adapter.buy(&request).await,
        ];
        for (outcome, expected) in outcomes.iter().zip([&bought, &polled, &again, &again]) {
            assert_eq!(seen(outcome), *expected, "{product_id}");
            texts += &format!("{outcome:?}\n");
            if let Err(failure) = outcome {
                texts += &format!("{failure}\n");
            }
        }
        let records = recorded(&adapter, &request).await;
        assert_eq!(records.len(), sold, "{product_id}");
        texts += &format!("{adapter:?} {records:?}\n");
    }
    let lines = log.text();
    assert!(lines.contains("TRACE"), "it was not talkative: {lines}");
    for secret in [CODE, CREDENTIAL] {
        assert!(!texts.contains(secret), "{secret} shows in {texts}");
        assert!(!lines.contains(secret), "{secret} shows in {lines}");
    }
}

#[tokio::test]
async fn what_was_bought_before_a_timeout_is_found_by_the_poll() {
    let simulator = Simulator::start(&[]);
    let impatient = Timeouts {
        total: Duration::from_secs(2),
        ..Timeouts::default()
    };
    let adapter = adapter_with(&terms(&simulator.url, CREDENTIAL), impatient);
    let request = request("sim-timeout", 3);
    assert_eq!(seen(&adapter.buy(&request).await), unknown(Why::TimedOut));
    let polled = adapter.poll(&request).await;
    assert_eq!(seen(&polled), Ok((3, Rest::None)));
    let again = adapter.buy(&request).await;
    assert_eq!(first_code(&again), first_code(&polled));
    assert!(first_code(&again)[0].starts_with(CODE));
    assert_eq!(recorded(&adapter, &request).await.len(), 3);
}

#[tokio::test]
async fn a_code_of_an_earlier_sale_comes_as_it_is_for_the_blind_index_to_find() {
    let simulator = Simulator::start(&[]);
    let adapter = adapter(&simulator.url);
    let first = adapter.buy(&request("sim-repeat-code", 2)).await;
    let second = adapter.buy(&request("sim-repeat-code", 2)).await;
    assert_eq!(first_code(&first), first_code(&second));
}

#[tokio::test]
async fn many_at_once_under_one_key_buy_once() {
    let simulator = Simulator::start(&[]);
    let (adapter, request) = (adapter(&simulator.url), request("game-us", 4));
    let one = || adapter.buy(&request);
    let outcomes = tokio::join!(one(), one(), one(), one(), one(), one());
    let outcomes = [
        outcomes.0, outcomes.1, outcomes.2, outcomes.3, outcomes.4, outcomes.5,
    ];
    for outcome in &outcomes {
        assert_eq!(seen(outcome), Ok((4, Rest::None)));
        assert_eq!(first_code(outcome), first_code(&outcomes[0]));
    }
    assert_eq!(recorded(&adapter, &request).await.len(), 4);
}

#[tokio::test]
async fn one_key_is_one_request() {
    let simulator = Simulator::start(&[]);
    let (adapter, request) = (adapter(&simulator.url), request("game-us", 4));
    assert_eq!(seen(&adapter.buy(&request).await), Ok((4, Rest::None)));
    let other = BuyRequest {
        quantity: 5,
        ..request.clone()
    };
    assert_eq!(seen(&adapter.buy(&other).await), nonsense(Nonsense::KeyReused));
    assert_eq!(recorded(&adapter, &request).await.len(), 4);
}

#[tokio::test]
async fn what_is_wrong_on_our_side_buys_nothing_and_says_what_to_do() {
    let simulator = Simulator::start(&[]);
    let request = request("game-us", 1);
    let stranger = adapter_with(&terms(&simulator.url, "wrong"), Timeouts::default());
    let refused = Failure::NotNow {
        why: Why::Credential(401),
        after: None,
    };
    assert_eq!(seen(&stranger.buy(&request).await), Err(refused.clone()));
    assert!(refused.to_string().contains("vouchsafe vendor put"), "{refused}");
    assert_eq!(
        seen(&stranger.poll(&request).await),
        unknown(Why::Credential(401))
    );
    let elsewhere = adapter(&format!("{}/elsewhere", simulator.url));
    for outcome in [elsewhere.buy(&request).await, elsewhere.poll(&request).await] {
        assert_eq!(seen(&outcome), unknown(Why::Foreign(404)));
    }
    assert_eq!(
        seen(&adapter(&simulator.url).poll(&request).await),
        Err(Failure::Unheard)
    );
    let url = simulator.url.clone();
    drop(simulator);
    let nobody = adapter(&url);
    let unreachable = Failure::NotNow {
        why: Why::Unreachable,
        after: None,
    };
    assert_eq!(seen(&nobody.buy(&request).await), Err(unreachable));
    assert_eq!(seen(&nobody.poll(&request).await), unknown(Why::Unreachable));
}

#[tokio::test]
async fn a_vendor_that_keeps_failing_is_left_alone_for_a_while() {
    let simulator = Simulator::start(&["--faults", "down"]);
    let (log, _guard) = Log::kept();
    let vendor = HttpVendor::new(
        &terms(&simulator.url, CREDENTIAL),
        Timeouts::default(),
        Arc::new(Standing),
    );
    let adapter = Adapter::Http(Box::new(vendor.unwrap()));
    for _ in 0..5 {
        assert_eq!(
            seen(&adapter.buy(&request("game-us", 1)).await),
            unknown(Why::Broken(503))
        );
    }
    let held_back = request("game-us", 1);
    let paused = Failure::NotNow {
        why: Why::Paused,
        after: Some(Duration::from_secs(1)),
    };
    assert_eq!(seen(&adapter.buy(&held_back).await), Err(paused));
    assert!(log.text().contains("is left alone for a while"), "{}", log.text());
    // Another adapter asks: the call that was held back did not arrive.
    assert_eq!(
        seen(&self::adapter(&simulator.url).poll(&held_back).await),
        Err(Failure::Unheard)
    );
}

#[tokio::test]
async fn records_are_walked_page_by_page_with_their_drifts() {
    let simulator = Simulator::start(&[]);
    let adapter = adapter(&simulator.url);
    let request = request("sim-record-altered", 250);
    let bought = adapter.buy(&request).await.unwrap();
    let records = recorded(&adapter, &request).await;
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
fn the_simulator_refuses_what_it_cannot_do() {
    for (arguments, told) in [
        (["--listen", "0.0.0.0:0"], "on this machine alone"),
        (["--faults", "gremlins"], "expected a fault such as slow"),
        (["--faults", "slow=x"], "expected a fault such as slow"),
    ] {
        let output = Command::new(PROGRAM)
            .arg("vendor-simulator")
            .args(arguments)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(told), "{complaint}");
    }
}

//! Tests of the mock vendor's behavior by product and time.

use std::collections::HashSet;
use std::sync::Mutex;

use time::OffsetDateTime;
use time::macros::{date, datetime};
use uuid::Uuid;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::money::Amount;

use super::*;

const BEGIN: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

/// A clock that stands still.
struct FixedClock(Mutex<OffsetDateTime>);

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn mock_at(seconds: f64) -> MockVendor {
    let now = BEGIN + time::Duration::seconds_f64(seconds);
    MockVendor::new(Arc::new(FixedClock(Mutex::new(now))))
}

pub(super) fn request(product_id: &str, quantity: u32) -> BuyRequest {
    BuyRequest {
        key: PurchaseKey(Uuid::from_u128(7)),
        product_id: product_id.parse().unwrap(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity,
        requested_at: BEGIN,
        expiry_policy: ExpiryPolicy::months_from_issue(3),
    }
}

/// The number of vouchers and the shortfall of an outcome.
fn summary(outcome: Result<PurchaseResult, VendorFailure>) -> Result<(usize, Shortfall), VendorFailure> {
    outcome.map(|bought| (bought.vouchers.len(), bought.shortfall))
}

#[test]
fn product_selects_the_behavior() {
    let in_ms = |left| Ok((0, Shortfall::Pending(Some(Duration::from_millis(left)))));
    let unsold = || Err(VendorFailure::NotBought(FailureReason::NotSold));
    for (product_id, quantity, seconds, expected) in [
        ("globe-air", 3, 0.0, in_ms(1_000)),
        ("globe-air", 3, 0.999, in_ms(1)),
        ("globe-air", 3, 1.0, Ok((3, Shortfall::None))),
        ("sbx-pending", 1, 0.5, in_ms(500)),
        ("sbx-pending", 1, 1.0, Ok((1, Shortfall::None))),
        ("sbx-slow", 2, 59.0, in_ms(1_000)),
        ("sbx-slow", 2, 60.0, Ok((2, Shortfall::None))),
        ("sbx-partial", 5, 0.0, in_ms(1_000)),
        ("sbx-partial", 5, 1.0, Ok((2, Shortfall::Final))),
        ("sbx-partial", 5, 1e6, Ok((2, Shortfall::Final))),
        ("sbx-partial", 1, 1.0, unsold()),
        ("sbx-vendor-fails", 4, 0.0, in_ms(1_000)),
        ("sbx-vendor-fails", 4, 1.0, unsold()),
        ("sbx-vendor-timeout", 4, 1.0, Ok((4, Shortfall::None))),
        ("globe-air", 1_000, 1.0, Ok((1_000, Shortfall::None))),
    ] {
        let (mock, request) = (mock_at(seconds), request(product_id, quantity));
        assert_eq!(
            summary(mock.poll(&request)),
            expected,
            "{product_id} at {seconds} s"
        );
        if product_id != "sbx-vendor-timeout" {
            assert_eq!(
                summary(mock.buy(&request)),
                expected,
                "{product_id} at {seconds} s"
            );
        }
    }
}

#[test]
fn lost_response_is_unknown_and_the_poll_finds_the_sale() {
    let (mock, request) = (mock_at(1.0), request("sbx-vendor-timeout", 2));
    let lost = VendorFailure::Unknown {
        reason: FailureReason::TimedOut,
        retry_after: None,
    };
    assert_eq!(summary(mock.buy(&request)), Err(lost));
    assert_eq!(summary(mock.poll(&request)), Ok((2, Shortfall::None)));
}

#[test]
fn forced_response_contains_the_vouchers_of_later_polls() {
    let slow = request("sbx-slow", 3);
    let respond = |sold, forced| MockVendor::respond(&slow, sold, forced);
    let not_sold = Err(VendorFailure::NotBought(FailureReason::NotSold));
    for (sold, forced, expected) in [
        (0, ForcedResponse::Sell(2), Ok((2, Shortfall::Pending(None)))),
        (2, ForcedResponse::Sell(1), Ok((3, Shortfall::None))),
        (1, ForcedResponse::Sell(u32::MAX), Ok((3, Shortfall::None))),
        (2, ForcedResponse::Refuse, Ok((2, Shortfall::Final))),
        (0, ForcedResponse::Refuse, not_sold),
        (1, ForcedResponse::TimeOut, Err(TIMED_OUT)),
    ] {
        assert_eq!(
            summary(respond(sold, forced)),
            expected,
            "{sold} sold, {forced:?}"
        );
    }
    let early = texts_of(respond(1, ForcedResponse::Sell(1)).unwrap());
    assert_eq!(early, texts(&mock_at(60.0), &slow)[..2]);
}

/// References and codes of a purchase's vouchers.
fn texts(mock: &MockVendor, request: &BuyRequest) -> Vec<(String, Vec<String>)> {
    texts_of(mock.poll(request).unwrap())
}

fn texts_of(bought: PurchaseResult) -> Vec<(String, Vec<String>)> {
    let texts = bought.vouchers.iter().map(|voucher| {
        let code = voucher.code.parts().map(|(_, text)| text.to_owned());
        (voucher.reference.to_string(), code.collect())
    });
    texts.collect()
}

#[test]
fn poll_repeats_the_vouchers_of_a_purchase_only() {
    let one = request("globe-air", 50);
    let other = BuyRequest {
        key: PurchaseKey(Uuid::from_u128(8)),
        ..one.clone()
    };
    let first = texts(&mock_at(1.0), &one);
    assert_eq!(
        texts(&mock_at(1e7), &one),
        first,
        "in another process, much later"
    );
    let all = [first, texts(&mock_at(1.0), &other)].concat();
    let (references, codes): (HashSet<_>, HashSet<_>) = all.iter().cloned().unzip();
    assert_eq!((references.len(), codes.len()), (100, 100));
    assert!(
        all.iter()
            .all(|(_, code)| code[0].starts_with("SANDBOX-GLOBE-AIR-"))
    );
}

#[test]
fn vouchers_match_the_request_and_expire_by_policy() {
    let request = request("globe-air", 1);
    let voucher = mock_at(1.0).poll(&request).unwrap().vouchers.remove(0);
    assert_eq!(voucher.expiry, Some(date!(2027 - 02 - 20)));
    assert_eq!(
        (voucher.product_id, voucher.denomination, voucher.price),
        (request.product_id, request.denomination, request.denomination)
    );
}

//! Tests of the simulator's sales and records, by fault.

use time::macros::datetime;
use uuid::Uuid;
use vouchsafe_domain::money::Amount;

use super::*;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn request(number: u128, product_id: &str, quantity: u32) -> PurchaseRequest {
    PurchaseRequest {
        key: PurchaseKey(Uuid::from_u128(number)),
        product_id: product_id.to_owned(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity,
    }
}

/// Number of vouchers, and whether the purchase is complete.
type Summary = Result<(usize, bool), Refusal>;

fn summary(statement: Result<PurchaseStatement, Refusal>) -> Summary {
    statement.map(|statement| (statement.sold.len(), statement.completed))
}

#[test]
fn key_sells_once_under_every_fault() {
    let all = Ok((5, true));
    for (product_id, bought, again, polled, recorded) in [
        ("game-us", all, all, all, 5),
        ("sim-timeout", all, all, all, 5),
        ("sim-drop", all, all, all, 5),
        ("sim-down", Err(Refusal::Down), all, all, 5),
        ("sim-busy", Err(Refusal::Busy), all, all, 5),
        (
            "sim-out-of-stock",
            Err(Refusal::OutOfStock),
            Err(Refusal::OutOfStock),
            Err(Refusal::NotFound),
            0,
        ),
        ("sim-part", Ok((2, true)), Ok((2, true)), Ok((2, true)), 2),
        ("sim-pending", Ok((2, false)), all, all, 5),
        ("sim-too-many", Ok((6, true)), Ok((6, true)), Ok((6, true)), 6),
        ("sim-record-dropped", all, all, all, 4),
        ("sim-record-added", all, all, all, 6),
        ("sim-record-altered", all, all, all, 5),
    ] {
        let mut ledger = Ledger::new(Vec::new());
        let request = request(7, product_id, 5);
        assert_eq!(summary(ledger.buy(request.clone(), NOW)), bought, "{product_id}");
        assert_eq!(summary(ledger.buy(request.clone(), NOW)), again, "{product_id}");
        assert_eq!(summary(ledger.poll(request.key, NOW)), polled, "{product_id}");
        assert_eq!(summary(ledger.buy(request.clone(), NOW)), again, "{product_id}");
        assert_eq!(ledger.page(NOW.date(), 0).0.len(), recorded, "{product_id}");
    }
}

#[test]
fn refusal_states_its_reason() {
    let mut ledger = Ledger::new(Vec::new());
    assert_eq!(
        summary(ledger.poll(PurchaseKey(Uuid::from_u128(1)), NOW)),
        Err(Refusal::NotFound)
    );
    for quantity in [0, MAX_QUANTITY + 1] {
        assert_eq!(
            summary(ledger.buy(request(1, "game-us", quantity), NOW)),
            Err(Refusal::Quantity)
        );
    }
    assert_eq!(
        summary(ledger.buy(request(1, "game-us", MAX_QUANTITY), NOW)),
        Ok((1_000, true))
    );
    for other in [request(1, "game-us", 1), request(1, "game-eu", MAX_QUANTITY)] {
        assert_eq!(summary(ledger.buy(other, NOW)), Err(Refusal::KeyReused));
    }
}

#[test]
fn repeated_code_is_that_of_an_earlier_sale() {
    let mut ledger = Ledger::new(Vec::new());
    let mut codes = |number| {
        let sold = ledger
            .buy(request(number, "sim-repeat-code", 2), NOW)
            .ok()
            .unwrap()
            .sold;
        sold.into_iter().map(|voucher| voucher.code).collect::<Vec<_>>()
    };
    let (first, second) = (codes(1), codes(2));
    assert_eq!((first[0] == second[0], first[1] == second[1]), (true, false));
    let same = ledger.buy(request(3, "sim-same-code", 2), NOW).ok().unwrap().sold;
    assert_eq!(same[0].code, same[1].code);
}

#[test]
fn records_of_a_day_are_paginated() {
    let mut ledger = Ledger::new(Vec::new());
    assert!(ledger.buy(request(1, "game-us", 250), NOW).is_ok());
    assert!(
        ledger
            .buy(request(2, "game-us", 9), NOW + time::Duration::DAY)
            .is_ok()
    );
    let page = |skipped| {
        let (records, more) = ledger.page(NOW.date(), skipped);
        (records.len(), more)
    };
    assert_eq!(
        [page(0), page(100), page(200), page(250)],
        [(100, true), (100, true), (50, false), (0, false)]
    );
}

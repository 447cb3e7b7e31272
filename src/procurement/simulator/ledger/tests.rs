//! What the simulator sells, by fault: first asked, asked again, looked at; and what its books say.

use time::macros::datetime;
use uuid::Uuid;
use vouchsafe_actors::domain::money::Amount;

use super::*;

const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn wish(number: u128, product_id: &str, quantity: u32) -> PurchaseRequest {
    PurchaseRequest {
        key: PurchaseKey(Uuid::from_u128(number)),
        product_id: product_id.to_owned(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity,
    }
}

/// How many were sold, and whether that is all.
type Seen = Result<(usize, bool), Refusal>;

fn seen(stated: Result<PurchaseStatement, Refusal>) -> Seen {
    stated.map(|statement| (statement.sold.len(), statement.completed))
}

#[test]
fn a_key_sells_once_whatever_goes_wrong() {
    let all = Ok((5, true));
    for (product_id, bought, again, looked, recorded) in [
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
        let wish = wish(7, product_id, 5);
        assert_eq!(seen(ledger.buy(wish.clone(), NOW)), bought, "{product_id}");
        assert_eq!(seen(ledger.buy(wish.clone(), NOW)), again, "{product_id}");
        assert_eq!(seen(ledger.poll(wish.key, NOW)), looked, "{product_id}");
        assert_eq!(seen(ledger.buy(wish.clone(), NOW)), again, "{product_id}");
        assert_eq!(ledger.page(NOW.date(), 0).0.len(), recorded, "{product_id}");
    }
}

#[test]
fn what_is_not_sold_has_a_reason() {
    let mut ledger = Ledger::new(Vec::new());
    assert_eq!(
        seen(ledger.poll(PurchaseKey(Uuid::from_u128(1)), NOW)),
        Err(Refusal::NotFound)
    );
    for quantity in [0, MAX_QUANTITY + 1] {
        assert_eq!(
            seen(ledger.buy(wish(1, "game-us", quantity), NOW)),
            Err(Refusal::Quantity)
        );
    }
    assert_eq!(
        seen(ledger.buy(wish(1, "game-us", MAX_QUANTITY), NOW)),
        Ok((1_000, true))
    );
    for other in [wish(1, "game-us", 1), wish(1, "game-eu", MAX_QUANTITY)] {
        assert_eq!(seen(ledger.buy(other, NOW)), Err(Refusal::KeyReused));
    }
}

#[test]
fn a_repeated_code_is_that_of_an_earlier_sale() {
    let mut ledger = Ledger::new(Vec::new());
    let mut codes = |number| {
        let sold = ledger
            .buy(wish(number, "sim-repeat-code", 2), NOW)
            .ok()
            .unwrap()
            .sold;
        sold.into_iter().map(|voucher| voucher.code).collect::<Vec<_>>()
    };
    let (first, second) = (codes(1), codes(2));
    assert_eq!((first[0] == second[0], first[1] == second[1]), (true, false));
    let same = ledger.buy(wish(3, "sim-same-code", 2), NOW).ok().unwrap().sold;
    assert_eq!(same[0].code, same[1].code);
}

#[test]
fn a_day_has_pages() {
    let mut ledger = Ledger::new(Vec::new());
    assert!(ledger.buy(wish(1, "game-us", 250), NOW).is_ok());
    assert!(
        ledger
            .buy(wish(2, "game-us", 9), NOW + time::Duration::DAY)
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

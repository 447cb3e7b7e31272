//! Shelf tests: decision tables, and a random walk against plain counts.

use proptest::prelude::*;
use time::Date;
use time::macros::date;
use vouchsafe_domain::stock::{ClaimedChunk, UnclaimableStock};

use super::*;

const SOON: Date = date!(2027 - 01 - 31);
const LATER: Date = date!(2027 - 06 - 30);

fn chunk(chunk_id: i64, first: i64, expiries: &[Date]) -> ClaimedChunk {
    let vouchers = (first..)
        .zip(expiries)
        .map(|(id, day)| (StockId(id), Expiry::on(*day)))
        .collect();
    ClaimedChunk {
        chunk_id: ChunkId(chunk_id),
        vouchers,
    }
}

fn claimed(chunks: Vec<ClaimedChunk>, next_expiry: Option<Date>) -> ClaimedStock {
    ClaimedStock {
        chunks,
        next_expiry: next_expiry.map(Expiry::on),
        unclaimable: UnclaimableStock::None,
    }
}

fn shelf(chunks: Vec<ClaimedChunk>) -> Shelf {
    let mut shelf = Shelf::new();
    shelf.add_claimed(&claimed(chunks, None), Expiry::PAST);
    shelf
}

fn hold(shelf: &mut Shelf, quantity: usize) -> Vec<StockVoucher> {
    match shelf.hold(quantity, Expiry::PAST, true) {
        ShelfDecision::Held(vouchers) => vouchers,
        other => panic!("{other:?}"),
    }
}

fn ids(vouchers: &[StockVoucher]) -> Vec<i64> {
    vouchers.iter().map(|voucher| voucher.stock_id.0).collect()
}

#[test]
fn earliest_expiry_is_sold_first_then_oldest_row() {
    let mut shelf = shelf(vec![chunk(1, 10, &[LATER, SOON]), chunk(2, 5, &[SOON, LATER])]);
    assert_eq!(ids(&hold(&mut shelf, 4)), [5, 11, 6, 10]);
}

#[test]
fn new_shelf_requests_refill_first() {
    let mut shelf = Shelf::new();
    assert_eq!(shelf.hold(1, Expiry::PAST, false), ShelfDecision::Refill);
}

#[test]
fn shortfall_is_reported_only_after_a_claim() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    assert_eq!(shelf.hold(2, Expiry::PAST, false), ShelfDecision::Refill);
    assert_eq!(shelf.hold(2, Expiry::PAST, true), ShelfDecision::Short(1));
}

#[test]
fn shortfall_waits_for_held_vouchers() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let held = hold(&mut shelf, 2);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Wait);
    assert_eq!(shelf.hold(3, Expiry::PAST, true), ShelfDecision::Short(2));
    shelf.settle(&held);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Short(0));
}

#[test]
fn released_vouchers_keep_their_position() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, LATER])]);
    let held = hold(&mut shelf, 1);
    shelf.release(&held);
    assert_eq!(ids(&hold(&mut shelf, 2)), [1, 2]);
}

#[test]
fn vouchers_past_the_horizon_are_not_sold() {
    let mut shelf = Shelf::new();
    shelf.add_claimed(
        &claimed(vec![chunk(1, 1, &[SOON, LATER])], Some(date!(2027 - 03 - 31))),
        Expiry::PAST,
    );
    assert_eq!(ids(&hold(&mut shelf, 1)), [1]);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.add_claimed(
        &claimed(vec![chunk(2, 9, &[date!(2027 - 03 - 31)])], None),
        Expiry::PAST,
    );
    assert_eq!(ids(&hold(&mut shelf, 2)), [9, 2]);
}

#[test]
fn import_with_earlier_expiry_is_claimed_first() {
    let mut shelf = shelf(vec![chunk(1, 1, &[LATER])]);
    shelf.expect_stock(Expiry::on(SOON));
    assert_eq!(shelf.hold(1, Expiry::PAST, false), ShelfDecision::Refill);
    shelf.add_claimed(&claimed(vec![chunk(2, 2, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 1)), [2]);
}

#[test]
fn vouchers_below_minimum_validity_are_not_sold() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, LATER])]);
    let not_before = Expiry::with_remaining_days(SOON, 1);
    assert!(matches!(shelf.hold(1, not_before, true), ShelfDecision::Held(held) if ids(&held) == [2]));
    assert_eq!(shelf.hold(1, not_before, true), ShelfDecision::Wait);
}

#[test]
fn invalidated_chunk_is_claimed_again_once_no_voucher_is_held() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON, SOON])]);
    let invalidated = hold(&mut shelf, 1);
    let in_flight = hold(&mut shelf, 1);
    shelf.invalidate(&invalidated);
    assert_eq!(
        (shelf.free(), shelf.held(), shelf.loaded_chunks()),
        (0, 1, vec![ChunkId(1)])
    );
    shelf.release(&in_flight);
    assert_eq!(
        (shelf.free(), shelf.held(), shelf.loaded_chunks()),
        (0, 0, vec![])
    );
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn shortfall_waits_while_an_invalidated_chunk_is_held() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON; 9])]);
    let invalidated = hold(&mut shelf, 1);
    let in_flight = hold(&mut shelf, 1);
    shelf.invalidate(&invalidated);
    assert_eq!(shelf.hold(5, Expiry::PAST, true), ShelfDecision::Wait);
    shelf.settle(&in_flight);
    assert_eq!(shelf.hold(5, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn invalidated_chunk_is_claimed_again_before_other_sales() {
    let mut shelf = shelf(vec![
        chunk(1, 1, &[SOON, LATER]),
        chunk(2, 9, &[date!(2027 - 03 - 31)]),
    ]);
    let [soon, between, later] = [(); 3].map(|()| hold(&mut shelf, 1));
    shelf.release(&soon);
    shelf.release(&between);
    shelf.invalidate(&later);
    assert_eq!(shelf.free(), 1);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn stock_reported_during_a_claim_is_claimed_next() {
    let mut shelf = shelf(vec![chunk(1, 1, &[LATER, LATER])]);
    shelf.start_claim();
    shelf.expect_stock(Expiry::on(SOON));
    shelf.add_claimed(&claimed(vec![], None), Expiry::PAST);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.start_claim();
    shelf.add_claimed(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 2)), [9, 1]);
}

#[test]
fn lower_minimum_validity_invalidates_all_chunks() {
    let mut shelf = Shelf::new();
    let strict = Expiry::with_remaining_days(SOON, 1);
    shelf.add_claimed(&claimed(vec![chunk(1, 2, &[LATER, LATER])], None), strict);
    let in_flight = shelf.hold(1, strict, true);
    assert_eq!(shelf.hold(3, Expiry::on(SOON), true), ShelfDecision::Refill);
    assert_eq!((shelf.free(), shelf.loaded_chunks()), (0, vec![ChunkId(1)]));
    let ShelfDecision::Held(in_flight) = in_flight else {
        panic!("{in_flight:?}")
    };
    shelf.release(&in_flight);
    assert_eq!(shelf.loaded_chunks(), []);
    shelf.start_claim();
    let whole = vec![chunk(1, 1, &[SOON, LATER, LATER])];
    shelf.add_claimed(&claimed(whole, None), Expiry::on(SOON));
    assert!(
        matches!(shelf.hold(3, Expiry::on(SOON), true), ShelfDecision::Held(held) if ids(&held) == [1, 2, 3])
    );
}

#[test]
fn claim_started_before_invalidation_is_discarded() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let in_flight = hold(&mut shelf, 1);
    shelf.start_claim();
    shelf.invalidate_all();
    shelf.add_claimed(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!((shelf.free(), shelf.loaded_chunks()), (0, vec![ChunkId(1)]));
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.start_claim();
    shelf.add_claimed(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 1)), [9]);
    assert_eq!(
        shelf.hold(1, Expiry::PAST, true),
        ShelfDecision::Wait,
        "the first chunk is suspect"
    );
    shelf.settle(&in_flight);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn expired_vouchers_are_dropped_by_the_next_claim() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON]), chunk(2, 3, &[LATER])]);
    let not_before = Expiry::with_remaining_days(SOON, 1);
    assert_eq!(shelf.hold(2, not_before, true), ShelfDecision::Short(1));
    assert_eq!(shelf.free(), 3);
    shelf.add_claimed(&claimed(vec![], None), not_before);
    assert_eq!((shelf.free(), shelf.loaded_chunks()), (1, vec![ChunkId(2)]));
}

#[test]
fn whole_chunks_are_given_up_last_to_expire_first() {
    let mut shelf = shelf(vec![
        chunk(1, 10, &[SOON; 2]),
        chunk(2, 20, &[LATER; 2]),
        chunk(3, 30, &[LATER; 2]),
    ]);
    shelf.give_up(3);
    assert_eq!(shelf.loaded_chunks(), [ChunkId(1)]);
    assert_eq!(ids(&hold(&mut shelf, 2)), [10, 11]);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Wait);
}

#[test]
fn voucher_released_to_a_given_up_chunk_is_claimable() {
    let mut shelf = shelf(vec![chunk(1, 10, &[SOON; 2])]);
    let held = hold(&mut shelf, 1);
    shelf.give_up(1);
    assert_eq!(shelf.loaded_chunks(), [ChunkId(1)], "a voucher of it is held");
    assert_eq!(shelf.hold(2, Expiry::PAST, true), ShelfDecision::Wait);
    shelf.release(&held);
    assert_eq!(shelf.loaded_chunks(), []);
    assert_eq!(
        shelf.hold(2, Expiry::PAST, true),
        ShelfDecision::Refill,
        "the shortfall is not final"
    );
}

#[test]
fn sold_out_chunk_is_dropped() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let held = hold(&mut shelf, 2);
    assert_eq!(shelf.loaded_chunks(), [ChunkId(1)]);
    shelf.settle(&held);
    assert_eq!(shelf.loaded_chunks(), []);
}

#[test]
fn chunk_claimed_twice_is_added_once() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    shelf.add_claimed(&claimed(vec![chunk(1, 1, &[SOON])], None), Expiry::PAST);
    assert_eq!(shelf.free(), 1);
}

#[test]
#[should_panic(expected = "more vouchers were returned")]
fn releasing_a_hold_twice_panics() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    let held = hold(&mut shelf, 1);
    shelf.release(&held);
    shelf.release(&held);
}

proptest! {
    #[test]
    fn voucher_is_never_held_twice(steps in prop::collection::vec((0_u8..4, 1_usize..4), 1..200)) {
        let mut shelf = shelf(vec![chunk(1, 1, &[SOON; 20]), chunk(2, 21, &[LATER; 20])]);
        let mut open: Vec<Vec<StockVoucher>> = Vec::new();
        let mut sold = BTreeSet::new();
        for (step, quantity) in steps {
            match step {
                0 | 1 => if let ShelfDecision::Held(held) = shelf.hold(quantity, Expiry::PAST, true) {
                    prop_assert!(open.iter().flatten().all(|voucher| !held.contains(voucher)));
                    prop_assert!(held.iter().all(|voucher| !sold.contains(voucher)));
                    open.push(held);
                },
                2 => if let Some(held) = open.pop() {
                    shelf.settle(&held);
                    sold.extend(held);
                },
                _ => if let Some(held) = open.pop() {
                    shelf.release(&held);
                },
            }
            let held_count: usize = open.iter().map(Vec::len).sum();
            prop_assert_eq!(shelf.held(), held_count);
            prop_assert_eq!(shelf.free() + held_count + sold.len(), 40);
        }
    }
}

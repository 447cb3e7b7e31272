//! The shelf as a table of commands and answers, and as a random walk against a plain count.

use proptest::prelude::*;
use time::Date;
use time::macros::date;

use super::*;
use crate::domain::stock::{ClaimedChunk, Elsewhere};

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

fn claimed(chunks: Vec<ClaimedChunk>, next: Option<Date>) -> ClaimedStock {
    ClaimedStock {
        chunks,
        next: next.map(Expiry::on),
        elsewhere: Elsewhere::Nowhere,
    }
}

fn shelf(chunks: Vec<ClaimedChunk>) -> Shelf {
    let mut shelf = Shelf::new();
    shelf.shelve(&claimed(chunks, None), Expiry::PAST);
    shelf
}

fn hold(shelf: &mut Shelf, quantity: usize) -> Vec<Shelved> {
    match shelf.hold(quantity, Expiry::PAST, true) {
        ShelfDecision::Held(vouchers) => vouchers,
        other => panic!("{other:?}"),
    }
}

fn ids(vouchers: &[Shelved]) -> Vec<i64> {
    vouchers.iter().map(|voucher| voucher.stock_id.0).collect()
}

#[test]
fn what_expires_first_goes_first_and_then_what_came_first() {
    let mut shelf = shelf(vec![chunk(1, 10, &[LATER, SOON]), chunk(2, 5, &[SOON, LATER])]);
    assert_eq!(ids(&hold(&mut shelf, 4)), [5, 11, 6, 10]);
}

#[test]
fn a_new_shelf_asks_for_more_before_it_says_anything() {
    let mut shelf = Shelf::new();
    assert_eq!(shelf.hold(1, Expiry::PAST, false), ShelfDecision::Refill);
}

#[test]
fn a_shortage_is_said_only_after_the_store_was_asked_for_more() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    assert_eq!(shelf.hold(2, Expiry::PAST, false), ShelfDecision::Refill);
    assert_eq!(shelf.hold(2, Expiry::PAST, true), ShelfDecision::Short(1));
}

#[test]
fn a_shortage_waits_for_what_is_set_aside() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let held = hold(&mut shelf, 2);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Wait);
    assert_eq!(shelf.hold(3, Expiry::PAST, true), ShelfDecision::Short(2));
    shelf.settle(&held);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Short(0));
}

#[test]
fn released_vouchers_keep_their_place() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, LATER])]);
    let held = hold(&mut shelf, 1);
    shelf.release(&held);
    assert_eq!(ids(&hold(&mut shelf, 2)), [1, 2]);
}

#[test]
fn nothing_is_sold_past_the_horizon() {
    let mut shelf = Shelf::new();
    shelf.shelve(
        &claimed(vec![chunk(1, 1, &[SOON, LATER])], Some(date!(2027 - 03 - 31))),
        Expiry::PAST,
    );
    assert_eq!(ids(&hold(&mut shelf, 1)), [1]);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.shelve(
        &claimed(vec![chunk(2, 9, &[date!(2027 - 03 - 31)])], None),
        Expiry::PAST,
    );
    assert_eq!(ids(&hold(&mut shelf, 2)), [9, 2]);
}

#[test]
fn an_import_that_expires_sooner_is_claimed_first() {
    let mut shelf = shelf(vec![chunk(1, 1, &[LATER])]);
    shelf.expect(Expiry::on(SOON));
    assert_eq!(shelf.hold(1, Expiry::PAST, false), ShelfDecision::Refill);
    shelf.shelve(&claimed(vec![chunk(2, 2, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 1)), [2]);
}

#[test]
fn vouchers_with_too_few_days_left_are_not_sold() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, LATER])]);
    let not_before = Expiry::leaving(SOON, 1);
    assert!(matches!(shelf.hold(1, not_before, true), ShelfDecision::Held(held) if ids(&held) == [2]));
    assert_eq!(shelf.hold(1, not_before, true), ShelfDecision::Wait);
}

#[test]
fn a_refuted_chunk_is_sold_from_no_more_and_claimed_again_when_nothing_of_it_is_under_way() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON, SOON])]);
    let refuted = hold(&mut shelf, 1);
    let under_way = hold(&mut shelf, 1);
    shelf.refute(&refuted);
    assert_eq!(
        (shelf.free(), shelf.aside(), shelf.loaded()),
        (0, 1, vec![ChunkId(1)])
    );
    shelf.release(&under_way);
    assert_eq!((shelf.free(), shelf.aside(), shelf.loaded()), (0, 0, vec![]));
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn nobody_is_told_of_a_shortage_while_a_refuted_chunk_cannot_be_claimed_again() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON; 9])]);
    let refuted = hold(&mut shelf, 1);
    let under_way = hold(&mut shelf, 1);
    shelf.refute(&refuted);
    assert_eq!(shelf.hold(5, Expiry::PAST, true), ShelfDecision::Wait);
    shelf.settle(&under_way);
    assert_eq!(shelf.hold(5, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn a_refuted_chunk_is_claimed_again_before_anything_else_is_sold() {
    let mut shelf = shelf(vec![
        chunk(1, 1, &[SOON, LATER]),
        chunk(2, 9, &[date!(2027 - 03 - 31)]),
    ]);
    let [soon, between, later] = [(); 3].map(|()| hold(&mut shelf, 1));
    shelf.release(&soon);
    shelf.release(&between);
    shelf.refute(&later);
    assert_eq!(shelf.free(), 1);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn what_comes_up_during_a_claim_is_not_forgotten_when_it_ends() {
    let mut shelf = shelf(vec![chunk(1, 1, &[LATER, LATER])]);
    shelf.claim_begins();
    shelf.expect(Expiry::on(SOON));
    shelf.shelve(&claimed(vec![], None), Expiry::PAST);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.claim_begins();
    shelf.shelve(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 2)), [9, 1]);
}

#[test]
fn when_less_validity_will_do_again_everything_is_claimed_anew() {
    let mut shelf = Shelf::new();
    let strict = Expiry::leaving(SOON, 1);
    shelf.shelve(&claimed(vec![chunk(1, 2, &[LATER, LATER])], None), strict);
    let under_way = shelf.hold(1, strict, true);
    assert_eq!(shelf.hold(3, Expiry::on(SOON), true), ShelfDecision::Refill);
    assert_eq!((shelf.free(), shelf.loaded()), (0, vec![ChunkId(1)]));
    let ShelfDecision::Held(under_way) = under_way else {
        panic!("{under_way:?}")
    };
    shelf.release(&under_way);
    assert_eq!(shelf.loaded(), []);
    shelf.claim_begins();
    let whole = vec![chunk(1, 1, &[SOON, LATER, LATER])];
    shelf.shelve(&claimed(whole, None), Expiry::on(SOON));
    assert!(
        matches!(shelf.hold(3, Expiry::on(SOON), true), ShelfDecision::Held(held) if ids(&held) == [1, 2, 3])
    );
}

#[test]
fn what_a_claim_brings_that_began_before_a_doubt_is_claimed_anew() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let under_way = hold(&mut shelf, 1);
    shelf.claim_begins();
    shelf.doubt_all();
    shelf.shelve(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!((shelf.free(), shelf.loaded()), (0, vec![ChunkId(1)]));
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
    shelf.claim_begins();
    shelf.shelve(&claimed(vec![chunk(2, 9, &[SOON])], None), Expiry::PAST);
    assert_eq!(ids(&hold(&mut shelf, 1)), [9]);
    assert_eq!(
        shelf.hold(1, Expiry::PAST, true),
        ShelfDecision::Wait,
        "the first chunk is not known"
    );
    shelf.settle(&under_way);
    assert_eq!(shelf.hold(1, Expiry::PAST, true), ShelfDecision::Refill);
}

#[test]
fn what_has_lapsed_is_dropped_by_the_next_claim() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON]), chunk(2, 3, &[LATER])]);
    let not_before = Expiry::leaving(SOON, 1);
    assert_eq!(shelf.hold(2, not_before, true), ShelfDecision::Short(1));
    assert_eq!(shelf.free(), 3);
    shelf.shelve(&claimed(vec![], None), not_before);
    assert_eq!((shelf.free(), shelf.loaded()), (1, vec![ChunkId(2)]));
}

#[test]
fn a_chunk_that_is_sold_out_is_forgotten() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON, SOON])]);
    let held = hold(&mut shelf, 2);
    assert_eq!(shelf.loaded(), [ChunkId(1)]);
    shelf.settle(&held);
    assert_eq!(shelf.loaded(), []);
}

#[test]
fn a_chunk_that_is_claimed_twice_is_shelved_once() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    shelf.shelve(&claimed(vec![chunk(1, 1, &[SOON])], None), Expiry::PAST);
    assert_eq!(shelf.free(), 1);
}

#[test]
#[should_panic(expected = "more comes back")]
fn a_hold_does_not_come_back_twice() {
    let mut shelf = shelf(vec![chunk(1, 1, &[SOON])]);
    let held = hold(&mut shelf, 1);
    shelf.release(&held);
    shelf.release(&held);
}

proptest! {
    #[test]
    fn no_voucher_is_ever_in_two_hands(steps in prop::collection::vec((0_u8..4, 1_usize..4), 1..200)) {
        let mut shelf = shelf(vec![chunk(1, 1, &[SOON; 20]), chunk(2, 21, &[LATER; 20])]);
        let mut open: Vec<Vec<Shelved>> = Vec::new();
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
            let aside: usize = open.iter().map(Vec::len).sum();
            prop_assert_eq!(shelf.aside(), aside);
            prop_assert_eq!(shelf.free() + aside + sold.len(), 40);
        }
    }
}

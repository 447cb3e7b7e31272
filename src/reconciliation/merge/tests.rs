//! The merge as a table, and against a look at both sides in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;
use vouchsafe_actors::domain::money::Amount;

use super::*;
use crate::reconciliation::VoucherTerms;
use crate::procurement::PurchaseKey;

fn said(purchase: Option<u128>, product: &str, minor: i64, currency: &str) -> VoucherTerms {
    VoucherTerms {
        purchase: purchase.map(|number| PurchaseKey(Uuid::from_u128(number))),
        product_id: product.parse().unwrap(),
        denomination: Amount::from_minor(minor).of(currency.parse().unwrap()),
    }
}

fn plain() -> VoucherTerms {
    said(Some(7), "game-us", 2_500, "USD")
}

fn held(reference: &str, due: bool) -> OwnVoucher {
    OwnVoucher {
        reference: reference.to_owned(),
        terms: plain(),
        due,
    }
}

fn recorded(reference: &str, said: VoucherTerms) -> VendorEntry {
    VendorEntry {
        reference: reference.to_owned(),
        terms: said,
        repeated: false,
    }
}

/// Walks both streams to their ends.
fn walk(ours: &[OwnVoucher], theirs: &[VendorEntry]) -> Vec<(String, Comparison)> {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    let mut found = Vec::new();
    while let Some(step) = merge_step(ours.peek().copied(), theirs.peek().copied()) {
        let reference = match step.side {
            Side::Ours => ours.next().map(|one| &one.reference),
            Side::Theirs => theirs.next().map(|one| &one.reference),
            Side::Both => ours.next().and(theirs.next()).map(|one| &one.reference),
        };
        found.extend(step.comparison.map(|finding| (reference.unwrap().clone(), finding)));
    }
    found
}

#[test]
fn each_pair_tells_one_thing() {
    let (drift, matched) = (|kind| Some(Comparison::Drift(kind)), Some(Comparison::Matched));
    let same = recorded("a", plain());
    let again = VendorEntry {
        repeated: true,
        ..same.clone()
    };
    let other = |said| recorded("a", said);
    for (ours, theirs, expected) in [
        (Some(held("a", true)), Some(same.clone()), matched),
        (Some(held("a", false)), Some(same.clone()), matched),
        (
            Some(held("a", true)),
            Some(other(said(None, "game-us", 2_500, "USD"))),
            matched,
        ),
        (
            Some(held("a", true)),
            Some(other(said(Some(8), "game-us", 2_500, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(held("a", true)),
            Some(other(said(Some(7), "game-eu", 2_500, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(held("a", true)),
            Some(other(said(Some(7), "game-us", 2_501, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(held("a", true)),
            Some(other(said(Some(7), "game-us", 2_500, "EUR"))),
            drift(DriftKind::Differs),
        ),
        (Some(held("a", true)), Some(again.clone()), drift(DriftKind::Repeated)),
        (Some(held("a", true)), None, drift(DriftKind::Missing)),
        (Some(held("a", false)), None, None),
        (None, Some(same), drift(DriftKind::Unknown)),
        (None, Some(again), drift(DriftKind::Unknown)),
    ] {
        let took = merge_step(ours.as_ref(), theirs.as_ref()).unwrap();
        assert_eq!(took.comparison, expected, "{ours:?} {theirs:?}");
    }
    assert_eq!(merge_step(None, None), None);
}

#[test]
fn a_record_is_a_pair_to_one_voucher_alone() {
    let ours = [held("a", true), held("a", true), held("b", true)];
    let theirs = [recorded("a", plain()), recorded("b", plain())];
    let expected = [
        ("a".to_owned(), Comparison::Matched),
        ("a".to_owned(), Comparison::Drift(DriftKind::Missing)),
        ("b".to_owned(), Comparison::Matched),
    ];
    assert_eq!(walk(&ours, &theirs), expected);
}

#[test]
fn what_differs_is_named() {
    let other = said(Some(8), "game-eu", 1, "EUR");
    assert_eq!(
        plain().differences(&other),
        ["purchase_id", "product_id", "denomination", "currency"]
    );
    assert!(plain().differences(&plain()).is_empty());
}

/// What the tables say, with both sides in memory.
fn naive(ours: &BTreeMap<String, OwnVoucher>, theirs: &BTreeMap<String, VendorEntry>) -> Vec<(String, Comparison)> {
    let mut found = Vec::new();
    for (reference, voucher) in ours {
        let finding = match theirs.get(reference) {
            Some(record) if record.repeated => Comparison::Drift(DriftKind::Repeated),
            Some(record) if record.terms == voucher.terms => Comparison::Matched,
            Some(_) => Comparison::Drift(DriftKind::Differs),
            None if voucher.due => Comparison::Drift(DriftKind::Missing),
            None => continue,
        };
        found.push((reference.clone(), finding));
    }
    let unknown = theirs.keys().filter(|reference| !ours.contains_key(*reference));
    found.extend(unknown.map(|reference| (reference.clone(), Comparison::Drift(DriftKind::Unknown))));
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

proptest! {
    #[test]
    fn the_walk_finds_what_a_look_at_both_sides_finds(
        ours in prop::collection::btree_map("[a-cA-C0-2~!]{1,2}", (any::<bool>(), 1_i64..3), 0..40),
        theirs in prop::collection::btree_map("[a-cA-C0-2~!]{1,2}", (any::<bool>(), 1_i64..3), 0..40),
    ) {
        let terms = |minor| said(Some(7), "game-us", minor, "USD");
        let ours: BTreeMap<_, _> = ours.into_iter().map(|(reference, (due, minor))| {
            (reference.clone(), OwnVoucher { reference, terms: terms(minor), due })
        }).collect();
        let theirs: BTreeMap<_, _> = theirs.into_iter().map(|(reference, (repeated, minor))| {
            (reference.clone(), VendorEntry { reference, terms: terms(minor), repeated })
        }).collect();
        let streams: (Vec<_>, Vec<_>) = (ours.values().cloned().collect(), theirs.values().cloned().collect());
        let found = walk(&streams.0, &streams.1);
        prop_assert_eq!(&found, &naive(&ours, &theirs));
        let mut tally = Tally::default();
        found.iter().for_each(|(_, finding)| tally.count(*finding));
        prop_assert_eq!(usize::try_from(tally.compared()), Ok(found.len()));
    }
}

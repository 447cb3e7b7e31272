//! Tests of the merge: as a table, and against an in-memory implementation.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::money::Amount;
use crate::purchase::PurchaseKey;
use crate::reconciliation::VoucherTerms;

fn terms(purchase: Option<u128>, product: &str, minor: i64, currency: &str) -> VoucherTerms {
    VoucherTerms {
        purchase: purchase.map(|number| PurchaseKey(Uuid::from_u128(number))),
        product_id: product.parse().unwrap(),
        denomination: Amount::from_minor(minor).of(currency.parse().unwrap()),
    }
}

fn plain() -> VoucherTerms {
    terms(Some(7), "game-us", 2_500, "USD")
}

fn own(reference: &str, due: bool) -> OwnVoucher {
    OwnVoucher {
        reference: reference.to_owned(),
        terms: plain(),
        due,
    }
}

fn entry(reference: &str, terms: VoucherTerms) -> VendorEntry {
    VendorEntry {
        reference: reference.to_owned(),
        terms,
        repeated: false,
    }
}

/// Merges both streams to their ends.
fn merge(ours: &[OwnVoucher], theirs: &[VendorEntry]) -> Vec<(String, Comparison)> {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    let mut comparisons = Vec::new();
    while let Some(step) = merge_step(ours.peek().copied(), theirs.peek().copied()) {
        let reference = match step.side {
            Side::Ours => ours.next().map(|left| &left.reference),
            Side::Theirs => theirs.next().map(|left| &left.reference),
            Side::Both => ours.next().and(theirs.next()).map(|left| &left.reference),
        };
        comparisons.extend(
            step.comparison
                .map(|comparison| (reference.unwrap().clone(), comparison)),
        );
    }
    comparisons
}

#[test]
fn pair_gives_the_documented_comparison() {
    let (drift, matched) = (|kind| Some(Comparison::Drift(kind)), Some(Comparison::Matched));
    let same = entry("a", plain());
    let again = VendorEntry {
        repeated: true,
        ..same.clone()
    };
    let other = |terms| entry("a", terms);
    for (ours, theirs, expected) in [
        (Some(own("a", true)), Some(same.clone()), matched),
        (Some(own("a", false)), Some(same.clone()), matched),
        (
            Some(own("a", true)),
            Some(other(terms(None, "game-us", 2_500, "USD"))),
            matched,
        ),
        (
            Some(own("a", true)),
            Some(other(terms(Some(8), "game-us", 2_500, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(own("a", true)),
            Some(other(terms(Some(7), "game-eu", 2_500, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(own("a", true)),
            Some(other(terms(Some(7), "game-us", 2_501, "USD"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(own("a", true)),
            Some(other(terms(Some(7), "game-us", 2_500, "EUR"))),
            drift(DriftKind::Differs),
        ),
        (
            Some(own("a", true)),
            Some(again.clone()),
            drift(DriftKind::Repeated),
        ),
        (Some(own("a", true)), None, drift(DriftKind::Missing)),
        (Some(own("a", false)), None, None),
        (None, Some(same), drift(DriftKind::Unknown)),
        (None, Some(again), drift(DriftKind::Unknown)),
    ] {
        let step = merge_step(ours.as_ref(), theirs.as_ref()).unwrap();
        assert_eq!(step.comparison, expected, "{ours:?} {theirs:?}");
    }
    assert_eq!(merge_step(None, None), None);
}

#[test]
fn record_matches_one_voucher_only() {
    let ours = [own("a", true), own("a", true), own("b", true)];
    let theirs = [entry("a", plain()), entry("b", plain())];
    let expected = [
        ("a".to_owned(), Comparison::Matched),
        ("a".to_owned(), Comparison::Drift(DriftKind::Missing)),
        ("b".to_owned(), Comparison::Matched),
    ];
    assert_eq!(merge(&ours, &theirs), expected);
}

#[test]
fn differences_name_the_fields() {
    let other = terms(Some(8), "game-eu", 1, "EUR");
    assert_eq!(
        plain().differences(&other),
        ["purchase_id", "product_id", "denomination", "currency"]
    );
    assert!(plain().differences(&plain()).is_empty());
}

/// The table of the module, with both sides in memory.
fn naive(
    ours: &BTreeMap<String, OwnVoucher>,
    theirs: &BTreeMap<String, VendorEntry>,
) -> Vec<(String, Comparison)> {
    let mut comparisons = Vec::new();
    for (reference, voucher) in ours {
        let comparison = match theirs.get(reference) {
            Some(record) if record.repeated => Comparison::Drift(DriftKind::Repeated),
            Some(record) if record.terms == voucher.terms => Comparison::Matched,
            Some(_) => Comparison::Drift(DriftKind::Differs),
            None if voucher.due => Comparison::Drift(DriftKind::Missing),
            None => continue,
        };
        comparisons.push((reference.clone(), comparison));
    }
    let unknown = theirs.keys().filter(|reference| !ours.contains_key(*reference));
    comparisons.extend(unknown.map(|reference| (reference.clone(), Comparison::Drift(DriftKind::Unknown))));
    comparisons.sort_by(|left, other| left.0.cmp(&other.0));
    comparisons
}

proptest! {
    #[test]
    fn merge_equals_the_in_memory_comparison(
        ours in prop::collection::btree_map("[a-cA-C0-2~!]{1,2}", (any::<bool>(), 1_i64..3), 0..40),
        theirs in prop::collection::btree_map("[a-cA-C0-2~!]{1,2}", (any::<bool>(), 1_i64..3), 0..40),
    ) {
        let terms = |minor| terms(Some(7), "game-us", minor, "USD");
        let ours: BTreeMap<_, _> = ours.into_iter().map(|(reference, (due, minor))| {
            (reference.clone(), OwnVoucher { reference, terms: terms(minor), due })
        }).collect();
        let theirs: BTreeMap<_, _> = theirs.into_iter().map(|(reference, (repeated, minor))| {
            (reference.clone(), VendorEntry { reference, terms: terms(minor), repeated })
        }).collect();
        let streams: (Vec<_>, Vec<_>) = (ours.values().cloned().collect(), theirs.values().cloned().collect());
        let comparisons = merge(&streams.0, &streams.1);
        prop_assert_eq!(&comparisons, &naive(&ours, &theirs));
        let mut tally = Tally::default();
        comparisons.iter().for_each(|(_, comparison)| tally.count(*comparison));
        prop_assert_eq!(usize::try_from(tally.compared()), Ok(comparisons.len()));
    }
}

//! Benchmark of purse decisions: hold, then settle with the wallet state after the commit, or release.
//!
//! A purse consists of three numbers, so its cost does not depend on any size.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_actors::wallet::purse::{Purse, PurseDecision, ReserveRequest};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;

/// Amount of each hold.
const PRICE: Amount = Amount::from_minor(2_500);

fn hold(purse: &mut Purse) {
    let decision = purse.hold(black_box(ReserveRequest::Debit(PRICE)));
    assert_eq!(decision, PurseDecision::Held);
}

fn purse(criterion: &mut Criterion) {
    let mut newest = WalletState {
        sequence: 1,
        balance: Amount::from_minor(i64::MAX),
    };
    let mut purse = Purse::new(newest);
    let mut group = criterion.benchmark_group("purse");
    group.throughput(Throughput::Elements(1));
    group.bench_function("settled", |bencher| {
        bencher.iter(|| {
            hold(&mut purse);
            newest.sequence += 1;
            purse.settle(PRICE, black_box(Some(newest)));
        });
    });
    group.bench_function("released", |bencher| {
        bencher.iter(|| {
            hold(&mut purse);
            purse.release(black_box(PRICE));
        });
    });
    group.finish();
}

criterion_group!(benches, purse);
criterion_main!(benches);

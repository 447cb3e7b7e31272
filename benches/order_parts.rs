//! Benchmarks of the parts of an order that need no actor: parsing the body, by number of lines; signing and
//! verifying the request, by body size; purse decisions.
//!
//! A request signed without `/api/v1` costs a second HMAC, because the full path is tried first.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "parts/mod.rs"]
mod parts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_actors::wallet::purse::{Purse, PurseDecision, ReserveRequest};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;
use vouchsafe_wire::partner::orders::request;

use crate::parts::growth;
use crate::parts::signed_order::SignedOrder;

/// Lines per order, up to the maximum.
const LINES: [usize; 3] = [1, 10, 100];

/// Body sizes in bytes: from an ordinary order to 256 KiB, the maximum.
const BODIES: [usize; 5] = [96, 1_024, 8_192, 65_536, 262_144];

/// Amount of each hold.
const PRICE: Amount = Amount::from_minor(2_500);

/// An order with all optional fields.
fn order_of(lines: usize) -> String {
    let line = |n: usize| format!(r#"{{"product_id":"amzn-us-{n}","denomination":"25.00","quantity":3}}"#);
    let lines: Vec<_> = (0..lines).map(line).collect();
    format!(
        r#"{{"items":[{}],"currency":"USD","reference":"PO-17","metadata":{{"shop":"3"}},"fulfilment":"AUTO"}}"#,
        lines.join(",")
    )
}

/// A JSON object of exactly `bytes` bytes.
fn body(bytes: usize) -> Vec<u8> {
    let filler = "x".repeat(bytes - r#"{"reference":""}"#.len());
    format!(r#"{{"reference":"{filler}"}}"#).into_bytes()
}

fn parsing(criterion: &mut Criterion) {
    let mut group = growth::group(criterion, "parse_order");
    for lines in LINES {
        let body = order_of(lines);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(lines), |bencher| {
            bencher.iter(|| black_box(request::parse(black_box(body.as_bytes())).unwrap()));
        });
    }
    group.finish();
}

fn signing(criterion: &mut Criterion) {
    for verified in [false, true] {
        let name = if verified { "verify" } else { "sign" };
        let mut group = growth::group(criterion, name);
        for bytes in BODIES {
            let body = body(bytes);
            group.throughput(Throughput::Bytes(bytes as u64));
            let order = SignedOrder::new(&body);
            group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
                bencher.iter(|| {
                    if verified {
                        order.verify(black_box(&body));
                    } else {
                        black_box(order.sign(black_box(&body)));
                    }
                });
            });
        }
        group.finish();
    }
}

fn hold(purse: &mut Purse) {
    let decision = purse.hold(black_box(ReserveRequest::Debit(PRICE)));
    assert_eq!(decision, PurseDecision::Held);
}

/// Hold, then settle with the wallet state after the commit, or release. A purse consists of three numbers,
/// so its cost does not depend on any size.
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

criterion_group!(benches, parsing, signing, purse);
criterion_main!(benches);

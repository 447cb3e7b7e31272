//! Which peer is compared with, and how is that told?

use super::*;
use crate::audit::{Audit, Check};
use crate::scenario::Pace;

fn tried(pool: u32, orders_per_s: f64, counts: bool) -> VariantResult {
    let result = if counts {
        Ok(String::new())
    } else {
        Err("1 repeated".to_owned())
    };
    let turn = Turn {
        orders_per_s,
        orders: 10,
        p50_us: 1,
        p99_us: 1,
        p99_9_us: 1,
        outcomes: [("201".to_owned(), 10)].into(),
        costs: None,
        audit: Audit {
            checks: vec![Check::new("no voucher twice", result)],
        },
        machine: Machine::observe_before(),
    };
    let shape = TransactionShape::Function;
    VariantResult {
        variant: PeerVariant { shape, pool },
        turns: vec![vec![turn]],
    }
}

fn report(found: Vec<VariantResult>) -> PeerSearchReport {
    let overall: Vec<_> = found.iter().map(VariantResult::mean_rate).collect();
    let load = LoadSettings {
        pace: Pace::Closed { connections: 256 },
        threads: 1,
        warm_up_s: 1,
        seconds: 3,
    };
    PeerSearchReport {
        loads: vec![load],
        best: index_of_max(&overall),
        found,
        database: DatabaseFacts {
            fsync: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
            tables: Vec::new(),
        },
        machine: Machine::observe_before(),
    }
}

#[test]
fn a_peer_that_is_much_worse_than_the_best_is_not_compared_with() {
    let best_of = |all: &[(u32, f64, bool)]| {
        let all = all
            .iter()
            .map(|(pool, rate, counts)| tried(*pool, *rate, *counts));
        report(all.collect()).best_within(40).map(|variant| variant.pool)
    };
    assert_eq!(best_of(&[(4, 3_000.0, true), (8, 2_000.0, true)]), Some(4));
    assert_eq!(
        best_of(&[(4, 3_000.0, false), (8, 2_000.0, true)]),
        Some(8),
        "what does not count"
    );
    assert_eq!(
        best_of(&[(8, 2_800.0, true), (64, 3_000.0, true)]),
        Some(8),
        "as good"
    );
    assert_eq!(
        best_of(&[(8, 2_000.0, true), (64, 3_000.0, true)]),
        None,
        "not as good"
    );
    assert_eq!(best_of(&[(4, 3_000.0, false)]), None);
}

#[test]
fn the_ranking_marks_the_best_and_what_is_as_good() {
    let report = report(vec![
        tried(4, 3_000.0, true),
        tried(8, 2_800.0, true),
        tried(16, 2_000.0, true),
    ]);
    let text = report.ranking().to_string();
    let marks: Vec<_> = text
        .lines()
        .skip(2)
        .map(|line| line.rsplit(')').next().unwrap().trim())
        .collect();
    assert_eq!(marks, ["best", "within 10 %", ""], "{text}");
    assert!(report.to_string().contains("fsync on"));
}

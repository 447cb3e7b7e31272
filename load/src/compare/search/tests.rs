//! Tests of peer selection and ranking.

use super::*;
use crate::audit::{Audit, Check};
use crate::traffic::pace::Pace;

fn variant_result(pool: u32, orders_per_s: f64, counts: bool) -> VariantResult {
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
            checks: vec![Check::new("vouchers unique", result)],
        },
        machine: Machine::observe_before(),
    };
    let shape = TransactionShape::Function;
    VariantResult {
        variant: PeerVariant { shape, pool },
        turns: vec![vec![turn]],
    }
}

fn report(results: Vec<VariantResult>) -> PeerSearchReport {
    let overall: Vec<_> = results.iter().map(VariantResult::mean_rate).collect();
    let load = LoadSettings {
        pace: Pace::Closed { connections: 256 },
        threads: 1,
        warm_up_s: 1,
        seconds: 3,
    };
    PeerSearchReport {
        loads: vec![load],
        best: index_of_max(&overall),
        results,
        database: DatabaseFacts {
            fsync: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
            tables: Vec::new(),
        },
        machine: Machine::observe_before(),
    }
}

#[test]
fn best_within_needs_rate_close_to_best() {
    let best_of = |all: &[(u32, f64, bool)]| {
        let all = all
            .iter()
            .map(|(pool, rate, counts)| variant_result(*pool, *rate, *counts));
        report(all.collect()).best_within(40).map(|variant| variant.pool)
    };
    assert_eq!(best_of(&[(4, 3_000.0, true), (8, 2_000.0, true)]), Some(4));
    assert_eq!(
        best_of(&[(4, 3_000.0, false), (8, 2_000.0, true)]),
        Some(8),
        "rejected turns are ignored"
    );
    assert_eq!(
        best_of(&[(8, 2_800.0, true), (64, 3_000.0, true)]),
        Some(8),
        "within 10 % of the best"
    );
    assert_eq!(
        best_of(&[(8, 2_000.0, true), (64, 3_000.0, true)]),
        None,
        "more than 10 % below the best"
    );
    assert_eq!(best_of(&[(4, 3_000.0, false)]), None);
}

#[test]
fn ranking_marks_best_and_equal_variants() {
    let report = report(vec![
        variant_result(4, 3_000.0, true),
        variant_result(8, 2_800.0, true),
        variant_result(16, 2_000.0, true),
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

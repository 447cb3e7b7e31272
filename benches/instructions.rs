//! Instruction counts of the parts of an order, measured with valgrind's callgrind, independently of other load: the
//! same program yields the same count.
//!
//! Each workload runs with two repetition counts in separate processes; the difference cancels the cost of the
//! start. Under valgrind the CPU has no SHA-256 instructions, so signing and verifying cost more than usual.
//!
//! The counts are compared with `instructions.txt` beside this file: a count that is more than 2 % higher fails.
//! `VOUCHSAFE_REWRITE_COUNTS=1` writes the file instead. The counts are those of the default profile, `cargo bench
//! --package vouchsafe-instructions`; another profile needs another file. Without valgrind nothing is measured.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    reason = "a bench reports to the terminal only and may panic"
)]

#[path = "parts/mod.rs"]
mod parts;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tokio::task::LocalSet;
use vouchsafe_actors::wallet::purse::{Purse, PurseDecision, ReserveRequest};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;
use vouchsafe_wire::partner::orders::request;

use crate::parts::always_commits::StockClaims;
use crate::parts::bench_engine::{BenchEngine, CONCURRENT_ORDERS};
use crate::parts::growth;
use crate::parts::signed_order::SignedOrder;

/// Environment variable of a counted process: workload and repetitions, for example `verify 1024`.
const WORKLOAD_VARIABLE: &str = "VOUCHSAFE_BENCH_WORK";

/// Environment variable that makes the bench write the measured counts instead of comparing them.
const REWRITE_VARIABLE: &str = "VOUCHSAFE_REWRITE_COUNTS";

/// Limit of an increase, in percent. The same program on the same machine has none; compilers and libraries of another
/// machine cause some.
const MAX_INCREASE: f64 = 2.0;

/// Repetitions of the short run and of the long one.
const REPETITIONS: [u64; 2] = [1_024, 3_072];

/// Body of an ordinary order.
const BODY: &[u8] =
    br#"{"items":[{"product_id":"amzn-us","denomination":25,"quantity":1}],"currency":"USD","reference":"PO-17"}"#;

/// Prefix of callgrind's result line.
const RESULT_PREFIX: &str = "Collected : ";

/// A workload with a number of repetitions.
type Workload = fn(u64);

/// All workloads by name.
const WORKLOADS: [(&str, Workload); 5] = [
    ("place_order", place_orders),
    ("parse", parse_bodies),
    ("sign", sign_requests),
    ("verify", verify_requests),
    ("purse", settle_holds),
];

/// The whole flow with a store that commits everything: one partner, one SKU, 64 concurrent orders.
fn place_orders(repetitions: u64) {
    let runtime = growth::runtime();
    let local = LocalSet::new();
    let bench = local.block_on(&runtime, BenchEngine::new(StockClaims::InFull, 1, 1));
    let rounds = repetitions.div_ceil(CONCURRENT_ORDERS as u64);
    local.block_on(&runtime, bench.place(rounds, CONCURRENT_ORDERS));
}

fn parse_bodies(repetitions: u64) {
    for _ in 0..repetitions {
        black_box(request::parse(black_box(BODY)).unwrap());
    }
}

fn sign_requests(repetitions: u64) {
    let signed = SignedOrder::new(BODY);
    for _ in 0..repetitions {
        black_box(signed.sign(black_box(BODY)));
    }
}

fn verify_requests(repetitions: u64) {
    let signed = SignedOrder::new(BODY);
    for _ in 0..repetitions {
        signed.verify(black_box(BODY));
    }
}

/// Hold and settle with the wallet state after the commit.
fn settle_holds(repetitions: u64) {
    let price = Amount::from_minor(2_500);
    let mut newest = WalletState {
        sequence: 1,
        balance: Amount::from_minor(i64::MAX),
    };
    let mut purse = Purse::new(newest);
    for _ in 0..repetitions {
        assert_eq!(
            purse.hold(black_box(ReserveRequest::Debit(price))),
            PurseDecision::Held
        );
        newest.sequence += 1;
        purse.settle(price, black_box(Some(newest)));
    }
}

/// Runs a workload in a process under callgrind; returns its instructions.
fn count_instructions(name: &str, repetitions: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .env(WORKLOAD_VARIABLE, format!("{name} {repetitions}"))
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}: {}\n{output_text}",
        output.status
    );
    let count = output_text
        .lines()
        .find_map(|line| line.split_once(RESULT_PREFIX));
    let (_, count) = count.unwrap_or_else(|| panic!("callgrind reported no count:\n{output_text}"));
    count.trim().parse().unwrap()
}

/// Runs the workload of a counted process.
fn run_workload(spec: &str) {
    let (name, repetitions) = spec.split_once(' ').unwrap();
    let (_, work) = WORKLOADS.iter().find(|(known, _)| *known == name).unwrap();
    work(repetitions.parse().unwrap());
}

/// Instructions per repetition of each workload.
fn measure() -> BTreeMap<String, f64> {
    let [few, many] = REPETITIONS;
    let measured = WORKLOADS.map(|(name, _)| {
        let difference = count_instructions(name, many) - count_instructions(name, few);
        (name.to_owned(), difference as f64 / (many - few) as f64)
    });
    measured.into()
}

fn committed_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../instructions.txt")
}

/// Counts in the committed file: a name and a count per line.
fn read_committed() -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(committed_path()).unwrap_or_default();
    let counts = text.lines().filter_map(|line| line.split_once(' '));
    let parsed = counts.map(|(name, count)| (name.to_owned(), count.trim().parse().unwrap()));
    parsed.collect()
}

fn write_committed(measured: &BTreeMap<String, f64>) {
    let lines = measured
        .iter()
        .map(|(name, count)| format!("{name} {count:.0}\n"));
    std::fs::write(committed_path(), lines.collect::<String>()).unwrap();
}

/// Prints each count beside the committed one; returns whether all are within the limit.
fn compare(measured: &BTreeMap<String, f64>, committed: &BTreeMap<String, f64>) -> bool {
    let mut within_limit = true;
    for (name, count) in measured {
        let Some(before) = committed.get(name) else {
            println!("{name:<14}{count:>10.0} instructions, no committed count");
            within_limit = false;
            continue;
        };
        let change = (count / before - 1.0) * 100.0;
        let is_within = change <= MAX_INCREASE;
        let verdict = if is_within { "" } else { ", above the limit" };
        println!("{name:<14}{count:>10.0} instructions, committed {before:>10.0}, {change:+.1} %{verdict}");
        within_limit &= is_within;
    }
    within_limit
}

fn has_valgrind() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn main() -> ExitCode {
    if let Ok(spec) = std::env::var(WORKLOAD_VARIABLE) {
        run_workload(&spec);
        return ExitCode::SUCCESS;
    }
    // Under `cargo test`: smoke test of each workload.
    if !std::env::args().any(|argument| argument == "--bench") {
        WORKLOADS.iter().for_each(|(_, work)| work(1));
        return ExitCode::SUCCESS;
    }
    if !has_valgrind() {
        println!("instruction counts were not compared: valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let measured = measure();
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        write_committed(&measured);
        return ExitCode::SUCCESS;
    }
    if compare(&measured, &read_committed()) {
        return ExitCode::SUCCESS;
    }
    eprintln!("an increase is either a mistake or deliberate: {REWRITE_VARIABLE}=1 writes the new counts");
    ExitCode::FAILURE
}

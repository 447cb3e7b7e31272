//! Instruction counts of the parts of an order, measured with valgrind's callgrind, independently of other load: the
//! same program yields the same count.
//!
//! Each workload runs with two repetition counts in separate processes; the difference cancels the cost of the
//! start. Under valgrind the CPU has no SHA-256 instructions, so signing and verifying cost more than usual.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    reason = "a bench reports to the terminal only and may panic"
)]

#[path = "parts/always_commits.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod always_commits;
#[path = "parts/bench_engine.rs"]
mod bench_engine;
#[path = "parts/growth.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod growth;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use tokio::task::LocalSet;
use vouchsafe_actors::wallet::purse::{Purse, PurseDecision, ReserveRequest};
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;
use vouchsafe_security::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::signature;
use vouchsafe_simulation::build::NOW;
use vouchsafe_wire::partner::orders::request;

use crate::always_commits::StockClaims;
use crate::bench_engine::{BenchEngine, CONCURRENT_ORDERS};

/// Environment variable of a counted process: workload and repetitions, for example `verify 1024`.
const WORKLOAD_VARIABLE: &str = "VOUCHSAFE_BENCH_WORK";

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
    let ApiKeyPair { api_secret, .. } = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    let timestamp = Timestamp::from_unix_s(NOW.unix_timestamp()).unwrap();
    for _ in 0..repetitions {
        let framed = CanonicalRequest::new(timestamp, order(black_box(BODY))).unwrap();
        black_box(signature::sign(&api_secret, timestamp, &framed));
    }
}

fn verify_requests(repetitions: u64) {
    let ApiKeyPair { api_secret, .. } = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    let timestamp = Timestamp::from_unix_s(NOW.unix_timestamp()).unwrap();
    let framed = CanonicalRequest::new(timestamp, order(BODY)).unwrap();
    let signature = signature::sign(&api_secret, timestamp, &framed);
    let presented = AuthHeaders {
        api_key: UniqueHeader::Missing,
        api_secret: UniqueHeader::Missing,
        timestamp: UniqueHeader::Single(timestamp.digits()),
        signature: UniqueHeader::Single(signature.as_bytes()),
        idempotency_key: UniqueHeader::Missing,
    };
    for _ in 0..repetitions {
        signature::verify(&api_secret, &presented, order(black_box(BODY)), NOW).unwrap();
    }
}

const fn order(body: &[u8]) -> SignedRequest<'_> {
    SignedRequest {
        method: "POST",
        path: "/api/v1/orders",
        body,
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
        .unwrap_or_else(|error| panic!("cannot run valgrind: {error}; install it"));
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
    let [few, many] = REPETITIONS;
    for (name, _) in WORKLOADS {
        let each =
            (count_instructions(name, many) - count_instructions(name, few)) as f64 / (many - few) as f64;
        println!("{name:<14}{each:>10.0} instructions");
    }
    ExitCode::SUCCESS
}

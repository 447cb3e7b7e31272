//! How many instructions does each part of an order take? Counted by valgrind's callgrind, so that a shared machine has no say
//! in it: the same program counts the same twice.
//!
//! Each work is done in two lengths by a process of its own, and the difference divided: what a start takes falls out. Under
//! valgrind a processor has no instructions for SHA-256, so what signs and verifies takes more than it does otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    reason = "a bench has nobody to tell but the terminal, and ends where it cannot go on"
)]

#[path = "parts/growth.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod growth;
#[path = "parts/world.rs"]
mod world;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use tokio::task::LocalSet;
use vouchsafe::access::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe::access::environment::Environment;
use vouchsafe::access::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe::access::headers::{UniqueHeader, AuthHeaders};
use vouchsafe::access::signature;
use vouchsafe::http::orders::request;
use vouchsafe_actors::domain::ledger::WalletState;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::testing::build::NOW;
use vouchsafe_actors::wallet::purse::{Purse, PurseDecision, ReserveRequest};

use crate::world::{TOGETHER, World};
use crate::yes_store::Claims;

/// Set for a process that is counted: the work and how often, such as `verify 1024`.
const WORK: &str = "VOUCHSAFE_BENCH_WORK";

/// How often, in the short run and in the long one.
const TIMES: [u64; 2] = [1_024, 3_072];

/// An ordinary order.
const BODY: &[u8] =
    br#"{"items":[{"product_id":"amzn-us","denomination":25,"quantity":1}],"currency":"USD","reference":"PO-17"}"#;

/// Where callgrind says what it counted.
const COUNTED: &str = "Collected : ";

/// Does something so often.
type Work = fn(u64);

/// What is counted, and what does it.
const WORKS: [(&str, Work); 5] = [
    ("place_order", placed),
    ("parse", parsed),
    ("sign", signed),
    ("verify", verified),
    ("purse", settled),
];

/// The whole flow, with a store that says yes; one partner and one SKU, 64 orders at once.
fn placed(times: u64) {
    let runtime = growth::runtime();
    let local = LocalSet::new();
    let world = local.block_on(&runtime, World::new(Claims::InFull, 1, 1));
    let rounds = times.div_ceil(TOGETHER as u64);
    local.block_on(&runtime, world.place(rounds, TOGETHER));
}

fn parsed(times: u64) {
    for _ in 0..times {
        black_box(request::parse(black_box(BODY)).unwrap());
    }
}

fn signed(times: u64) {
    let ApiKeyPair { api_secret, .. } = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    let timestamp = Timestamp::from_unix_s(NOW.unix_timestamp()).unwrap();
    for _ in 0..times {
        let framed = CanonicalRequest::new(timestamp, order(black_box(BODY))).unwrap();
        black_box(signature::sign(&api_secret, timestamp, &framed));
    }
}

fn verified(times: u64) {
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
    for _ in 0..times {
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

/// A hold that is settled with the receipt of its commit.
fn settled(times: u64) {
    let price = Amount::from_minor(2_500);
    let mut newest = WalletState {
        sequence: 1,
        balance: Amount::from_minor(i64::MAX),
    };
    let mut purse = Purse::new(newest);
    for _ in 0..times {
        assert_eq!(purse.hold(black_box(ReserveRequest::Debit(price))), PurseDecision::Held);
        newest.sequence += 1;
        purse.settle(price, black_box(Some(newest)));
    }
}

/// Instructions of a process that does this work so often.
fn counted(name: &str, times: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .env(WORK, format!("{name} {times}"))
        .output()
        .unwrap_or_else(|error| panic!("valgrind is missing, or cannot be run: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{said}", output.status);
    let count = said.lines().find_map(|line| line.split_once(COUNTED));
    let (_, count) = count.unwrap_or_else(|| panic!("callgrind counted nothing:\n{said}"));
    count.trim().parse().unwrap()
}

/// Does the work that a counted process is to do.
fn work(what: &str) {
    let (name, times) = what.split_once(' ').unwrap();
    let (_, work) = WORKS.iter().find(|(known, _)| *known == name).unwrap();
    work(times.parse().unwrap());
}

fn main() -> ExitCode {
    if let Ok(what) = std::env::var(WORK) {
        work(&what);
        return ExitCode::SUCCESS;
    }
    // As `cargo test` runs a bench: that each work can be done.
    if !std::env::args().any(|argument| argument == "--bench") {
        WORKS.iter().for_each(|(_, work)| work(1));
        return ExitCode::SUCCESS;
    }
    let [few, many] = TIMES;
    for (name, _) in WORKS {
        let each = (counted(name, many) - counted(name, few)) as f64 / (many - few) as f64;
        println!("{name:<14}{each:>10.0} instructions each");
    }
    ExitCode::SUCCESS
}

//! Conformance suite over the in-memory store, and a check that each guard's case fails without it.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use strum::VariantArray as _;
use vouchsafe_simulation::conformance::{self, CASES, GUARDS};
use vouchsafe_simulation::{Guard, MemoryDatabase, conformance_cases};

/// Each case is a test on paused time in one thread: waits take no time and runs are reproducible.
macro_rules! in_memory {
    ($($case:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                conformance::run_and_audit(stringify!($case), &MemoryDatabase::new()).await;
            }
        )*
    };
}
conformance_cases!(in_memory);

#[tokio::test(start_paused = true)]
async fn guard_removed_fails_its_case() {
    for (guard, case) in GUARDS {
        let subject = MemoryDatabase::without(guard.parse().unwrap());
        let run = AssertUnwindSafe(conformance::run(case, &subject)).catch_unwind();
        assert!(run.await.is_err(), "{case} passes without the guard {guard}");
    }
}

#[test]
fn guards_and_cases_match() {
    let removed: BTreeSet<Guard> = GUARDS.iter().map(|(name, _)| name.parse().unwrap()).collect();
    let missing: Vec<_> = Guard::VARIANTS
        .iter()
        .filter(|guard| !removed.contains(guard))
        .collect();
    assert!(missing.is_empty(), "no case tests {missing:?}");
    for (guard, case) in GUARDS {
        assert!(CASES.contains(case), "{guard}: there is no case {case}");
    }
}

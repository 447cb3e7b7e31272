//! Conformance suite over the in-memory store, and a check that each guard's case fails without it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
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

/// Panic message of the case on a store without the guard; `None` if it passes.
async fn failure_without_guard(guard: Guard, case: &str) -> Option<String> {
    let subject = MemoryDatabase::without(guard);
    let panic = AssertUnwindSafe(conformance::run(case, &subject))
        .catch_unwind()
        .await
        .err()?;
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
}

#[tokio::test(start_paused = true)]
async fn guard_removed_fails_its_case() {
    for (guard, case) in GUARDS {
        let removed = Guard::from_name(guard).unwrap();
        let failure = failure_without_guard(removed, case).await;
        assert!(failure.is_some(), "{case} passes without the guard {guard}");
    }
}

#[test]
fn guards_and_cases_match() {
    for guard in Guard::ALL {
        assert!(
            GUARDS.iter().any(|(name, _)| *name == guard.as_str()),
            "no case tests {guard:?}"
        );
    }
    for (guard, case) in GUARDS {
        assert!(
            Guard::from_name(guard).is_some() && CASES.contains(case),
            "{guard}: {case}"
        );
    }
}

//! The store in memory passes every case of the conformance suite; and each case can fail.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vouchsafe_actors::conformance_cases;
use vouchsafe_actors::testing::conformance::{self, CASES, GUARDS};
use vouchsafe_actors::testing::{Guard, MemoryDatabase};

/// On paused time in one thread: a wait costs nothing, and everything happens in the same order every time.
fn on_paused_time<T>(story: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing but memory");
    runtime.block_on(story)
}

macro_rules! in_memory {
    ($($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                on_paused_time(conformance::run_and_audit(stringify!($case), &MemoryDatabase::new()));
            }
        )*
    };
}
conformance_cases!(in_memory);

#[test]
fn without_a_guard_its_case_fails() {
    for (guard, case) in GUARDS {
        let removed = Guard::from_name(guard).expect("the store in memory has every guard");
        let passes =
            || on_paused_time(async { conformance::run(case, &MemoryDatabase::without(removed)).await });
        let outcome = catch_unwind(AssertUnwindSafe(passes));
        assert!(
            outcome.is_err(),
            "{case} does not notice that the guard {guard} is gone"
        );
    }
}

#[test]
fn every_guard_has_a_case_and_every_name_is_known() {
    for guard in Guard::ALL {
        assert!(
            GUARDS.iter().any(|(name, _)| *name == guard.as_str()),
            "no case watches {guard:?}"
        );
    }
    for (guard, case) in GUARDS {
        assert!(
            Guard::from_name(guard).is_some() && CASES.contains(case),
            "{guard}: {case}"
        );
    }
}

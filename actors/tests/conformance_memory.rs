//! The store in memory passes every case of the conformance suite; and each case can fail.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use vouchsafe_actors::conformance_cases;
use vouchsafe_actors::testing::conformance::{self, CASES, GUARDS};
use vouchsafe_actors::testing::{Guard, MemoryDatabase};

/// Each case is a test, on paused time in one thread: a wait costs nothing, and all happens in the same order every time.
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

/// What the case panics with on a store without the guard; `None` when it does not notice.
async fn complaint(guard: Guard, case: &str) -> Option<String> {
    let subject = MemoryDatabase::without(guard);
    let panic = AssertUnwindSafe(conformance::run(case, &subject))
        .catch_unwind()
        .await
        .err()?;
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
}

#[tokio::test(start_paused = true)]
async fn without_a_guard_its_case_fails() {
    for (guard, case) in GUARDS {
        let removed = Guard::from_name(guard).unwrap();
        let complaint = complaint(removed, case).await;
        assert!(
            complaint.is_some(),
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

//! The outbox in memory passes every case of its conformance suite.

use vouchsafe_actors::outbox_cases;
use vouchsafe_actors::testing::memory_outbox::MemoryOutbox;
use vouchsafe_actors::testing::outbox;

/// Each case is a test, on paused time.
macro_rules! in_memory {
    ($($case:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                outbox::run_and_audit(stringify!($case), &MemoryOutbox::default()).await;
            }
        )*
    };
}
outbox_cases!(in_memory);

//! Conformance suite over the in-memory outbox.

use vouchsafe_simulation::memory_outbox::MemoryOutbox;
use vouchsafe_simulation::{outbox, outbox_cases};

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

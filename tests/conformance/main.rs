//! The store over Postgres passes every case of the conformance suite; and each guard of its commit is missed when gone.
//!
//! Against a real server, each case in a database of its own. Faults happen on the wire: lanes reach the server through a
//! proxy that knows a commit when it sees one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it cannot go on"
)]

mod codes;
mod explained;
mod frames;
mod guards;
mod list_plans;
mod nodes;
mod outbox;
mod plans;
mod proxy;
mod races;
mod readings;
mod rows;
mod server;
mod storm;
mod subject;
mod violations;

use std::future::Future;

use vouchsafe_actors::conformance_cases;
use vouchsafe_actors::testing::conformance;

use crate::subject::PgSubject;

/// Starts what a test leaves running until its runtime ends: proxies, and cancellations.
#[allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends with the test"
)]
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(work));
}

/// Each case is a test of its own.
macro_rules! over_postgres {
    ($($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let subject = PgSubject::new().await;
                conformance::run_and_audit(stringify!($case), &subject).await;
                subject.remove().await;
            }
        )*
    };
}
conformance_cases!(over_postgres);

//! Conformance suite over Postgres, mutation tests of its guards, and query plan tests.
//!
//! Each case runs in a separate database of a real server. Lanes connect through a proxy that recognizes
//! commits and injects faults.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a failed unwrap is a failed test"
)]

mod codes;
mod contention;
mod due_purchases;
mod explain;
mod guards;
mod invariants;
mod key_purge;
mod list_plans;
mod lock_order;
mod lookups;
mod nodes;
mod open_snapshot;
mod order_totals;
mod outbox;
mod plans;
mod proxy;
mod races;
mod rows;
mod subject;
mod unanalysed_tables;
mod waiting_orders;

use vouchsafe_simulation::{conformance, conformance_cases};

use crate::subject::PgSubject;

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

//! Conformance suite of the delivery outbox: the cases that the in-memory outbox and Postgres must both pass.
//!
//! Time advances only when a case says so, in steps long enough that a slow machine makes no difference.

mod changes;
mod cursors;
mod failures;
mod lease_holder;
mod leases;
mod ordering;
mod replays;
mod subject;

use uuid::Uuid;
use vouchsafe_domain::ids::OrderId;

pub use changes::*;
pub use cursors::*;
pub use failures::*;
pub use leases::*;
pub use ordering::*;
pub use replays::*;
pub use subject::{EndpointStatus, OutboxSubject, Row, RowState};

/// Order id with this number.
#[must_use]
pub fn order_id(order: u32) -> OrderId {
    OrderId::from_uuid(Uuid::from_u128(order.into()))
}

/// Passes the names of all cases to a macro, so that each outbox runs each case as a separate test.
#[macro_export]
macro_rules! outbox_cases {
    ($each:ident) => {
        $each! {
            endpoint_is_leased_by_one_process
            idle_endpoint_is_not_leased
            flush_renews_the_lease
            expired_lease_goes_to_another_process
            released_lease_is_available
            restarted_node_takes_over_at_once
            lease_lost_in_crash_is_fenced
            lost_lease_reads_nothing
            events_are_read_by_number
            cursor_never_moves_back
            next_process_starts_at_cursor
            unsubscribed_kinds_are_skipped
            retried_flush_is_idempotent
            failed_delivery_waits_until_due
            attempts_are_logged
            failing_endpoint_retries_oldest_and_ignores_new_events
            recovery_makes_failed_deliveries_due
            delivery_expires_a_day_after_its_event
            gone_receiver_is_disabled
            next_delivery_of_order_is_due_after_previous_ends
            event_behind_waiting_row_is_marked
            row_among_unread_events_is_read_in_sequence
            replayed_event_is_due_at_once_for_a_day
            replay_precedes_waiting_deliveries_of_its_order
            replay_precedes_failing_attempt_of_its_order
            replays_of_an_order_are_sequential
            replay_wakes_failed_endpoint
            successful_attempt_does_not_end_later_replay
            failed_attempt_does_not_delay_later_replay
            first_attempt_does_not_end_replay
            retried_flush_does_not_end_later_replay
            replay_count_is_read_by_next_process
            disabled_endpoint_is_not_leased
            enabled_endpoint_gets_only_last_day
            rotation_revokes_lease_and_both_secrets_sign
            enabling_makes_failed_deliveries_due
            removed_endpoint_is_not_leased
        }
    };
}

macro_rules! by_name {
    ($($case:ident)*) => {
        /// Runs a case by name and checks the invariants of the rows that it leaves behind.
        ///
        /// # Panics
        /// If the case fails, does not exist, or an invariant is broken.
        pub async fn run_and_audit<S: OutboxSubject>(case: &str, subject: &S) {
            match case {
                $(stringify!($case) => Box::pin($case(subject)).await,)*
                _ => panic!("there is no case {case}"),
            }
            let violations = subject.violations().await;
            assert!(violations.is_empty(), "{violations:#?}");
        }
    };
}
outbox_cases!(by_name);

//! What deliveries take for granted of their outbox, as cases that every outbox must pass: in memory and Postgres alike.
//!
//! Rule: a case says one thing, in its name, and asks for no moment in time: time passes when the case says so, by an hour or
//! by a second that nobody can tell from a slow machine.

mod changes;
mod cursors;
mod failures;
mod leases;
mod replays;
mod sequence;
mod subject;
mod teller;

pub use changes::*;
pub use cursors::*;
pub use failures::*;
pub use leases::*;
pub use replays::*;
pub use sequence::*;
pub use subject::{OutboxSubject, Row, RowState, Standing};

/// Hands the names of all cases to a macro, so that each outbox runs each of them as a test of its own.
#[macro_export]
macro_rules! outbox_cases {
    ($each:ident) => {
        $each! {
            one_process_has_an_endpoint
            an_endpoint_with_nothing_to_do_is_not_taken
            a_lease_that_is_kept_stays
            a_lease_that_ran_out_is_anothers
            a_lease_that_was_given_back_is_anybodys
            a_later_start_takes_over_at_once
            a_taking_that_was_forgotten_is_nobodys
            who_lost_the_lease_reads_nothing
            events_are_read_in_the_order_of_their_numbers
            the_cursor_never_goes_back
            the_next_process_begins_at_the_cursor
            what_is_not_asked_for_is_passed_over
            a_turn_that_is_written_again_says_the_same
            what_failed_waits_for_its_time
            every_attempt_is_remembered
            while_it_fails_the_oldest_is_read_and_new_events_wake_nobody
            the_first_that_is_taken_frees_the_others
            a_delivery_ends_a_day_after_its_event
            a_receiver_that_is_gone_is_switched_off
            of_an_order_the_next_is_due_when_one_ended
            an_event_behind_one_that_waits_says_so
            a_row_among_unread_events_is_read_in_its_place
            a_replayed_event_is_due_at_once_with_a_day_of_its_own
            a_replay_goes_before_what_waits_of_its_order
            a_replay_goes_before_what_is_under_way_and_fails
            replays_of_an_order_are_due_one_after_the_other
            a_replay_wakes_an_endpoint_that_gave_everything_up
            an_attempt_that_is_taken_ends_no_later_replay
            an_attempt_that_fails_puts_off_no_later_replay
            what_is_sent_for_the_first_time_ends_no_replay
            a_turn_that_is_written_again_ends_no_later_replay
            a_replay_is_the_same_for_the_next_process
            an_endpoint_that_is_off_is_nobodys
            after_a_long_time_off_the_last_day_is_sent
            a_rotation_takes_the_lease_and_both_secrets_sign
            enabling_lets_what_failed_be_tried_at_once
            an_endpoint_that_was_removed_is_nobodys
        }
    };
}

macro_rules! by_name {
    ($($case:ident)*) => {
        /// Runs the case of this name, and checks that what it leaves behind is sound.
        ///
        /// # Panics
        /// When the outbox fails it or breaks an invariant, or when there is no such case.
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

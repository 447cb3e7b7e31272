//! What the engine takes for granted of its store, as cases that every store must pass: in memory and Postgres alike.
//!
//! Rule: a case says one thing, in its name. A guard of the commit statement is watched by at least one case, which
//! fails when the guard is taken away; [`GUARDS`] says which, and the list grows with the statement.

mod changes;
mod claims;
mod commits;
mod desk;
mod events;
mod keys;
mod lanes;
mod money;
mod stock;
mod subject;

pub use changes::*;
pub use claims::*;
pub use commits::*;
pub use events::*;
pub use keys::*;
pub use lanes::*;
pub use money::*;
pub use stock::*;
pub use subject::{CommitFault, OtherTransaction, Subject};

/// Hands the names of all cases to a macro, so that each store runs each of them as a test of its own.
#[macro_export]
macro_rules! conformance_cases {
    ($each:ident) => {
        $each! {
            a_delivered_order_reads_back_whole
            an_order_of_two_skus_reads_back_whole
            a_pending_order_reads_back_whole
            a_refusal_is_kept_under_its_key
            a_certain_abort_writes_nothing
            one_poisoned_record_fails_alone
            one_record_that_collides_fails_alone
            one_key_twice_in_a_batch_is_poison
            an_empty_batch_commits
            a_key_under_way_elsewhere_is_waited_for
            a_key_given_up_elsewhere_is_claimed
            a_known_key_is_answered_with_its_bytes
            a_record_sent_again_is_known
            a_key_is_known_for_its_day
            a_key_is_free_after_its_day
            a_key_kept_for_ever_has_no_end
            an_unknown_key_has_no_answer
            a_lost_answer_is_found_committed
            a_batch_that_never_arrived_is_not_written
            verdicts_are_read_as_they_were
            a_lane_that_was_taken_over_writes_nothing
            a_late_statement_writes_nothing
            a_late_statement_before_recovery_counts
            recovery_waits_for_a_running_batch
            recovery_finds_a_key_that_became_known
            a_reopened_lane_counts_anew
            a_superseded_node_cannot_recover
            two_lanes_commit_side_by_side
            a_debit_beyond_the_balance_is_stale
            the_balance_runs_through_a_batch
            a_top_up_pays_for_what_follows
            a_wallet_that_is_not_there_holds_nothing
            a_wallet_that_is_short_leaves_the_others
            a_wallet_that_is_missing_leaves_the_others
            a_top_up_opens_its_wallet
            ledger_numbers_have_no_gap
            receipts_are_the_newest
            money_spent_during_a_wait_is_gone
            a_wallet_opened_during_a_wait_is_credited
            a_chunk_of_another_node_is_stale
            a_chunk_of_an_earlier_start_is_stale
            a_voucher_of_an_order_is_stale
            a_void_voucher_is_stale
            a_void_under_way_is_waited_for
            a_voucher_twice_in_a_batch_is_sold_once
            a_stale_record_gives_back_its_key
            a_stale_record_gives_back_its_vouchers
            a_stale_record_fails_alone
            a_chunk_under_a_running_batch_stays
            a_chunk_taken_over_during_a_wait_is_stale
            a_voucher_sold_during_a_wait_is_stale
            two_lanes_sell_from_one_chunk
            what_expires_first_is_claimed_first
            asking_again_is_harmless
            own_chunks_come_back_at_once
            a_strangers_chunks_come_after_its_lease
            sold_stock_is_not_elsewhere
            an_emptied_chunk_is_not_handed_out
            what_expires_too_soon_is_left_out
            a_superseded_node_claims_nothing
            events_are_numbered_without_gap
            events_follow_the_order_of_the_batch
            partners_are_numbered_apart
            first_events_are_told_beside_others
            numbers_given_during_a_wait_are_taken
            an_order_moves_on_and_reads_back_whole
            a_part_leaves_the_rest_pending
            a_cancelled_order_gives_everything_back
            what_came_back_is_sold_again
            an_order_that_moved_meanwhile_is_stale
            a_step_is_taken_once
            a_voucher_that_was_read_does_not_come_back
            a_payout_reads_back_whole_and_leaves_the_wallet
            a_payout_that_is_refused_comes_back
            a_payout_is_decided_once
            what_was_bought_for_an_order_is_on_no_shelf
            what_was_bought_for_an_order_is_sold_to_it
            what_comes_back_while_somebody_waits_for_it_is_on_no_shelf
        }
    };
}

macro_rules! by_name {
    ($($case:ident)*) => {
        /// The names of all cases.
        pub const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs the case of this name.
        ///
        /// # Panics
        /// When the store fails it, or when there is no such case.
        pub async fn run<S: Subject>(case: &str, subject: &S) {
            match case {
                $(stringify!($case) => Box::pin($case(subject)).await,)*
                _ => panic!("there is no case {case}"),
            }
        }
    };
}
conformance_cases!(by_name);

/// Runs the case of this name, and checks that what it leaves behind is sound.
///
/// # Panics
/// When the store fails it, or breaks an invariant.
pub async fn run_and_audit<S: Subject>(case: &str, subject: &S) {
    run(case, subject).await;
    let violations = subject.violations().await;
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Each guard of the commit, and a case that fails without it.
///
/// `lane`: the generation in the lane's row. `lane-batch`: the batch's number in it. `incarnation`: recovery by the
/// newest start alone. `key`: a known key is not written over. `key-expiry`: an expired one is. `key-forever`: no end is
/// no expiry. `order-moved`: an order moves on from where it stood. `retrieved`: what was read does not come back.
/// `payout-pending`: a payout is decided once. `balance`: no wallet below zero. `running-balance`: the records before it count. `chunk-node` and
/// `chunk-incarnation`: whose the chunk is. `chunk-lock`: it stays so until the end (`FOR SHARE`). `voucher`: its primary
/// key. `give-back-key` and `give-back-vouchers`: what a stale record had claimed.
pub const GUARDS: &[(&str, &str)] = &[
    ("lane", "a_lane_that_was_taken_over_writes_nothing"),
    ("lane", "a_late_statement_writes_nothing"),
    ("lane-batch", "a_lost_answer_is_found_committed"),
    ("incarnation", "a_superseded_node_cannot_recover"),
    ("key", "a_known_key_is_answered_with_its_bytes"),
    ("key-expiry", "a_key_is_free_after_its_day"),
    ("key-forever", "a_key_kept_for_ever_has_no_end"),
    ("order-moved", "an_order_that_moved_meanwhile_is_stale"),
    ("retrieved", "a_voucher_that_was_read_does_not_come_back"),
    ("payout-pending", "a_payout_is_decided_once"),
    ("balance", "a_debit_beyond_the_balance_is_stale"),
    ("running-balance", "the_balance_runs_through_a_batch"),
    ("chunk-node", "a_chunk_of_another_node_is_stale"),
    ("chunk-node", "a_chunk_taken_over_during_a_wait_is_stale"),
    ("chunk-incarnation", "a_chunk_of_an_earlier_start_is_stale"),
    ("chunk-lock", "a_chunk_under_a_running_batch_stays"),
    ("voucher", "a_voucher_of_an_order_is_stale"),
    ("voucher", "a_void_voucher_is_stale"),
    ("give-back-key", "a_stale_record_gives_back_its_key"),
    ("give-back-vouchers", "a_stale_record_gives_back_its_vouchers"),
];

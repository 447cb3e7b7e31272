//! Conformance suite of the store port: the cases that the in-memory store and Postgres must both pass.
//!
//! For each guard of the commit statement at least one case fails when the guard is removed; [`GUARDS`] lists them.

mod changes;
mod claims;
mod commits;
mod events;
mod fixture;
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

/// Passes the names of all cases to a macro, so that each store runs each case as a separate test.
#[macro_export]
macro_rules! conformance_cases {
    ($each:ident) => {
        $each! {
            delivered_order_reads_back_complete
            order_of_two_skus_reads_back_complete
            pending_order_reads_back_complete
            refusal_is_stored_under_its_key
            orders_of_partner_are_counted_up_to_limit
            aborted_batch_writes_nothing
            poisoned_record_fails_alone
            contended_record_fails_alone
            duplicate_key_in_batch_is_poisoned
            empty_batch_commits
            key_of_open_transaction_blocks_commit
            key_rolled_back_elsewhere_is_claimed
            known_key_returns_its_stored_bytes
            record_sent_twice_is_known
            key_is_known_before_expiry
            key_is_free_after_expiry
            key_without_expiry_never_expires
            unknown_key_has_no_response
            lost_response_is_recovered_as_committed
            unsent_batch_is_recovered_as_not_written
            verdicts_are_recovered_by_reads
            reopened_lane_fences_its_old_handle
            late_statement_after_recovery_writes_nothing
            late_statement_before_recovery_is_committed
            recovery_waits_for_running_batch
            recovery_finds_key_known_meanwhile
            reopened_lane_restarts_batch_numbers
            superseded_node_cannot_recover
            lanes_do_not_block_each_other
            debit_beyond_balance_is_stale
            running_balance_applies_within_batch
            top_up_covers_later_debit_in_batch
            missing_wallet_has_insufficient_funds
            uncovered_debit_does_not_affect_other_wallets
            missing_wallet_does_not_affect_other_wallets
            top_up_creates_its_wallet
            ledger_numbers_are_consecutive
            receipts_are_at_least_as_new_as_their_entry
            money_spent_while_blocked_is_not_available
            wallet_created_while_blocked_is_credited
            chunk_of_another_node_is_stale
            chunk_of_earlier_incarnation_is_stale
            allocated_voucher_is_stale
            void_voucher_is_stale
            void_in_open_transaction_blocks_commit
            voucher_twice_in_batch_is_sold_once
            stale_record_releases_its_key
            stale_record_releases_its_vouchers
            stale_record_fails_alone
            chunk_locked_by_running_batch_keeps_its_owner
            chunk_taken_over_while_blocked_is_stale
            voucher_sold_while_blocked_is_stale
            two_lanes_sell_from_one_chunk
            earliest_expiry_is_claimed_first
            repeated_claim_is_harmless
            own_chunks_are_reclaimed_at_once
            chunks_of_another_node_are_claimed_after_its_lease
            sold_stock_is_not_reported_as_unclaimable
            empty_chunk_is_not_claimed
            stock_expiring_too_soon_is_left_out
            superseded_node_claims_nothing
            events_are_numbered_consecutively
            events_follow_batch_sequence
            event_numbers_are_per_partner
            first_events_are_written_with_others_in_one_batch
            numbers_assigned_while_blocked_are_not_reused
            order_change_reads_back_complete
            partial_delivery_leaves_remainder_pending
            cancelled_order_returns_money_and_vouchers
            returned_voucher_is_sold_again
            change_of_outdated_order_is_stale
            change_key_is_executed_once
            retrieved_voucher_is_not_returned
            payout_reads_back_complete_and_debits_wallet
            rejected_payout_is_credited_back
            payout_is_decided_once
            reserved_stock_is_not_claimable
            reserved_stock_is_sold_to_its_order
            returned_stock_is_reserved_for_waiting_order
        }
    };
}

macro_rules! by_name {
    ($($case:ident)*) => {
        /// Names of all cases.
        pub const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs a case by name.
        ///
        /// # Panics
        /// If the case fails or does not exist.
        pub async fn run<S: Subject>(case: &str, subject: &S) {
            match case {
                $(stringify!($case) => Box::pin($case(subject)).await,)*
                _ => panic!("there is no case {case}"),
            }
        }
    };
}
conformance_cases!(by_name);

/// Runs a case by name and checks the invariants of the rows that it leaves behind.
///
/// # Panics
/// If the case fails or an invariant is broken.
pub async fn run_and_audit<S: Subject>(case: &str, subject: &S) {
    run(case, subject).await;
    let violations = subject.violations().await;
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Guards of the commit, each with a case that fails without it.
///
/// | Guard | Verifies |
/// |---|---|
/// | `lane` | the lane's generation |
/// | `lane-batch` | that the batch number is written to the lane's row |
/// | `incarnation` | that only the newest start of a node recovers its lanes |
/// | `key`, `key-expiry`, `key-forever` | that a known key is not overwritten, an expired one is, and one without expiry never expires |
/// | `order-moved` | that the order is in the state on which the change was decided |
/// | `retrieved` | that a retrieved voucher does not return to stock |
/// | `payout-pending` | that a payout is decided once |
/// | `balance`, `running-balance` | that no wallet goes below zero, counting the records before it in the batch |
/// | `chunk-node`, `chunk-incarnation` | the owner of the chunk |
/// | `chunk-lock` | that the owner does not change before the commit (`FOR SHARE`) |
/// | `voucher` | that a voucher has one holder (primary key) |
/// | `give-back-key`, `give-back-vouchers` | that a stale record releases its key and its vouchers |
pub const GUARDS: &[(&str, &str)] = &[
    ("lane", "reopened_lane_fences_its_old_handle"),
    ("lane", "late_statement_after_recovery_writes_nothing"),
    ("lane-batch", "lost_response_is_recovered_as_committed"),
    ("incarnation", "superseded_node_cannot_recover"),
    ("key", "known_key_returns_its_stored_bytes"),
    ("key-expiry", "key_is_free_after_expiry"),
    ("key-forever", "key_without_expiry_never_expires"),
    ("order-moved", "change_of_outdated_order_is_stale"),
    ("retrieved", "retrieved_voucher_is_not_returned"),
    ("payout-pending", "payout_is_decided_once"),
    ("balance", "debit_beyond_balance_is_stale"),
    ("running-balance", "running_balance_applies_within_batch"),
    ("chunk-node", "chunk_of_another_node_is_stale"),
    ("chunk-node", "chunk_taken_over_while_blocked_is_stale"),
    ("chunk-incarnation", "chunk_of_earlier_incarnation_is_stale"),
    ("chunk-lock", "chunk_locked_by_running_batch_keeps_its_owner"),
    ("voucher", "allocated_voucher_is_stale"),
    ("voucher", "void_voucher_is_stale"),
    ("give-back-key", "stale_record_releases_its_key"),
    ("give-back-vouchers", "stale_record_releases_its_vouchers"),
];

//! Conformance suite of the store and the delivery outbox: the cases that the in-memory store and Postgres
//! must both pass.
//!
//! For each guard of a commit or a flush at least one case fails when the guard is removed; [`GUARDS`] lists
//! them.

mod caps;
mod changes;
mod claims;
mod commits;
mod deliveries;
mod events;
mod fixture;
mod keys;
mod lane_client;
mod lanes;
mod money;
mod stock;
mod subject;

pub use caps::*;
pub use changes::*;
pub use claims::*;
pub use commits::*;
pub use deliveries::*;
pub use events::*;
pub use fixture::*;
pub use keys::*;
pub use lane_client::LaneClient;
pub use lanes::*;
pub use money::*;
pub use stock::*;
pub use subject::{CaseFixture, CommitFault, EndpointChange, IsAudited, OtherTransaction, Subject};

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
            record_beyond_a_cap_is_stale
            caps_apply_within_batch
            stale_record_does_not_count_within_batch
            vouchers_of_order_beyond_a_cap_are_free
            pending_orders_are_counted_up_to_the_cap
            order_rate_counts_orders_of_commits_without_caps
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
            node_alone_claims_small_chunks_together
            repeated_claim_is_harmless
            own_chunks_are_reclaimed_at_once
            chunks_of_another_node_are_claimed_after_its_lease
            chunk_of_ended_incarnation_is_claimed_by_another_node
            lease_renewed_by_a_fast_clock_has_ended
            demanded_stock_is_released_by_its_owner
            stock_that_is_not_released_is_taken_over
            oldest_demand_is_served_first
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
            endpoint_is_leased_by_one_process
            idle_endpoint_is_not_leased
            flush_renews_the_lease
            expired_lease_goes_to_another_process
            released_lease_is_available
            restarted_node_takes_over_at_once
            lease_lost_in_crash_is_fenced
            cursor_beyond_the_feed_is_not_written
            lease_of_a_lost_history_is_fenced
            lost_lease_reads_nothing
            events_are_read_by_number
            cursor_never_moves_back
            next_process_starts_at_cursor
            unsubscribed_kinds_are_skipped
            retried_flush_is_idempotent
            failed_delivery_waits_until_due
            attempts_are_logged
            failing_endpoint_retries_oldest_and_ignores_new_events
            failing_endpoint_reads_ending_windows_first
            requested_retry_makes_everything_due
            requested_retry_of_a_working_endpoint_keeps_its_lease
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
        /// Names of all cases.
        pub const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs a case by name; returns the invariants that hold after it.
        async fn run_case<S: Subject>(case: &str, subject: &S) -> IsAudited {
            match case {
                $(stringify!($case) => Box::pin(run_with(subject, $case::<S>)).await,)*
                _ => panic!("there is no case {case}"),
            }
        }
    };
}
conformance_cases!(by_name);

async fn run_with<'s, S: Subject, F: CaseFixture<'s, S>>(
    subject: &'s S,
    case: impl AsyncFnOnce(F),
) -> IsAudited {
    let fixture = F::create(subject).await;
    let is_audited = fixture.is_audited();
    case(fixture).await;
    is_audited
}

/// Runs a case by name.
///
/// # Panics
/// If the case fails or does not exist.
pub async fn run<S: Subject>(case: &str, subject: &S) {
    run_case(case, subject).await;
}

/// Runs a case by name and checks the invariants of the rows that it leaves behind.
///
/// # Panics
/// If the case fails or an invariant is broken.
pub async fn run_and_audit<S: Subject>(case: &str, subject: &S) {
    let is_audited = run_case(case, subject).await;
    let mut violations = subject.violations().await;
    violations.retain(|violation| is_audited(violation));
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Guards of commits and flushes, each with a case that fails without it.
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
/// | `cap`, `running-cap` | that no cap of a partner is exceeded, counting the records before it in the batch |
/// | `chunk-node`, `chunk-incarnation` | the owner of the chunk |
/// | `chunk-lock` | that the owner does not change before the commit (`FOR SHARE`) |
/// | `voucher` | that a voucher has one holder (primary key) |
/// | `give-back-key`, `give-back-vouchers` | that a stale record releases its key and its vouchers |
/// | `lease`, `lease-owner` | that a flush belongs to the newest lease, and to its holder |
/// | `delivery-history`, `lost-events` | that a flush writes nothing about events that the database has lost |
/// | `replays` | that a delivery was not replayed since it was read |
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
    ("cap", "record_beyond_a_cap_is_stale"),
    ("running-cap", "caps_apply_within_batch"),
    ("chunk-node", "chunk_of_another_node_is_stale"),
    ("chunk-node", "chunk_taken_over_while_blocked_is_stale"),
    ("chunk-incarnation", "chunk_of_earlier_incarnation_is_stale"),
    ("chunk-lock", "chunk_locked_by_running_batch_keeps_its_owner"),
    ("voucher", "allocated_voucher_is_stale"),
    ("voucher", "void_voucher_is_stale"),
    ("give-back-key", "stale_record_releases_its_key"),
    ("give-back-vouchers", "stale_record_releases_its_vouchers"),
    ("give-back-vouchers", "vouchers_of_order_beyond_a_cap_are_free"),
    ("lease", "disabled_endpoint_is_not_leased"),
    ("lease-owner", "lease_lost_in_crash_is_fenced"),
    ("delivery-history", "lease_of_a_lost_history_is_fenced"),
    ("lost-events", "cursor_beyond_the_feed_is_not_written"),
    ("replays", "successful_attempt_does_not_end_later_replay"),
];

//! Mutation tests of the guards of commits and flushes: each guard is removed, and its conformance cases must
//! fail.
//!
//! A comment marks the guard in the SQL text, and the test replaces the condition on that line: in
//! `commit_batch_v2` by replacing the installed function, in other statements by the proxy. [`GUARDS`] apply
//! to every store; the others are specific to Postgres.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use sqlx::{AssertSqlSafe, Executor};
use vouchsafe_simulation::conformance::{self, CASES, GUARDS};
use vouchsafe_test_harness::WAIT_TIMEOUT;

use crate::proxy::Edit;
use crate::races;
use crate::subject::PgSubject;

/// Guards of `commit_batch_v2`: name, text on the marked line, replacement.
const GUARD_EDITS: &[(&str, &str, &str)] = &[
    ("lane", "AND l.generation = p_generation", ""),
    ("lane-batch", "p_batch", "l.batch"),
    ("key", "k.expires_at <= v_now", "true"),
    ("key-expiry", "k.expires_at <= v_now", "false"),
    ("key-forever", "r_forever[r.n]", "false"),
    (
        "balance",
        "m_amount[v_n] < 0 AND v_left[v_wallet] + m_amount[v_n] < 0",
        "false",
    ),
    (
        "running-balance",
        "v_left[v_wallet] := v_left[v_wallet] + m_amount[v_n]",
        "NULL",
    ),
    (
        "cap",
        "v_added_to[v_place[v_check]] + v_adds[v_check] > v_room[v_check]",
        "false",
    ),
    (
        "running-cap",
        "v_added_to[v_place[v_check]] := v_added_to[v_place[v_check]] + v_adds[v_check];",
        "NULL;",
    ),
    ("chunk-lock", "FOR SHARE", ""),
    ("chunk-node", "AND c.node = p_node", ""),
    ("chunk-incarnation", "AND c.incarnation = p_incarnation", ""),
    (
        "chunk-cleared",
        "AND c.cleared_epoch = COALESCE((SELECT q.quarantine_epoch FROM continuity AS q WHERE q.only_row), 0)",
        "",
    ),
    ("voucher", "v_verdict[v_record] := 3", "NULL"),
    ("wallet-lock", "FOR UPDATE", ""),
    (
        "wallet-missing",
        "cardinality(v_left) IS DISTINCT FROM cardinality(w_amount)",
        "false",
    ),
    (
        "chunk-range",
        "a_stock[a.n] BETWEEN v_first[a_chunk[a.n]] AND v_last[a_chunk[a.n]]",
        "v_first[a_chunk[a.n]] IS NOT NULL",
    ),
    ("give-back-own", "AND x.voucher_id = a.voucher_id", ""),
    ("give-back-vouchers", "v_verdict[a.record] IN (2, 3, 5)", "false"),
    ("give-back-key", "v_verdict[r.record] IN (2, 3, 4, 5)", "false"),
    ("order-moved", "AND o.last_sequence = v_row.since", ""),
    ("payout-pending", "AND y.status = 'PENDING'", ""),
    ("retrieved", "AND a.first_retrieved_at IS NULL", ""),
    ("continuity-lock", "FOR SHARE", ""),
    ("return-unread", "AND a.first_retrieved_at IS NULL", ""),
    ("return-once", "AND a.returned_at IS NULL", ""),
];

/// Guards of other statements, each with an edit: of those that recover and open a lane, of the quarantine
/// and the comparison with sold vouchers, and of the flush of deliveries.
const STATEMENT_EDITS: [(&str, Edit); 9] = [
    (
        "incarnation",
        (
            "n.incarnation = $3 /* guard: incarnation */",
            "$3::bigint IS NOT NULL",
        ),
    ),
    (
        "incarnation",
        (
            "n.incarnation = $2 /* guard: incarnation */",
            "$2::bigint IS NOT NULL",
        ),
    ),
    (
        "compared-order",
        ("FOR NO KEY UPDATE OF o /* guard: compared-order */", ""),
    ),
    (
        "running-commits",
        (
            "LOCK TABLE lanes IN SHARE MODE /* guard: running-commits */",
            "SELECT",
        ),
    ),
    ("lease", ("p.lease = $2", "$2::bigint IS NOT NULL")),
    ("lease-owner", ("p.leased_by = $12", "$12::text IS NOT NULL")),
    (
        "delivery-history",
        (
            "database_history_v1() = $15 /* guard: delivery-history */",
            "$15::uuid IS NOT NULL",
        ),
    ),
    (
        "lost-events",
        (
            "AND $3 <= COALESCE((SELECT f.last_number FROM feeds AS f WHERE f.partner_id = p.partner_id), \
             0) /* guard: lost-events */",
            "",
        ),
    ),
    ("replays", ("d.replays = EXCLUDED.replays", "true")),
];

/// Guards with the cases that must fail without them; each pair is a test.
macro_rules! watched {
    ($($module:ident $guard:literal $($case:ident)+;)*) => {
        $(
            mod $module {
                $(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $case() {
                        super::assert_case_fails($guard, stringify!($case)).await;
                    }
                )+
            }
        )*
        const WATCHED: &[(&str, &str)] = &[$($(($guard, stringify!($case)),)+)*];
    };
}

watched! {
    without_lane "lane" reopened_lane_fences_its_old_handle late_statement_after_recovery_writes_nothing;
    without_lane_batch "lane-batch" lost_response_is_recovered_as_committed;
    without_incarnation "incarnation" superseded_node_cannot_recover;
    without_key "key" known_key_returns_its_stored_bytes;
    without_key_expiry "key-expiry" key_is_free_after_expiry;
    without_key_forever "key-forever" key_without_expiry_never_expires;
    without_order_moved "order-moved" change_of_outdated_order_is_stale;
    without_retrieved "retrieved" retrieved_voucher_is_not_returned;
    without_continuity_lock "continuity-lock" voucher_returned_during_release_is_for_sale;
    without_return_unread "return-unread" voucher_read_beside_its_cancellation_is_not_returned;
    without_return_once "return-once" voucher_in_two_returns_of_a_batch_is_returned_once;
    without_compared_order "compared-order" comparison_waits_for_cancellation_and_withdraws_returned_voucher;
    without_payout_pending "payout-pending" payout_is_decided_once;
    without_balance "balance" debit_beyond_balance_is_stale;
    without_running_balance "running-balance" running_balance_applies_within_batch;
    without_cap "cap" record_beyond_a_cap_is_stale;
    without_running_cap "running-cap" caps_apply_within_batch;
    without_chunk_node "chunk-node" chunk_of_another_node_is_stale chunk_taken_over_while_blocked_is_stale;
    without_chunk_incarnation "chunk-incarnation" chunk_of_earlier_incarnation_is_stale;
    without_chunk_lock "chunk-lock" chunk_locked_by_running_batch_keeps_its_owner;
    without_chunk_cleared "chunk-cleared" voucher_of_quarantined_chunk_is_stale;
    without_running_commits "running-commits" quarantine_waits_for_running_commit;
    without_voucher "voucher" allocated_voucher_is_stale void_voucher_is_stale;
    without_give_back_key "give-back-key" stale_record_releases_its_key;
    without_give_back_vouchers "give-back-vouchers" stale_record_releases_its_vouchers vouchers_of_order_beyond_a_cap_are_free;
    without_give_back_own "give-back-own" allocated_voucher_is_stale;
    without_wallet_missing "wallet-missing" missing_wallet_does_not_affect_other_wallets;
    without_wallet_lock "wallet-lock" wallet_is_locked_before_it_is_read;
    without_chunk_lock_alone "chunk-lock" chunk_is_reread_after_lock_wait;
    without_lease "lease" disabled_endpoint_is_not_leased;
    without_lease_owner "lease-owner" lease_lost_in_crash_is_fenced;
    without_delivery_history "delivery-history" lease_of_a_lost_history_is_fenced;
    without_lost_events "lost-events" cursor_beyond_the_feed_is_not_written;
    without_replays "replays" successful_attempt_does_not_end_later_replay;
    without_chunk_range "chunk-range" voucher_of_another_chunk_is_stale;
}

async fn assert_case_fails(guard: &str, case: &str) {
    let edits = STATEMENT_EDITS.iter().filter(|(name, _)| *name == guard);
    for (_, edit) in edits.clone() {
        let subject = PgSubject::with_edit(Some(*edit)).await;
        assert_fails(guard, case, subject).await;
    }
    if edits.count() == 0 {
        let subject = PgSubject::new().await;
        let installed = commit_function(&subject).await;
        install(&subject, &commit_function_without(guard, &installed)).await;
        assert_fails(guard, case, subject).await;
    }
}

async fn run(case: &str, subject: &PgSubject) {
    if races::CASES.contains(&case) {
        races::run(case, subject).await;
    } else {
        conformance::run(case, subject).await;
    }
}

async fn assert_fails(guard: &str, case: &str, subject: PgSubject) {
    let run = AssertUnwindSafe(run(case, &subject)).catch_unwind();
    let outcome = tokio::time::timeout(WAIT_TIMEOUT, run).await;
    let failure = outcome.expect("the case ends without its guard");
    assert!(failure.is_err(), "{case} passes without the guard {guard}");
    subject.remove().await;
}

/// The installed commit function, as a statement that replaces it.
async fn commit_function(subject: &PgSubject) -> String {
    sqlx::query_scalar("SELECT pg_get_functiondef('commit_batch_v2'::regproc)")
        .fetch_one(subject.pool())
        .await
        .unwrap()
}

/// The commit function without one guard.
fn commit_function_without(guard: &str, installed: &str) -> String {
    let (_, with, without) = GUARD_EDITS.iter().find(|(name, _, _)| *name == guard).unwrap();
    let changed = installed.lines().fold(String::new(), |text, line| {
        let line = if guard_marks(line).any(|mark| mark == guard) {
            assert!(
                line.contains(with),
                "the marked line of guard {guard} does not contain its condition"
            );
            line.replace(with, without)
        } else {
            line.to_owned()
        };
        text + &line + "\n"
    });
    assert_ne!(changed, installed, "guard {guard} is not marked");
    changed
}

/// Guards marked on this line.
fn guard_marks(line: &str) -> impl Iterator<Item = &str> {
    let names = line
        .split_once("/* guard: ")
        .and_then(|(_, rest)| rest.split_once(" */"));
    names.into_iter().flat_map(|(names, _)| names.split(", "))
}

async fn install(subject: &PgSubject, function: &str) {
    let function = AssertSqlSafe(function.to_owned());
    subject.pool().execute(function).await.unwrap();
}

/// Control: the cases pass with the function replaced by an unmodified copy.
#[tokio::test(flavor = "multi_thread")]
async fn cases_pass_with_every_guard() {
    for (_, case) in GUARDS {
        let subject = PgSubject::new().await;
        let installed = commit_function(&subject).await;
        install(&subject, &installed).await;
        conformance::run_and_audit(case, &subject).await;
        subject.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_are_marked_and_tested() {
    for guard in GUARDS {
        assert!(WATCHED.contains(guard), "no test removes {guard:?}");
    }
    for (guard, case) in WATCHED {
        assert!(
            CASES.contains(case) || races::CASES.contains(case),
            "{guard}: there is no case {case}"
        );
    }
    let subject = PgSubject::new().await;
    let installed = commit_function(&subject).await;
    subject.remove().await;
    let marked: Vec<_> = installed
        .lines()
        .flat_map(guard_marks)
        .map(str::to_owned)
        .collect();
    for mark in &marked {
        assert!(
            WATCHED.iter().any(|(guard, _)| guard == mark),
            "no test removes {mark}"
        );
    }
    for (guard, _, _) in GUARD_EDITS {
        assert!(marked.iter().any(|mark| mark == guard), "{guard} is not marked");
    }
}

//! Each guard of the commit is taken out, and the case that watches it turns red.
//!
//! A guard is a mark in the text of a statement. What stands on the marked line is replaced, nothing else: in
//! `commit_batch` by making the function anew, in the lane's own statements on their way to the server. The guards of
//! [`GUARDS`] are those of every store; five more are Postgres' own.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use sqlx::{AssertSqlSafe, Executor};
use vouchsafe::store::schema::COMMIT_BATCH;
use vouchsafe_actors::testing::conformance::{self, CASES, GUARDS};

use crate::proxy::Edit;
use crate::races;
use crate::subject::PgSubject;

/// For a case that would wait for ever without its guard.
const PATIENCE: Duration = Duration::from_secs(30);

/// What stands on the marked line of each guard of `commit_batch`, and what stands there without it.
const MARKED: &[(&str, &str, &str)] = &[
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
    ("chunk-lock", "FOR SHARE", ""),
    ("chunk-node", "AND c.node = p_node", ""),
    ("chunk-incarnation", "AND c.incarnation = p_incarnation", ""),
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
    ("give-back-vouchers", "v_verdict[a.record] IN (2, 3)", "false"),
    ("give-back-key", "v_verdict[r.record] IN (2, 3, 4)", "false"),
    ("order-moved", "AND o.last_sequence = v_row.since", ""),
    ("payout-pending", "AND y.status = 'PENDING'", ""),
    ("retrieved", "AND a.first_retrieved_at IS NULL", ""),
];

/// The guard of the statements by which a lane is recovered and opened.
const INCARNATION: [Edit; 2] = [
    (
        "n.incarnation = $3 /* guard: incarnation */",
        "$3::bigint IS NOT NULL",
    ),
    (
        "n.incarnation = $2 /* guard: incarnation */",
        "$2::bigint IS NOT NULL",
    ),
];

/// Each guard with the cases that watch it, each a test of its own.
macro_rules! watched {
    ($($module:ident $guard:literal $($case:ident)+;)*) => {
        $(
            mod $module {
                $(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $case() {
                        super::turns_red($guard, stringify!($case)).await;
                    }
                )+
            }
        )*
        const WATCHED: &[(&str, &str)] = &[$($(($guard, stringify!($case)),)+)*];
    };
}

watched! {
    without_lane "lane" a_lane_that_was_taken_over_writes_nothing a_late_statement_writes_nothing;
    without_lane_batch "lane-batch" a_lost_answer_is_found_committed;
    without_incarnation "incarnation" a_superseded_node_cannot_recover;
    without_key "key" a_known_key_is_answered_with_its_bytes;
    without_key_expiry "key-expiry" a_key_is_free_after_its_day;
    without_key_forever "key-forever" a_key_kept_for_ever_has_no_end;
    without_order_moved "order-moved" an_order_that_moved_meanwhile_is_stale;
    without_retrieved "retrieved" a_voucher_that_was_read_does_not_come_back;
    without_payout_pending "payout-pending" a_payout_is_decided_once;
    without_balance "balance" a_debit_beyond_the_balance_is_stale;
    without_running_balance "running-balance" the_balance_runs_through_a_batch;
    without_chunk_node "chunk-node" a_chunk_of_another_node_is_stale a_chunk_taken_over_during_a_wait_is_stale;
    without_chunk_incarnation "chunk-incarnation" a_chunk_of_an_earlier_start_is_stale;
    without_chunk_lock "chunk-lock" a_chunk_under_a_running_batch_stays;
    without_voucher "voucher" a_voucher_of_an_order_is_stale a_void_voucher_is_stale;
    without_give_back_key "give-back-key" a_stale_record_gives_back_its_key;
    without_give_back_vouchers "give-back-vouchers" a_stale_record_gives_back_its_vouchers;
    without_give_back_own "give-back-own" a_voucher_of_an_order_is_stale;
    without_wallet_missing "wallet-missing" a_wallet_that_is_missing_leaves_the_others;
    without_wallet_lock "wallet-lock" a_wallet_is_locked_before_it_is_read;
    without_chunk_lock_alone "chunk-lock" a_chunk_is_read_as_it_is_after_the_wait_for_it;
    without_chunk_range "chunk-range" a_voucher_of_another_chunk_is_stale;
}

async fn turns_red(guard: &str, case: &str) {
    if guard == "incarnation" {
        for edit in INCARNATION {
            let subject = PgSubject::with(Some(edit)).await;
            must_fail(guard, case, subject).await;
        }
    } else {
        let subject = PgSubject::new().await;
        install(&subject, &without(guard)).await;
        must_fail(guard, case, subject).await;
    }
}

async fn run(case: &str, subject: &PgSubject) {
    if races::CASES.contains(&case) {
        races::run(case, subject).await;
    } else {
        conformance::run(case, subject).await;
    }
}

async fn must_fail(guard: &str, case: &str, subject: PgSubject) {
    let run = AssertUnwindSafe(run(case, &subject)).catch_unwind();
    let outcome = tokio::time::timeout(PATIENCE, run).await;
    let complaint = outcome.expect("without its guard the case ends");
    assert!(
        complaint.is_err(),
        "{case} does not notice that the guard {guard} is gone"
    );
    subject.remove().await;
}

/// The function as the service makes it.
fn function() -> String {
    COMMIT_BATCH.to_owned()
}

/// The same without one guard.
fn without(guard: &str) -> String {
    let (_, with, without) = MARKED.iter().find(|(name, _, _)| *name == guard).unwrap();
    let changed = function().lines().fold(String::new(), |text, line| {
        let line = if marks(line).any(|mark| mark == guard) {
            assert!(line.contains(with), "the guard {guard} is marked on another line");
            line.replace(with, without)
        } else {
            line.to_owned()
        };
        text + &line + "\n"
    });
    assert_ne!(changed, function(), "the guard {guard} is marked nowhere");
    changed
}

/// The guards that this line is marked with.
fn marks(line: &str) -> impl Iterator<Item = &str> {
    let names = line
        .split_once("/* guard: ")
        .and_then(|(_, rest)| rest.split_once(" */"));
    names.into_iter().flat_map(|(names, _)| names.split(", "))
}

async fn install(subject: &PgSubject, function: &str) {
    let function = AssertSqlSafe(function.to_owned());
    subject.pool().execute(function).await.unwrap();
}

/// A function that was made anew, with all guards, is as good as the service's.
#[tokio::test(flavor = "multi_thread")]
async fn with_every_guard_the_cases_pass() {
    for (_, case) in GUARDS {
        let subject = PgSubject::new().await;
        install(&subject, &function()).await;
        conformance::run_and_audit(case, &subject).await;
        subject.remove().await;
    }
}

#[test]
fn every_guard_is_marked_and_watched() {
    for guard in GUARDS {
        assert!(WATCHED.contains(guard), "no test takes out {guard:?}");
    }
    for (guard, case) in WATCHED {
        assert!(
            CASES.contains(case) || races::CASES.contains(case),
            "{guard}: there is no case {case}"
        );
    }
    let marked: Vec<_> = function().lines().flat_map(marks).map(str::to_owned).collect();
    for mark in &marked {
        assert!(
            WATCHED.iter().any(|(guard, _)| guard == mark),
            "no test takes out {mark}"
        );
    }
    for (guard, _, _) in MARKED {
        assert!(
            marked.iter().any(|mark| mark == guard),
            "{guard} is marked nowhere"
        );
    }
}

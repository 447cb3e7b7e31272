//! Commits that block on a row that changes during the wait (specific to Postgres).
//!
//! The conformance suite blocks a commit on a key or a voucher and changes other rows. Here the row itself is
//! locked, so the result depends on how the statement rereads it.

mod returns;

use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{
    CaseFixture as _, Fixture, INITIAL_BALANCE, OtherTransaction as _, STALE_BALANCE, STALE_STOCK,
    Subject as _, assert_committed, gift, wallet_state,
};

use self::returns::*;
use crate::subject::PgSubject;

macro_rules! cases {
    ($($case:ident)*) => {
        /// Names of the cases in this module.
        pub(crate) const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs a case by name and checks the invariants of the rows that it leaves behind.
        pub(crate) async fn run(case: &str, subject: &PgSubject) {
            match case {
                $(stringify!($case) => Box::pin($case(Fixture::create(subject).await)).await,)*
                _ => panic!("there is no case {case}"),
            }
            assert_eq!(subject.violations().await, Vec::<String>::new());
        }

        mod with_every_guard {
            use crate::subject::PgSubject;

            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    let subject = PgSubject::new().await;
                    super::run(stringify!($case), &subject).await;
                    subject.remove().await;
                }
            )*
        }
    };
}

cases! {
    wallet_is_reread_after_lock_wait
    debits_of_two_wallets_apply_after_lock_wait
    wallet_is_locked_before_it_is_read
    chunk_is_reread_after_lock_wait
    voucher_of_another_chunk_is_stale
    comparison_waits_for_cancellation_and_withdraws_returned_voucher
    cancellation_waits_for_comparison_and_is_stale
    voucher_read_beside_its_cancellation_is_not_returned
    voucher_in_two_returns_of_a_batch_is_returned_once
    voucher_returned_during_release_is_for_sale
    voucher_returned_during_quarantine_is_quarantined
    voucher_of_quarantined_chunk_is_stale
    quarantine_waits_for_running_commit
}

/// Debits the wallet as another writer of the ledger.
const SPEND: &str = "
    WITH spent AS (
        UPDATE wallets SET balance = balance - 8000, sequence = sequence + 1 RETURNING *
    ), booked AS (
        INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, created_at)
        SELECT partner_id, gen_random_uuid(), currency, sequence, 'ADJUSTMENT', -8000, balance, clock_timestamp()
          FROM spent
        RETURNING *
    )
    INSERT INTO audit_log (operator, action, subject, after)
    SELECT 'somebody', 'wallet.adjust', b.currency,
           jsonb_build_object('balance_minor', b.balance_after,
                              'amount_minor', b.amount,
                              'transaction_id', 'txn_' || replace(b.transaction_id::text, '-', ''))
      FROM booked AS b";

/// Debit of [`SPEND`].
const SPENT: i64 = 8_000;

async fn wallet_is_reread_after_lock_wait(mut fixture: Fixture<'_, PgSubject>) {
    let records = [fixture.pending_order("a", SPENT)];
    let transaction = fixture.subject.begin_with(sqlx::query(SPEND)).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    assert_eq!(verdicts, [STALE_BALANCE]);
    let records = [fixture.pending_order("b", INITIAL_BALANCE - SPENT)];
    let empty = sqlx::query("UPDATE wallets SET balance = 0");
    let transaction = fixture.subject.begin_with(empty).await;
    let verdicts = fixture.commit_blocked(&records, transaction.rollback()).await;
    assert_eq!(verdicts, [Verdict::Committed(Some(wallet_state(3, 0)))]);
}

/// A batch of only debits updates wallets without locking them first: after a wait it applies to the current
/// balances.
async fn debits_of_two_wallets_apply_after_lock_wait(mut fixture: Fixture<'_, PgSubject>) {
    let other_partner = fixture.add_partner(2, INITIAL_BALANCE).await;
    let records = [
        build::pending_order(other_partner, "a", 700),
        fixture.pending_order("b", 1_500),
    ];
    let transaction = fixture.subject.begin_with(sqlx::query(SPEND)).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    let left = [700, 1_500].map(|amount| wallet_state(3, INITIAL_BALANCE - SPENT - amount));
    assert_eq!(verdicts, left.map(|left| Verdict::Committed(Some(left))));
}

/// In a batch with a known key, wallets are locked before they are read.
async fn wallet_is_locked_before_it_is_read(mut fixture: Fixture<'_, PgSubject>) {
    let known = build::refusal(fixture.partner, "known");
    fixture.must_commit(&known).await;
    let records = [known, fixture.pending_order("a", 1_500)];
    let transaction = fixture.subject.begin_with(sqlx::query(SPEND)).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    assert!(matches!(verdicts[0], Verdict::KeyKnown(_)), "{verdicts:?}");
    let left = wallet_state(3, INITIAL_BALANCE - SPENT - 1_500);
    assert_eq!(verdicts[1], Verdict::Committed(Some(left)));
}

async fn chunk_is_reread_after_lock_wait(mut fixture: Fixture<'_, PgSubject>) {
    const TAKE: &str = "UPDATE chunks SET node = 'two'";
    let _other_node = fixture.subject.start("two").await;
    let gifts = fixture.add_stock(2).await;
    let records = [fixture.delivered_order("a", &gifts[..1])];
    let transaction = fixture.subject.begin_with(sqlx::query(TAKE)).await;
    assert_committed(&fixture.commit_blocked(&records, transaction.rollback()).await);
    let records = [fixture.delivered_order("b", &gifts[1..])];
    let transaction = fixture.subject.begin_with(sqlx::query(TAKE)).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    assert_eq!(verdicts, [STALE_STOCK]);
}

/// Guard `chunk-range`: a voucher outside the stated chunk is not sold.
async fn voucher_of_another_chunk_is_stale(mut fixture: Fixture<'_, PgSubject>) {
    let claimed = fixture.add_stock(1).await;
    let unclaimed = fixture.subject.add_chunk(&gift(), &[build::day(1)]).await;
    let wrong_chunk = StockVoucher {
        chunk_id: claimed[0].chunk_id,
        ..unclaimed[0]
    };
    let record = fixture.delivered_order("a", &[wrong_chunk]);
    assert_eq!(fixture.commit_one(&record).await, STALE_STOCK);
    assert_eq!(fixture.subject.allocations().await, []);
}

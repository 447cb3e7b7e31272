//! Commits that block on a row that changes during the wait (specific to Postgres).
//!
//! The conformance suite blocks a commit on a key or a voucher and changes other rows. Here the row itself is locked, so the
//! result depends on how the statement rereads it.

use std::sync::Arc;

use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::{LaneStore, Store};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::StockRequest;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{OtherTransaction, Subject};
use vouchsafe_store::PgNode;

use crate::subject::PgSubject;

macro_rules! cases {
    ($($case:ident)*) => {
        /// Names of the cases in this module.
        pub(crate) const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs a case by name.
        pub(crate) async fn run(case: &str, subject: &PgSubject) {
            match case {
                $(stringify!($case) => Box::pin($case(subject)).await,)*
                _ => panic!("there is no case {case}"),
            }
        }

        mod with_every_guard {
            use crate::subject::PgSubject;

            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    let subject = PgSubject::new().await;
                    super::$case(&subject).await;
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
}

const INITIAL_BALANCE: i64 = 10_000;

fn gift() -> Sku {
    build::sku("gift", 100)
}

fn stock_request() -> StockRequest {
    StockRequest {
        sku: gift(),
        loaded_chunks: Vec::new(),
        target_quantity: 20,
        not_before: build::day(0),
    }
}

/// A partner with the initial balance, and a node.
async fn open(subject: &PgSubject) -> (PartnerId, Arc<PgNode>) {
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject
        .top_up(build::usd_wallet(partner), build::minor(INITIAL_BALANCE))
        .await;
    let node = subject.start("one").await;
    (partner, node)
}

/// Polls the future until it is blocked on a lock.
async fn wait_until_blocked<T: std::fmt::Debug>(
    subject: &PgSubject,
    blocked: &mut (impl Future<Output = T> + Unpin),
) {
    tokio::select! {
        outcome = blocked => panic!("expected a lock wait, but it ended with {outcome:?}"),
        () = subject.wait_for_blocked(1) => {}
    }
}

/// Commits the record and calls `end` once the commit is blocked.
async fn commit_while_blocked(
    subject: &PgSubject,
    lane: &mut Box<dyn LaneStore>,
    batch: i64,
    record: &Record,
    end: impl AsyncFnOnce(),
) -> Verdict {
    let mut blocked = lane.commit(batch, std::slice::from_ref(record));
    wait_until_blocked(subject, &mut blocked).await;
    end().await;
    blocked.await.unwrap().remove(0)
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

async fn wallet_is_reread_after_lock_wait(subject: &PgSubject) {
    const STALE_BALANCE: Verdict = Verdict::Stale(StaleReason::Balance);
    let (partner, node) = open(subject).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let record = build::pending_order(partner, "a", 8_000);
    let transaction = subject.begin_with(sqlx::query(SPEND)).await;
    let verdict = commit_while_blocked(subject, &mut lane, 1, &record, async || {
        transaction.commit().await
    })
    .await;
    assert_eq!(verdict, STALE_BALANCE);
    let record = build::pending_order(partner, "b", 2_000);
    let transaction = subject
        .begin_with(sqlx::query("UPDATE wallets SET balance = 0"))
        .await;
    let verdict = commit_while_blocked(subject, &mut lane, 2, &record, async || {
        transaction.rollback().await
    })
    .await;
    let empty = WalletState {
        sequence: 3,
        balance: build::minor(0),
    };
    assert_eq!(verdict, Verdict::Committed(Some(empty)));
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

/// A batch of only debits updates wallets without locking them first: after a wait it applies to the current balances.
async fn debits_of_two_wallets_apply_after_lock_wait(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let other_partner = build::partner(2);
    subject.add_partner(other_partner).await;
    subject
        .top_up(build::usd_wallet(other_partner), build::minor(INITIAL_BALANCE))
        .await;
    let mut lane = node.open_lane(0).await.unwrap();
    let records = [
        build::pending_order(other_partner, "a", 700),
        build::pending_order(partner, "b", 1_500),
    ];
    let transaction = subject.begin_with(sqlx::query(SPEND)).await;
    let mut blocked = lane.commit(1, &records);
    wait_until_blocked(subject, &mut blocked).await;
    transaction.commit().await;
    let left = |amount| {
        let balance = build::minor(INITIAL_BALANCE - 8_000 - amount);
        Verdict::Committed(Some(WalletState { sequence: 3, balance }))
    };
    assert_eq!(blocked.await.unwrap(), [left(700), left(1_500)]);
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

/// In a batch with a known key, wallets are locked before they are read.
async fn wallet_is_locked_before_it_is_read(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let known = build::refusal(partner, "known");
    lane.commit(1, std::slice::from_ref(&known)).await.unwrap();
    let records = [known, build::pending_order(partner, "a", 1_500)];
    let transaction = subject.begin_with(sqlx::query(SPEND)).await;
    let mut blocked = lane.commit(2, &records);
    wait_until_blocked(subject, &mut blocked).await;
    transaction.commit().await;
    let verdicts = blocked.await.unwrap();
    let left = WalletState {
        sequence: 3,
        balance: build::minor(INITIAL_BALANCE - 8_000 - 1_500),
    };
    assert!(matches!(verdicts[0], Verdict::KeyKnown(_)), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Committed(Some(left)));
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

async fn chunk_is_reread_after_lock_wait(subject: &PgSubject) {
    const STALE_STOCK: Verdict = Verdict::Stale(StaleReason::Stock);
    const TAKE: &str = "UPDATE chunks SET node = 'two'";
    let (partner, node) = open(subject).await;
    let _other_node = subject.start("two").await;
    let vouchers = subject.add_chunk(&gift(), &[build::day(1), build::day(1)]).await;
    node.claim_stock(stock_request()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    let order = |name, of: usize| build::delivered_order(partner, name, &[(&gift(), &vouchers[of..=of])]);
    let transaction = subject.begin_with(sqlx::query(TAKE)).await;
    let verdict = commit_while_blocked(subject, &mut lane, 1, &order("a", 0), async || {
        transaction.rollback().await
    })
    .await;
    assert!(matches!(verdict, Verdict::Committed(Some(_))), "{verdict:?}");
    let transaction = subject.begin_with(sqlx::query(TAKE)).await;
    let verdict = commit_while_blocked(subject, &mut lane, 2, &order("b", 1), async || {
        transaction.commit().await
    })
    .await;
    assert_eq!(verdict, STALE_STOCK);
}

/// Guard `chunk-range`: a voucher outside the stated chunk is not sold.
async fn voucher_of_another_chunk_is_stale(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let claimed = subject.add_chunk(&gift(), &[build::day(1)]).await;
    node.claim_stock(stock_request()).await.unwrap();
    let unclaimed = subject.add_chunk(&gift(), &[build::day(1)]).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let wrong_chunk = StockVoucher {
        chunk_id: claimed[0].chunk_id,
        ..unclaimed[0]
    };
    let record = build::delivered_order(partner, "a", &[(&gift(), &[wrong_chunk])]);
    let verdicts = lane.commit(1, &[record]).await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Stale(StaleReason::Stock)]),
        "{verdicts:?}"
    );
    assert_eq!(subject.allocations().await, []);
}

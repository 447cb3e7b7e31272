//! Waits that only Postgres has: a row that changes while the commit waits for that very row.
//!
//! The suite lets a commit wait for a key or a voucher and changes other rows meanwhile. Here the row itself is held, so
//! that what counts is how the statement reads it once the wait is over.

use std::sync::Arc;

use vouchsafe::store::PgNode;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::stock::StockRequest;
use vouchsafe_actors::domain::voucher::Shelved;
use vouchsafe_actors::journal::{Record, Stale, Verdict};
use vouchsafe_actors::store::{LaneStore, Store};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::{OtherTransaction, Subject};

use crate::subject::PgSubject;

macro_rules! cases {
    ($($case:ident)*) => {
        /// The names of the cases here.
        pub(crate) const CASES: &[&str] = &[$(stringify!($case)),*];

        /// Runs the case of this name.
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
    a_wallet_is_read_as_it_is_after_the_wait_for_it
    debits_of_two_wallets_are_taken_after_the_wait
    a_wallet_is_locked_before_it_is_read
    a_chunk_is_read_as_it_is_after_the_wait_for_it
    a_voucher_of_another_chunk_is_stale
}

const FUNDS: i64 = 10_000;

fn gift() -> Sku {
    build::sku("gift", 100)
}

fn everything() -> StockRequest {
    StockRequest {
        sku: gift(),
        loaded: Vec::new(),
        enough: 20,
        not_before: build::day(0),
    }
}

/// A partner with [`FUNDS`], and a node.
async fn open(subject: &PgSubject) -> (PartnerId, Arc<PgNode>) {
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject.top_up(build::usd_of(partner), build::minor(FUNDS)).await;
    let node = subject.start("one").await;
    (partner, node)
}

/// Lets work go on until it waits for somebody's lock.
async fn until_it_waits<T: std::fmt::Debug>(
    subject: &PgSubject,
    under_way: &mut (impl Future<Output = T> + Unpin),
) {
    tokio::select! {
        outcome = under_way => panic!("it should have waited, but ended with {outcome:?}"),
        () = subject.until_waiting(1) => {}
    }
}

/// Commits the record while another transaction holds what it needs, and ends that one once the commit waits.
async fn commit_behind(
    subject: &PgSubject,
    lane: &mut Box<dyn LaneStore>,
    batch: i64,
    record: &Record,
    end: impl AsyncFnOnce(),
) -> Verdict {
    let mut under_way = lane.commit(batch, std::slice::from_ref(record));
    until_it_waits(subject, &mut under_way).await;
    end().await;
    under_way.await.unwrap().remove(0)
}

/// Takes money as another writer of the ledger does.
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

async fn a_wallet_is_read_as_it_is_after_the_wait_for_it(subject: &PgSubject) {
    const SHORT: Verdict = Verdict::Stale(Stale::Balance);
    let (partner, node) = open(subject).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let record = build::pending(partner, "a", 8_000);
    let other = subject.open(sqlx::query(SPEND)).await;
    let verdict = commit_behind(subject, &mut lane, 1, &record, async || other.commit().await).await;
    assert_eq!(verdict, SHORT);
    let record = build::pending(partner, "b", 2_000);
    let other = subject.open(sqlx::query("UPDATE wallets SET balance = 0")).await;
    let verdict = commit_behind(subject, &mut lane, 2, &record, async || other.rollback().await).await;
    let empty = Receipt {
        sequence: 3,
        balance: build::minor(0),
    };
    assert_eq!(verdict, Verdict::Committed(Some(empty)));
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

/// Debits alone are written without a lock before: after a wait, to what is there by then, each in its own wallet.
async fn debits_of_two_wallets_are_taken_after_the_wait(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let neighbour = build::partner(2);
    subject.add_partner(neighbour).await;
    subject
        .top_up(build::usd_of(neighbour), build::minor(FUNDS))
        .await;
    let mut lane = node.open_lane(0).await.unwrap();
    let records = [
        build::pending(neighbour, "a", 700),
        build::pending(partner, "b", 1_500),
    ];
    let other = subject.open(sqlx::query(SPEND)).await;
    let mut under_way = lane.commit(1, &records);
    until_it_waits(subject, &mut under_way).await;
    other.commit().await;
    let left = |amount| {
        let balance = build::minor(FUNDS - 8_000 - amount);
        Verdict::Committed(Some(Receipt { sequence: 3, balance }))
    };
    assert_eq!(under_way.await.unwrap(), [left(700), left(1_500)]);
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

/// Beside a record whose key is known, debits are not written at once: the wallets are locked, and read then.
async fn a_wallet_is_locked_before_it_is_read(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let known = build::refusal(partner, "known");
    lane.commit(1, std::slice::from_ref(&known)).await.unwrap();
    let records = [known, build::pending(partner, "a", 1_500)];
    let other = subject.open(sqlx::query(SPEND)).await;
    let mut under_way = lane.commit(2, &records);
    until_it_waits(subject, &mut under_way).await;
    other.commit().await;
    let verdicts = under_way.await.unwrap();
    let left = Receipt {
        sequence: 3,
        balance: build::minor(FUNDS - 8_000 - 1_500),
    };
    assert!(matches!(verdicts[0], Verdict::KeyKnown(_)), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Committed(Some(left)));
    assert_eq!(subject.violations().await, Vec::<String>::new());
}

async fn a_chunk_is_read_as_it_is_after_the_wait_for_it(subject: &PgSubject) {
    const GONE: Verdict = Verdict::Stale(Stale::Stock);
    const TAKE: &str = "UPDATE chunks SET node = 'two'";
    let (partner, node) = open(subject).await;
    let _other_node = subject.start("two").await;
    let vouchers = subject.add_chunk(&gift(), &[build::day(1), build::day(1)]).await;
    node.claim_stock(everything()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    let order = |name, of: usize| build::delivered(partner, name, &[(&gift(), &vouchers[of..=of])]);
    let other = subject.open(sqlx::query(TAKE)).await;
    let verdict = commit_behind(subject, &mut lane, 1, &order("a", 0), async || {
        other.rollback().await
    })
    .await;
    assert!(matches!(verdict, Verdict::Committed(Some(_))), "{verdict:?}");
    let other = subject.open(sqlx::query(TAKE)).await;
    let verdict = commit_behind(subject, &mut lane, 2, &order("b", 1), async || {
        other.commit().await
    })
    .await;
    assert_eq!(verdict, GONE);
}

/// A voucher that is not in the chunk it is said to be in is not sold, whoever owns that chunk.
async fn a_voucher_of_another_chunk_is_stale(subject: &PgSubject) {
    let (partner, node) = open(subject).await;
    let mine = subject.add_chunk(&gift(), &[build::day(1)]).await;
    node.claim_stock(everything()).await.unwrap();
    let nobodys = subject.add_chunk(&gift(), &[build::day(1)]).await;
    let mut lane = node.open_lane(0).await.unwrap();
    let mixed_up = Shelved {
        chunk_id: mine[0].chunk_id,
        ..nobodys[0]
    };
    let record = build::delivered(partner, "a", &[(&gift(), &[mixed_up])]);
    let verdicts = lane.commit(1, &[record]).await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Stale(Stale::Stock)]),
        "{verdicts:?}"
    );
    assert_eq!(subject.allocations().await, []);
}

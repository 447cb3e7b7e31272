//! Lock order of statements that lock several chunks: sorted by id, as commits lock them.

use uuid::Uuid;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{
    CaseFixture as _, Fixture, OtherTransaction as _, Subject as _, assert_blocked, gift,
};

use crate::subject::PgSubject;

const PURCHASE: Uuid = Uuid::from_u128(7);

/// Reserves two chunks for a purchase, which a scan finds in the opposite order of their ids.
async fn reserve_two_chunks(subject: &PgSubject) -> [StockVoucher; 2] {
    let mut chunks = Vec::new();
    for day in [1, 2] {
        chunks.extend(subject.add_chunk(&gift(), &[build::day(day)]).await);
    }
    for chunk in chunks.iter().rev() {
        subject
            .reserve_for(std::slice::from_ref(chunk), Some(PURCHASE))
            .await;
    }
    chunks.try_into().unwrap()
}

/// Runs a statement while a commit has the first chunk, and checks that it waits for that one before it locks
/// the second.
async fn assert_first_chunk_is_locked_first<T: std::fmt::Debug>(
    subject: &PgSubject,
    [first, second]: [StockVoucher; 2],
    mut statement: impl Future<Output = T> + Unpin,
) -> T {
    let lock = sqlx::query("SELECT FROM chunks WHERE chunk_id = $1 FOR SHARE");
    let commit = subject.begin_with(lock.bind(first.chunk_id.0)).await;
    assert_blocked(subject, 1, &mut statement).await;
    let free: Option<i64> =
        sqlx::query_scalar("SELECT chunk_id FROM chunks WHERE chunk_id = $1 FOR SHARE SKIP LOCKED")
            .bind(second.chunk_id.0)
            .fetch_optional(subject.pool())
            .await
            .unwrap();
    assert_eq!(
        free,
        Some(second.chunk_id.0),
        "the second chunk is not locked yet"
    );
    commit.rollback().await;
    statement.await
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_of_reserved_stock_locks_chunks_by_id() {
    let subject = PgSubject::new().await;
    let fixture = Fixture::create(&subject).await;
    let chunks = reserve_two_chunks(&subject).await;
    let claim = fixture.store.claim_reserved(PURCHASE);
    let claimed = assert_first_chunk_is_locked_first(&subject, chunks, claim).await;
    assert_eq!(claimed.unwrap(), chunks);
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn release_of_a_remainder_locks_chunks_by_id() {
    let subject = PgSubject::new().await;
    let chunks = reserve_two_chunks(&subject).await;
    let release = subject.store().reservations.release_remainder(PURCHASE);
    let released = assert_first_chunk_is_locked_first(&subject, chunks, release).await;
    assert_eq!(released.unwrap(), Some(gift()));
    subject.remove().await;
}

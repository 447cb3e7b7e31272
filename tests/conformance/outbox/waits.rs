//! What meets while one waits for the other's row.
//!
//! Both write to the trail at their end: somebody stands on it, so that they stop with their rows written and not committed.

use vouchsafe::store::Replayed;
use vouchsafe_actors::delivery::outbox::{Lease, Opened, Then, Turn};
use vouchsafe_actors::delivery::queue::Changes;
use vouchsafe_actors::testing::outbox::OutboxSubject as _;

use super::PgOutboxSubject;
use crate::rows;

impl PgOutboxSubject {
    /// Somebody who lets nobody finish until so many wait, and then lets them go on.
    async fn stand_in_the_way(&self, until_waiting: i64) {
        let mut trail = self.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE audit_log IN EXCLUSIVE MODE")
            .execute(&mut *trail)
            .await
            .unwrap();
        self.until_waiting(until_waiting).await;
        trail.rollback().await.unwrap();
    }

    /// Waits until somebody stands there.
    async fn until_standing(&self) {
        let standing = "SELECT EXISTS (
            SELECT FROM pg_locks WHERE relation = 'audit_log'::regclass AND mode = 'ExclusiveLock' AND granted)";
        while !sqlx::query_scalar::<_, bool>(standing)
            .fetch_one(&self.pool)
            .await
            .unwrap()
        {
            tokio::task::yield_now().await;
        }
    }

    async fn until_waiting(&self, count: i64) {
        while rows::waiting(&self.pool).await < count {
            tokio::task::yield_now().await;
        }
    }
}

/// Gives the endpoint back, with the cursor behind this event and no row.
fn release(lease: Lease, cursor: i64) -> Turn {
    Turn {
        lease,
        number: 1,
        changes: Changes {
            cursor,
            ..Changes::default()
        },
        now: std::time::Duration::ZERO,
        attempts: Vec::new(),
        delivered: 0,
        refused: 0,
        gone: false,
        wait: None,
        save: true,
        then: Then::Release,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_meets_the_last_turn_of_a_lease_stays_due() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let Opened { lease, .. } = outbox.take(subject.webhook_id).await.unwrap().unwrap();
    let (replayed, page, ()) = tokio::join!(
        async {
            subject.until_standing().await;
            subject.try_replay(number..=number).await
        },
        async {
            subject.until_waiting(1).await;
            outbox.turn(subject.webhook_id, release(lease, number)).await
        },
        subject.stand_in_the_way(2),
    );
    assert_eq!(replayed, Replayed::Again(1));
    assert!(page.unwrap().is_some(), "the lease was given back");
    let taken = outbox.take(subject.webhook_id).await.unwrap();
    assert!(taken.is_some(), "the replay is due");
    assert!(subject.violations().await.is_empty());
    subject.database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_meets_the_endpoints_removal_leaves_nothing() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let (removed, replayed, ()) = tokio::join!(
        async {
            subject.until_standing().await;
            subject.try_remove().await
        },
        async {
            subject.until_waiting(1).await;
            subject.try_replay(number..=number).await
        },
        subject.stand_in_the_way(2),
    );
    assert_eq!((removed, replayed), (true, Replayed::NoWebhook));
    assert_eq!(subject.row(number).await, None);
    assert!(subject.violations().await.is_empty());
    subject.database.remove().await;
}

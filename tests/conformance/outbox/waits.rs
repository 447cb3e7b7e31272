//! What meets while one waits for the other's row, and who does not wait.
//!
//! What is to meet writes to the trail at its end: somebody stands on it, so that it stops with its rows written and not
//! committed.

use std::time::Duration;

use futures_util::future::join_all;
use vouchsafe::store::Replayed;
use vouchsafe_actors::delivery::outbox::{Lease, Opened, Then, Turn};
use vouchsafe_actors::delivery::queue::{Changes, Want};
use vouchsafe_actors::domain::delivery::{Fate, Health, Mark};
use vouchsafe_actors::domain::ids::WebhookId;
use vouchsafe_actors::testing::memory_outbox::order_id;
use vouchsafe_actors::testing::outbox::{OutboxSubject as _, RowState};

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

    /// Waits until somebody stands there. Every database is a copy of one, so that tables have the same number in all of them.
    async fn until_standing(&self) {
        let standing = "SELECT EXISTS (
            SELECT
              FROM pg_locks AS l
              JOIN pg_database AS d ON d.oid = l.database
             WHERE d.datname = current_database()
               AND l.relation = 'audit_log'::regclass
               AND l.mode = 'ExclusiveLock'
               AND l.granted)";
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
    let changes = Changes {
        cursor,
        ..Changes::default()
    };
    turn(lease, changes, Then::Release)
}

/// Writes more than how far the endpoint is: it takes deliveries again.
fn recovers(lease: Lease) -> Turn {
    let changes = Changes {
        recovered: true,
        ..Changes::default()
    };
    turn(lease, changes, Then::Keep(None))
}

/// Reads what is new.
fn reads(lease: Lease) -> Turn {
    let want = Want::Due { after: 0, most: 16 };
    turn(lease, Changes::default(), Then::Keep(Some(want)))
}

/// An attempt failed: tried again in an hour.
fn again(number: i64) -> Mark {
    Mark {
        number,
        order_id: order_id(1),
        attempts: 1,
        replays: 0,
        fate: Fate::Again(Duration::from_secs(3_600)),
    }
}

/// After one failure.
const HEALTH: Health = Health {
    failures: 1,
    step: 1,
    not_before: Duration::ZERO,
};

fn turn(lease: Lease, changes: Changes, then: Then) -> Turn {
    Turn {
        lease,
        number: 1,
        changes,
        now: Duration::ZERO,
        attempts: Vec::new(),
        delivered: 0,
        refused: 0,
        gone: false,
        wait: None,
        save: then == Then::Release,
        then,
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

/// What is written of an attempt waits for a replay of the same to be committed, and leaves it as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_meets_the_end_of_an_attempt_stays_due() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let Opened { lease, .. } = outbox.take(subject.webhook_id).await.unwrap().unwrap();
    let failed = Changes {
        cursor: number,
        health: HEALTH,
        marks: vec![again(number)],
        recovered: false,
    };
    let (replayed, page, ()) = tokio::join!(
        async {
            subject.until_standing().await;
            subject.try_replay(number..=number).await
        },
        async {
            subject.until_waiting(1).await;
            let failed = turn(lease, failed, Then::Release);
            outbox.turn(subject.webhook_id, failed).await
        },
        subject.stand_in_the_way(2),
    );
    assert_eq!(replayed, Replayed::Again(1));
    assert!(page.unwrap().is_some(), "it was written");
    let row = subject.row(number).await.unwrap();
    assert_eq!((row.state, row.attempts), (RowState::Waiting, 0));
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

/// Many that hang give up at the same moments: however long it takes to write that down, others are served.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_deliveries_does_not_wait_for_those_that_fail() {
    let subject = PgOutboxSubject::create().await;
    let (healthy, idle) = (WebhookId::generate(), WebhookId::generate());
    subject.add(healthy).await;
    subject.add(idle).await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let failing = outbox.take(subject.webhook_id).await.unwrap().unwrap();
    let taking = outbox.take(healthy).await.unwrap().unwrap();

    let mut row = subject.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webhook_progress WHERE webhook_id = $1 FOR UPDATE")
        .bind(subject.webhook_id.as_uuid())
        .execute(&mut *row)
        .await
        .unwrap();
    let failures = (0..16).map(|_| outbox.turn(subject.webhook_id, recovers(failing.lease)));
    let (written, numbers) = tokio::join!(join_all(failures), async {
        subject.until_waiting(1).await;
        let page = outbox.turn(healthy, reads(taking.lease)).await;
        let begun = outbox.take(idle).await;
        row.rollback().await.unwrap();
        assert!(begun.unwrap().is_some(), "one that was idle begins");
        let pending = page.unwrap().unwrap().pending;
        let numbers = pending.iter().map(|pending| pending.letter.number);
        numbers.collect::<Vec<_>>()
    });
    assert_eq!(numbers, [number]);
    for page in written {
        assert!(page.unwrap().is_some(), "it was written in the end");
    }
    subject.database.remove().await;
}

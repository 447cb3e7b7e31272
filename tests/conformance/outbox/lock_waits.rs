//! Outbox statements that block on each other's rows, and statements that must not block.
//!
//! Replays and removals write to the audit log last, so a lock on it stops them with their rows written but not committed.

use std::time::Duration;

use futures_util::future::join_all;
use vouchsafe_actors::delivery::outbox::{FlushRequest, Lease, LeaseAction, LeasedEndpoint};
use vouchsafe_actors::delivery::queue::{QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::{DeliveryOutcome, DeliveryUpdate, EndpointHealth};
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_simulation::outbox::{OutboxSubject as _, RowState, order_id};
use vouchsafe_store::ReplayOutcome;

use super::PgOutboxSubject;
use crate::rows;

impl PgOutboxSubject {
    /// Locks the audit log until this many transactions are blocked.
    async fn block_audit_log(&self, until_waiting: i64) {
        let mut audit_log = self.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE audit_log IN EXCLUSIVE MODE")
            .execute(&mut *audit_log)
            .await
            .unwrap();
        self.wait_for_blocked(until_waiting).await;
        audit_log.rollback().await.unwrap();
    }

    /// Waits until the audit log is locked. Databases are copies of one template, so the query compares the database too.
    async fn wait_for_audit_log_lock(&self) {
        let lock_query = "SELECT EXISTS (
            SELECT
              FROM pg_locks AS l
              JOIN pg_database AS d ON d.oid = l.database
             WHERE d.datname = current_database()
               AND l.relation = 'audit_log'::regclass
               AND l.mode = 'ExclusiveLock'
               AND l.granted)";
        while !sqlx::query_scalar::<_, bool>(lock_query)
            .fetch_one(&self.pool)
            .await
            .unwrap()
        {
            tokio::task::yield_now().await;
        }
    }

    async fn wait_for_blocked(&self, count: i64) {
        while rows::count_blocked(&self.pool).await < count {
            tokio::task::yield_now().await;
        }
    }
}

/// Releases the lease with the cursor at this event.
fn release_request(lease: Lease, cursor: i64) -> FlushRequest {
    let changes = QueueChanges {
        cursor,
        ..QueueChanges::default()
    };
    flush_request(lease, changes, LeaseAction::Release)
}

/// A flush that marks the endpoint as recovered.
fn recovery_request(lease: Lease) -> FlushRequest {
    let changes = QueueChanges {
        recovered: true,
        ..QueueChanges::default()
    };
    flush_request(lease, changes, LeaseAction::Keep(None))
}

/// A flush that reads new events.
fn read_request(lease: Lease) -> FlushRequest {
    let want = ReadRequest::Due { after: 0, limit: 16 };
    flush_request(lease, QueueChanges::default(), LeaseAction::Keep(Some(want)))
}

/// A failed attempt, to be retried in an hour.
fn retry_mark(number: i64) -> DeliveryUpdate {
    DeliveryUpdate {
        number,
        order_id: order_id(1),
        attempts: 1,
        replays: 0,
        outcome: DeliveryOutcome::RetryAt(Duration::from_secs(3_600)),
    }
}

const HEALTH: EndpointHealth = EndpointHealth {
    consecutive_failures: 1,
    backoff_step: 1,
    not_before: Duration::ZERO,
};

fn flush_request(lease: Lease, changes: QueueChanges, lease_action: LeaseAction) -> FlushRequest {
    FlushRequest {
        lease,
        sequence: 1,
        changes,
        now: Duration::ZERO,
        attempts: Vec::new(),
        delivered: 0,
        failed: 0,
        gone: false,
        retry_in: None,
        save_cursor: lease_action == LeaseAction::Release,
        lease_action,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_last_flush_of_lease_stays_due() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let LeasedEndpoint { lease, .. } = outbox.lease(subject.webhook_id).await.unwrap().unwrap();
    let (replayed, page, ()) = tokio::join!(
        async {
            subject.wait_for_audit_log_lock().await;
            subject.try_replay(number..=number).await
        },
        async {
            subject.wait_for_blocked(1).await;
            outbox
                .flush(subject.webhook_id, release_request(lease, number))
                .await
        },
        subject.block_audit_log(2),
    );
    assert_eq!(replayed, ReplayOutcome::Scheduled(1));
    assert!(page.unwrap().is_some(), "the lease was released");
    let lease_again = outbox.lease(subject.webhook_id).await.unwrap();
    assert!(lease_again.is_some(), "the replay is due");
    assert!(subject.violations().await.is_empty());
    subject.database.remove().await;
}

/// The flush of an attempt blocks on a replay of the same delivery and does not overwrite it.
#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_end_of_attempt_stays_due() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let LeasedEndpoint { lease, .. } = outbox.lease(subject.webhook_id).await.unwrap().unwrap();
    let failed = QueueChanges {
        cursor: number,
        health: HEALTH,
        updates: vec![retry_mark(number)],
        recovered: false,
    };
    let (replayed, page, ()) = tokio::join!(
        async {
            subject.wait_for_audit_log_lock().await;
            subject.try_replay(number..=number).await
        },
        async {
            subject.wait_for_blocked(1).await;
            let failed = flush_request(lease, failed, LeaseAction::Release);
            outbox.flush(subject.webhook_id, failed).await
        },
        subject.block_audit_log(2),
    );
    assert_eq!(replayed, ReplayOutcome::Scheduled(1));
    assert!(page.unwrap().is_some(), "the flush was written");
    let row = subject.row(number).await.unwrap();
    assert_eq!((row.state, row.attempts), (RowState::Waiting, 0));
    let lease_again = outbox.lease(subject.webhook_id).await.unwrap();
    assert!(lease_again.is_some(), "the replay is due");
    assert!(subject.violations().await.is_empty());
    subject.database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_removal_leaves_nothing() {
    let subject = PgOutboxSubject::create().await;
    let number = subject.commit(1).await;
    let (removed, replayed, ()) = tokio::join!(
        async {
            subject.wait_for_audit_log_lock().await;
            subject.try_remove().await
        },
        async {
            subject.wait_for_blocked(1).await;
            subject.try_replay(number..=number).await
        },
        subject.block_audit_log(2),
    );
    assert_eq!((removed, replayed), (true, ReplayOutcome::WebhookNotFound));
    assert_eq!(subject.row(number).await, None);
    assert!(subject.violations().await.is_empty());
    subject.database.remove().await;
}

/// Flushes of many failing endpoints do not delay healthy ones.
#[tokio::test(flavor = "multi_thread")]
async fn healthy_endpoints_do_not_wait_for_failing_ones() {
    let subject = PgOutboxSubject::create().await;
    let (healthy, idle) = (WebhookId::generate(), WebhookId::generate());
    subject.add(healthy).await;
    subject.add(idle).await;
    let number = subject.commit(1).await;
    let outbox = subject.start("one").await;
    let failing = outbox.lease(subject.webhook_id).await.unwrap().unwrap();
    let healthy_lease = outbox.lease(healthy).await.unwrap().unwrap();

    let mut row = subject.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webhook_progress WHERE webhook_id = $1 FOR UPDATE")
        .bind(subject.webhook_id.as_uuid())
        .execute(&mut *row)
        .await
        .unwrap();
    let failures = (0..16).map(|_| outbox.flush(subject.webhook_id, recovery_request(failing.lease)));
    let (written, numbers) = tokio::join!(join_all(failures), async {
        subject.wait_for_blocked(1).await;
        let page = outbox.flush(healthy, read_request(healthy_lease.lease)).await;
        let leased = outbox.lease(idle).await;
        row.rollback().await.unwrap();
        assert!(leased.unwrap().is_some(), "the idle endpoint is leased");
        let pending = page.unwrap().unwrap().pending;
        let numbers = pending.iter().map(|pending| pending.event.number);
        numbers.collect::<Vec<_>>()
    });
    assert_eq!(numbers, [number]);
    for page in written {
        assert!(page.unwrap().is_some(), "the flush was written in the end");
    }
    subject.database.remove().await;
}

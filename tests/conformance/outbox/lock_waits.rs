//! Outbox statements that block on each other's rows, and statements that must not block.
//!
//! Replays and removals write to the audit log last, so a lock on it stops them with their rows written but
//! not committed.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::Executor as _;
use vouchsafe_actors::delivery::outbox::{FlushRequest, Lease, LeaseAction};
use vouchsafe_actors::delivery::queue::{QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::{DeliveryOutcome, DeliveryUpdate, EndpointHealth};
use vouchsafe_simulation::conformance::{CaseFixture as _, Subject as _};
use vouchsafe_simulation::{RowState, build};
use vouchsafe_store::ReplayOutcome;

use super::{Fixture, try_remove, try_replay};
use crate::subject::PgSubject;

/// Locks the audit log until two transactions are blocked.
async fn block_audit_log(subject: &PgSubject) {
    let mut audit_log = subject.pool().begin().await.unwrap();
    audit_log
        .execute("LOCK TABLE audit_log IN EXCLUSIVE MODE")
        .await
        .unwrap();
    subject.wait_for_blocked(2).await;
    audit_log.rollback().await.unwrap();
}

/// Waits until the audit log is locked. Databases are copies of one template, so the query compares the
/// database too.
async fn wait_for_audit_log_lock(subject: &PgSubject) {
    let lock_query = "SELECT EXISTS (
        SELECT
          FROM pg_locks AS l
          JOIN pg_database AS d ON d.oid = l.database
         WHERE d.datname = current_database()
           AND l.relation = 'audit_log'::regclass
           AND l.mode = 'ExclusiveLock'
           AND l.granted)";
    while !sqlx::query_scalar::<_, bool>(lock_query)
        .fetch_one(subject.pool())
        .await
        .unwrap()
    {
        tokio::task::yield_now().await;
    }
}

/// Runs `first` until it blocks at the audit log, and then `second` until it blocks on the rows of `first`;
/// then both end.
async fn overlap<A, B>(
    subject: &PgSubject,
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
    let first = async {
        wait_for_audit_log_lock(subject).await;
        first.await
    };
    let second = async {
        subject.wait_for_blocked(1).await;
        second.await
    };
    let (first, second, ()) = tokio::join!(first, second, block_audit_log(subject));
    (first, second)
}

/// A flush that reads deliveries.
pub(super) fn read_request(lease: Lease, after: i64, limit: usize) -> FlushRequest {
    let want = ReadRequest::Due { after, limit };
    flush_request(lease, QueueChanges::default(), LeaseAction::Keep(Some(want)))
}

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

/// Flushes these changes while a replay of the same delivery is not committed; the replay stays due. Returns
/// the delivery's state and attempts.
async fn replay_during_flush(changes: impl FnOnce(i64) -> QueueChanges) -> Option<(RowState, u32)> {
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let lease = process.acquire().await.unwrap().opened.lease;
    let flush = flush_request(lease, changes(number), LeaseAction::Release);
    let (replayed, page) = overlap(
        &subject,
        Box::pin(try_replay(&subject, endpoint.webhook_id, number..=number)),
        process.outbox.flush(endpoint.webhook_id, flush),
    )
    .await;
    assert_eq!(replayed, ReplayOutcome::Scheduled(1));
    assert!(page.unwrap().is_some(), "the flush was written");
    let row = endpoint.row(number).await;
    assert!(process.acquire().await.is_some(), "the replay is due");
    assert!(subject.violations().await.iter().all(|row| !is_of_outbox(row)));
    subject.remove().await;
    row.map(|row| (row.state, row.attempts))
}

fn is_of_outbox(violation: &str) -> bool {
    violation.starts_with("webhook.") || violation.starts_with("delivery.")
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_last_flush_of_lease_stays_due() {
    let cursor = |cursor| QueueChanges {
        cursor,
        ..QueueChanges::default()
    };
    assert_eq!(
        Box::pin(replay_during_flush(cursor)).await,
        Some((RowState::Waiting, 0))
    );
}

/// The flush of an attempt blocks on a replay of the same delivery and does not overwrite it.
#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_end_of_attempt_stays_due() {
    let failed = |number| QueueChanges {
        cursor: number,
        health: EndpointHealth {
            consecutive_failures: 1,
            backoff_step: 1,
            not_before: Duration::ZERO,
        },
        updates: vec![DeliveryUpdate {
            number,
            order_id: build::numbered_order_id(1),
            attempts: 1,
            replays: 0,
            outcome: DeliveryOutcome::RetryAt(Duration::from_secs(3_600)),
        }],
        recovered: false,
    };
    assert_eq!(
        Box::pin(replay_during_flush(failed)).await,
        Some((RowState::Waiting, 0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_concurrent_with_removal_leaves_nothing() {
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    let number = endpoint.commit(1).await;
    let outcome = overlap(
        &subject,
        Box::pin(try_remove(&subject, endpoint.webhook_id)),
        Box::pin(try_replay(&subject, endpoint.webhook_id, number..=number)),
    )
    .await;
    assert_eq!(outcome, (true, ReplayOutcome::WebhookNotFound));
    assert_eq!(endpoint.row(number).await, None);
    assert!(subject.violations().await.iter().all(|row| !is_of_outbox(row)));
    subject.remove().await;
}

/// Flushes of many failing endpoints do not delay healthy ones.
#[tokio::test(flavor = "multi_thread")]
async fn healthy_endpoints_do_not_wait_for_failing_ones() {
    let subject = PgSubject::new().await;
    let endpoint = Fixture::create(&subject).await;
    let healthy = subject.add_endpoint(endpoint.partner).await;
    let idle = subject.add_endpoint(endpoint.partner).await;
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let outbox = &process.outbox;
    let failing = process.acquire().await.unwrap().opened;
    let healthy_lease = outbox.lease(healthy).await.unwrap().unwrap();

    let mut row = subject.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM webhook_progress WHERE webhook_id = $1 FOR UPDATE")
        .bind(endpoint.webhook_id.as_uuid())
        .execute(&mut *row)
        .await
        .unwrap();
    let recovery = QueueChanges {
        recovered: true,
        ..QueueChanges::default()
    };
    let recovery = flush_request(failing.lease, recovery, LeaseAction::Keep(None));
    let failures = (0..16).map(|_| outbox.flush(endpoint.webhook_id, recovery.clone()));
    let (written, numbers) = tokio::join!(join_all(failures), async {
        subject.wait_for_blocked(1).await;
        let page = outbox
            .flush(healthy, read_request(healthy_lease.lease, 0, 16))
            .await;
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
    subject.remove().await;
}

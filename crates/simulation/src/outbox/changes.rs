//! Conformance cases: changes of an endpoint during delivery. Disabled, enabled, rotated, removed.

use super::lease_holder::{DeliveryProcess, Flush, HOUR, acquire_endpoint, due};
use super::subject::OutboxSubject;

/// Disabling revokes the lease and prevents another; after enabling, delivery resumes at the cursor.
pub async fn disabled_endpoint_is_not_leased<S: OutboxSubject>(subject: &S) {
    for _ in 0..2 {
        subject.commit(1).await;
    }
    let process = DeliveryProcess::start(subject, "one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::up_to(1)).await.unwrap();
    subject.set_enabled(false).await;
    assert!(holder.flush(Flush::up_to(2)).await.is_none());
    assert!(process.acquire().await.is_none());
    subject.set_enabled(true).await;
    let mut holder = process.acquire().await.expect("the endpoint is enabled");
    assert_eq!(holder.opened.cursor, 1);
    assert_eq!(holder.read_numbers(due(1)).await, [2]);
}

/// Events older than 24 hours are not delivered after an endpoint is enabled again.
pub async fn enabled_endpoint_gets_only_last_day<S: OutboxSubject>(subject: &S) {
    subject.set_enabled(false).await;
    subject.commit(1).await;
    subject.advance_time(25 * HOUR).await;
    subject.commit(1).await;
    subject.set_enabled(true).await;
    let mut holder = acquire_endpoint(subject, "one").await;
    assert_eq!(holder.opened.cursor, 1);
    assert_eq!(holder.read_numbers(due(1)).await, [2]);
}

/// Rotation revokes the lease, so the next lease signs with both the new and the previous secret.
pub async fn rotation_revokes_lease_and_both_secrets_sign<S: OutboxSubject>(subject: &S) {
    subject.commit(1).await;
    let process = DeliveryProcess::start(subject, "one").await;
    let mut before = process.acquire().await.unwrap();
    assert!(before.opened.target.previous_secret.is_none());
    subject.rotate_secret().await;
    assert!(before.read(due(0)).await.is_none());
    let after = process
        .acquire()
        .await
        .expect("the endpoint is available after the rotation");
    let (former, _) = after
        .opened
        .target
        .previous_secret
        .clone()
        .expect("the previous secret still signs");
    assert!(former == before.opened.target.secret && former != after.opened.target.secret);
}

/// An operator enables the endpoint: failed deliveries are due at once.
pub async fn enabling_makes_failed_deliveries_due<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = DeliveryProcess::start(subject, "one").await;
    let gone = Flush {
        gone: true,
        ..Flush::failed(1, number, 1, 8 * HOUR).failing(8 * HOUR)
    };
    process.acquire().await.unwrap().release(gone).await;
    subject.enable().await;
    assert!(subject.status().await.unwrap().enabled);
    let mut holder = process.acquire().await.expect("the delivery is due at once");
    assert_eq!(holder.read_numbers(due(number)).await, [number]);
}

/// Removal revokes the lease and deletes the endpoint's rows.
pub async fn removed_endpoint_is_not_leased<S: OutboxSubject>(subject: &S) {
    let number = subject.commit(1).await;
    let process = DeliveryProcess::start(subject, "one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::failed(1, number, 1, HOUR)).await.unwrap();
    subject.remove().await;
    assert!(holder.flush(Flush::failed(1, number, 2, HOUR)).await.is_none());
    assert!(process.acquire().await.is_none());
    assert_eq!(subject.status().await, None);
    assert_eq!(subject.row(number).await, None);
}

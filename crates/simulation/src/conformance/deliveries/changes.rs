//! Conformance cases: changes of an endpoint during delivery. Disabled, enabled, rotated, removed.

use super::endpoint::{EndpointFixture, Flush, HOUR, due};
use crate::conformance::subject::{EndpointChange, Subject};

/// Disabling revokes the lease and prevents another; after enabling, delivery resumes at the cursor.
pub async fn disabled_endpoint_is_not_leased<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1]).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::up_to(1)).await.unwrap();
    endpoint.change(EndpointChange::SetEnabled(false)).await;
    assert!(holder.flush(Flush::up_to(2)).await.is_none());
    assert!(process.acquire().await.is_none());
    endpoint.change(EndpointChange::SetEnabled(true)).await;
    let mut holder = process.acquire().await.expect("the endpoint is enabled");
    assert_eq!(holder.opened.cursor, 1);
    assert_eq!(holder.read_numbers(due(1)).await, [2]);
}

/// Events older than 24 hours are not delivered after an endpoint is enabled again.
pub async fn enabled_endpoint_gets_only_last_day<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.change(EndpointChange::SetEnabled(false)).await;
    endpoint.commit(1).await;
    endpoint.advance_time(25 * HOUR).await;
    endpoint.commit(1).await;
    endpoint.change(EndpointChange::SetEnabled(true)).await;
    let mut holder = endpoint.acquire("one").await;
    assert_eq!(holder.opened.cursor, 1);
    assert_eq!(holder.read_numbers(due(1)).await, [2]);
}

/// Rotation revokes the lease, so the next lease signs with both the new and the previous secret.
pub async fn rotation_revokes_lease_and_both_secrets_sign<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let mut before = process.acquire().await.unwrap();
    assert!(before.opened.target.previous_secret.is_none());
    endpoint.change(EndpointChange::RotateSecret).await;
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
pub async fn enabling_makes_failed_deliveries_due<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let gone = Flush {
        gone: true,
        ..Flush::failed(1, number, 1, 8 * HOUR).failing(8 * HOUR)
    };
    process.acquire().await.unwrap().release(gone).await;
    endpoint.change(EndpointChange::EnableByOperator).await;
    assert!(endpoint.status().await.unwrap().enabled);
    let mut holder = process.acquire().await.expect("the delivery is due at once");
    assert_eq!(holder.read_numbers(due(number)).await, [number]);
}

/// Removal revokes the lease and deletes the endpoint's rows.
pub async fn removed_endpoint_is_not_leased<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::failed(1, number, 1, HOUR)).await.unwrap();
    endpoint.change(EndpointChange::Remove).await;
    assert!(holder.flush(Flush::failed(1, number, 2, HOUR)).await.is_none());
    assert!(process.acquire().await.is_none());
    assert_eq!(endpoint.status().await, None);
    assert_eq!(endpoint.row(number).await, None);
}

//! Conformance cases: leases of an endpoint.

use std::time::Duration;

use vouchsafe_actors::delivery::outbox::LEASE_DURATION;

use super::endpoint::{EndpointFixture, Flush, HOUR, due};
use crate::conformance::subject::{EndpointChange, Subject};

const SECOND: Duration = Duration::from_secs(1);

/// A lease excludes other nodes and a second lease of the same process.
pub async fn endpoint_is_leased_by_one_process<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let [one, other] = [endpoint.start("one").await, endpoint.start("other").await];
    let holder = one.acquire().await;
    assert!(holder.is_some());
    assert!(other.acquire().await.is_none(), "another process holds the lease");
    assert!(
        one.acquire().await.is_none(),
        "the same process cannot lease it twice"
    );
}

/// An endpoint without new events and due deliveries is not leased.
pub async fn idle_endpoint_is_not_leased<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let process = endpoint.start("one").await;
    assert!(process.acquire().await.is_none(), "there are no events");
    endpoint.commit(1).await;
    let holder = process.acquire().await.expect("there is an event");
    holder.release(Flush::up_to(1)).await;
    assert!(process.acquire().await.is_none(), "the event is delivered");
}

pub async fn flush_renews_the_lease<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let other = endpoint.start("other").await;
    let mut holder = endpoint.acquire("one").await;
    for _ in 0..3 {
        endpoint.advance_time(LEASE_DURATION / 2).await;
        assert!(holder.flush(Flush::default()).await.is_some());
        assert!(other.acquire().await.is_none());
    }
}

/// A process that does not flush within the lease loses it to the next one, and writes nothing afterwards.
pub async fn expired_lease_goes_to_another_process<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let other = endpoint.start("other").await;
    let mut holder = endpoint.acquire("one").await;
    endpoint.advance_time(LEASE_DURATION + SECOND).await;
    let mut second = other.acquire().await.expect("the lease has expired");
    assert!(holder.flush(Flush::failed(1, number, 1, HOUR)).await.is_none());
    assert_eq!(endpoint.row(number).await, None);
    assert_eq!(endpoint.status().await.unwrap().cursor, 0);
    assert_eq!(
        second.read_numbers(due(0)).await,
        [number],
        "the second process continues"
    );
}

pub async fn released_lease_is_available<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let other = endpoint.start("other").await;
    endpoint.acquire("one").await.release(Flush::default()).await;
    assert!(other.acquire().await.is_some());
}

/// A restarted node does not wait for the lease of its previous incarnation, which is fenced.
pub async fn restarted_node_takes_over_at_once<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let first = endpoint.start("one").await;
    let mut holder = first.acquire().await.expect("there is an event");
    let mut second = endpoint.acquire("one").await;
    assert!(
        holder.flush(Flush::up_to(1)).await.is_none(),
        "the old incarnation is fenced"
    );
    assert!(
        first.acquire().await.is_none(),
        "the old incarnation stays fenced"
    );
    assert!(second.flush(Flush::up_to(1)).await.is_some());
}

/// After a crash that lost the lease's write, the next lease has the same number; its previous holder is
/// fenced all the same.
pub async fn lease_lost_in_crash_is_fenced<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    endpoint.change(EndpointChange::ForgetLastLease).await;
    let mut second = endpoint.acquire("other").await;
    assert_eq!(holder.opened.lease, second.opened.lease);
    assert!(holder.flush(Flush::failed(1, number, 1, HOUR)).await.is_none());
    assert!(holder.read(due(0)).await.is_none());
    assert!(second.flush(Flush::up_to(number)).await.is_some());
    assert_eq!(endpoint.row(number).await, None);
}

/// Until the loss is found, what was delivered of it does not count.
pub async fn cursor_beyond_the_feed_is_not_written<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 3]).await;
    let mut holder = endpoint.acquire("one").await;
    endpoint.change(EndpointChange::LoseEvents { after: 1 }).await;
    assert!(holder.flush(Flush::up_to(3)).await.is_none());
    assert_eq!(endpoint.status().await.unwrap().cursor, 0);
    assert!(holder.flush(Flush::up_to(1)).await.is_some());
}

/// The feed has grown past the cursor again, with other events, before an attempt of the former holder ends.
/// The next one does not wait for its lease.
pub async fn lease_of_a_lost_history_is_fenced<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 3]).await;
    let mut holder = endpoint.acquire("one").await;
    endpoint.change(EndpointChange::LoseEvents { after: 1 }).await;
    endpoint.change(EndpointChange::ReplaceHistory).await;
    endpoint.commit_all(&[4, 5]).await;
    assert!(holder.flush(Flush::up_to(3)).await.is_none());
    assert!(holder.read(due(3)).await.is_none());
    assert_eq!(endpoint.status().await.unwrap().cursor, 0);
    let mut next = endpoint.acquire("other").await;
    assert_eq!(next.read_numbers(due(0)).await, [1, 2, 3]);
}

pub async fn lost_lease_reads_nothing<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    assert_eq!(holder.read_numbers(due(0)).await, [1]);
    let _second = endpoint.acquire("one").await;
    assert!(holder.read(due(0)).await.is_none());
}

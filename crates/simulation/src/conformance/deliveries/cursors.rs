//! Conformance cases: the cursor of an endpoint and the page that follows it.

use vouchsafe_actors::delivery::outbox::LeaseAction;
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_domain::event_kind::{EventKind, EventKinds};

use super::endpoint::{EndpointFixture, Flush, HOUR, attempt, due, numbers};
use crate::conformance::subject::{EndpointChange, Subject};

/// A page holds events in commit order up to its limit, and reports whether there are more.
pub async fn events_are_read_by_number<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 1, 3, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    let all = holder.read(due(0)).await.unwrap();
    assert_eq!(
        (numbers(&all), all.scanned_to, all.has_more),
        (vec![1, 2, 3, 4, 5], 5, false)
    );
    assert!(
        all.pending
            .iter()
            .all(|pending| !pending.has_row && pending.attempts == 0)
    );
    let some = holder
        .read(ReadRequest::Due { after: 2, limit: 2 })
        .await
        .unwrap();
    assert_eq!(
        (numbers(&some), some.scanned_to, some.has_more),
        (vec![3, 4], 4, true)
    );
}

/// A late flush does not move the cursor back.
pub async fn cursor_never_moves_back<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1, 1]).await;
    let mut holder = endpoint.acquire("one").await;
    for (written, stored) in [(2, 2), (1, 2), (3, 3)] {
        holder.flush(Flush::up_to(written)).await.unwrap();
        assert_eq!(endpoint.status().await.unwrap().cursor, stored);
    }
}

/// Events delivered at the first attempt leave no row and are not sent by the next process.
pub async fn next_process_starts_at_cursor<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1, 1]).await;
    endpoint.acquire("one").await.release(Flush::up_to(2)).await;
    let mut next = endpoint.acquire("other").await;
    assert_eq!(next.opened.cursor, 2);
    assert_eq!(next.read_numbers(due(2)).await, [3]);
    assert_eq!(endpoint.row(1).await, None);
}

/// Events of kinds that the endpoint does not subscribe to are skipped.
pub async fn unsubscribed_kinds_are_skipped<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let kinds = EventKinds::of(&[EventKind::OrderCreated]).unwrap();
    endpoint.change(EndpointChange::SetEventKinds(kinds)).await;
    endpoint.commit_all(&[1, 1, 2, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    let page = holder.read(due(0)).await.unwrap();
    assert_eq!((numbers(&page), page.scanned_to), (vec![1, 3], 4));
}

/// A flush with an unknown outcome is retried: its rows, attempts and counts are written once.
pub async fn retried_flush_is_idempotent<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    let request = holder.flush_request(Flush::failed(1, number, 1, HOUR), LeaseAction::Keep(None));
    for _ in 0..2 {
        holder.send(request.clone()).await.unwrap();
        let row = endpoint.row(number).await.unwrap();
        assert_eq!((row.attempts, row.log), (1, vec![attempt(500, 1)]));
        let status = endpoint.status().await.unwrap();
        assert_eq!((status.delivered, status.refused), (0, 1));
    }
    holder.release(Flush::delivered(1, number, number)).await;
    let status = endpoint.status().await.unwrap();
    assert_eq!((status.delivered, status.refused), (1, 1));
}

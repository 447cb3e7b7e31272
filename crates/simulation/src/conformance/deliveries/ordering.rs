//! Conformance cases: deliveries of an order are sequential, orders are independent.

use vouchsafe_actors::delivery::queue::ReadRequest;

use super::endpoint::{EndpointFixture, Flush, HOUR, due, numbers};
use crate::conformance::subject::Subject;
use crate::rows::RowState;

/// When a delivery is accepted or expires, the next of its order is due and the one after that stays blocked.
pub async fn next_delivery_of_order_is_due_after_previous_ends<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1, 1, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    let failed = Flush::failed(1, 1, 1, HOUR).blocking(1, &[2, 3]);
    holder.flush(failed).await.unwrap();
    assert_eq!(
        holder.read_numbers(due(3)).await,
        [4],
        "the other order continues"
    );
    holder.flush(Flush::delivered(1, 1, 4)).await.unwrap();
    assert_eq!(holder.read_numbers(due(4)).await, [2]);
    assert_eq!(endpoint.row(3).await.unwrap().state, RowState::Blocked);
    endpoint.advance_time(24 * HOUR).await;
    holder.flush(Flush::expired(1, 2, 4)).await.unwrap();
    assert_eq!(holder.read_numbers(due(4)).await, [3]);
}

/// A new event of an order with a waiting row is marked as behind it; events of other orders are not.
pub async fn event_behind_waiting_row_is_marked<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 1, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::failed(1, 1, 1, HOUR)).await.unwrap();
    let page = holder.read(due(1)).await.unwrap();
    let is_blocked: Vec<_> = page.pending.iter().map(|pending| pending.is_blocked).collect();
    assert_eq!(
        (numbers(&page), is_blocked),
        (vec![2, 3, 4], vec![false, true, false])
    );
}

/// An event replayed before its first attempt is read in sequence: not before an earlier event of its order,
/// which does not wait for it either.
pub async fn row_among_unread_events_is_read_in_sequence<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 1, 1]).await;
    endpoint.replay(3..=3).await;
    let mut holder = endpoint.acquire("one").await;
    let page = holder.read(due(0)).await.unwrap();
    let stored: Vec<_> = page.pending.iter().map(|pending| pending.has_row).collect();
    assert_eq!(
        (numbers(&page), stored),
        (vec![1, 2, 3, 4], vec![false, false, true, false])
    );
    let is_blocked: Vec<_> = page.pending.iter().map(|pending| pending.is_blocked).collect();
    assert_eq!(is_blocked, [false, false, false, true]);
    assert_eq!(
        holder.read_numbers(ReadRequest::Due { after: 0, limit: 1 }).await,
        [1]
    );
    assert_eq!(
        holder
            .read_numbers(ReadRequest::Oldest { after: 0, limit: 64 })
            .await,
        [1, 2, 3, 4]
    );
    assert_eq!(
        holder.read_numbers(due(3)).await,
        [3, 4],
        "past the cursor it is read like any row"
    );
}

//! Conformance cases: replays.

use vouchsafe_actors::delivery::outbox::LeaseAction;
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;

use super::endpoint::{EndpointFixture, Flush, HOUR, LeaseHolder, due};
use crate::conformance::subject::Subject;
use crate::rows::RowState;

/// A replayed delivery is due at once with no attempts and 24 hours from now.
pub async fn replayed_event_is_due_at_once_for_a_day<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    process
        .acquire()
        .await
        .unwrap()
        .release(Flush::up_to(number))
        .await;
    endpoint.advance_time(100 * HOUR).await;
    assert!(process.acquire().await.is_none(), "the endpoint is idle");
    endpoint.replay(number..=number).await;
    let mut holder = process.acquire().await.expect("the delivery is due");
    let page = holder.read(due(number)).await.unwrap();
    let [pending] = &page.pending[..] else {
        panic!("expected one due delivery: {page:?}")
    };
    assert_eq!(
        (pending.event.number, pending.attempts, pending.has_row),
        (number, 0, true)
    );
    assert!(pending.give_up_in > time::Duration::hours(23), "{page:?}");
}

/// A replay blocks later waiting deliveries of its order until it ends.
pub async fn replay_precedes_waiting_deliveries_of_its_order<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    let failed = Flush {
        cursor: 3,
        ..Flush::failed(1, 2, 1, HOUR)
    };
    holder.flush(failed).await.unwrap();
    endpoint.replay(1..=1).await;
    endpoint.advance_time(2 * HOUR).await;
    assert_eq!(
        holder.read_numbers(due(3)).await,
        [1],
        "the other delivery is due by time but blocked"
    );
    assert_eq!(endpoint.row(2).await.unwrap().state, RowState::Blocked);
    holder
        .flush(Flush::delivered(1, 1, 3).with_replays(1))
        .await
        .unwrap();
    assert_eq!(holder.read_numbers(due(3)).await, [2]);
}

/// A replay also blocks a later delivery whose attempt was in flight during the replay and fails.
pub async fn replay_precedes_failing_attempt_of_its_order<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1]).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::up_to(1)).await.unwrap();
    assert_eq!(holder.read_numbers(due(1)).await, [2]);
    endpoint.replay(1..=1).await;
    holder.flush(Flush::failed(1, 2, 1, HOUR)).await.unwrap();
    endpoint.advance_time(2 * HOUR).await;
    assert_eq!(holder.read_numbers(due(2)).await, [1]);
}

/// Of several replays of an order only the first is due; orders do not block each other.
pub async fn replays_of_an_order_are_sequential<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 1, 2, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::up_to(4)).await.unwrap();
    endpoint.replay(1..=4).await;
    assert_eq!(holder.read_numbers(due(4)).await, [1, 3]);
    holder
        .flush(Flush::delivered(1, 1, 4).with_replays(1))
        .await
        .unwrap();
    assert_eq!(holder.read_numbers(due(4)).await, [2, 3]);
}

/// A replay makes an endpoint due again that failed for a day and has nothing waiting.
pub async fn replay_wakes_failed_endpoint<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    endpoint.advance_time(24 * HOUR).await;
    holder
        .flush(Flush::expired(1, number, number).failing(8 * HOUR))
        .await
        .unwrap();
    let caught_up = Flush {
        failures: FAILING_THRESHOLD - 1,
        ..Flush::up_to(number)
    };
    holder.release(caught_up).await;
    assert!(process.acquire().await.is_none());
    endpoint.replay(number..=number).await;
    let mut holder = process.acquire().await.expect("the delivery is due");
    assert_eq!(holder.read_numbers(due(number)).await, [number]);
}

/// An attempt ends only the replay to which it belongs; a second replay during the attempt is due at once.
pub async fn successful_attempt_does_not_end_later_replay<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::up_to(number)).await.unwrap();
    for replays in 1..=2 {
        endpoint.replay(number..=number).await;
        assert_eq!(read_replay_counts(&mut holder, number).await, [replays]);
    }
    let flush = |replays| Flush::delivered(1, number, number).with_replays(replays);
    holder.flush(flush(1)).await.unwrap();
    let row = endpoint.row(number).await.unwrap();
    assert_eq!((row.state, row.log.len()), (RowState::Waiting, 1));
    assert_eq!(read_replay_counts(&mut holder, number).await, [2]);
    holder.flush(flush(2)).await.unwrap();
    assert_eq!(endpoint.row(number).await.unwrap().state, RowState::Delivered);
}

/// A failed or expired attempt does not delay a later replay.
pub async fn failed_attempt_does_not_delay_later_replay<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    let failed = Flush::failed(1, 1, 1, HOUR);
    holder.flush(Flush { cursor: 2, ..failed }).await.unwrap();
    endpoint.advance_time(25 * HOUR).await;
    endpoint.replay(1..=1).await;
    holder.flush(Flush::expired(1, 1, 2)).await.unwrap();
    holder.flush(Flush::failed(1, 1, 2, 8 * HOUR)).await.unwrap();
    let row = endpoint.row(1).await.unwrap();
    assert_eq!(
        (row.state, row.attempts, row.log.len()),
        (RowState::Waiting, 0, 2)
    );
    assert_eq!(read_replay_counts(&mut holder, 2).await, [1]);
}

/// The first attempt of an event without a row does not end a replay requested meanwhile.
pub async fn first_attempt_does_not_end_replay<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 2]).await;
    let mut holder = endpoint.acquire("one").await;
    assert_eq!(holder.read_numbers(due(0)).await, [1, 2, 3]);
    endpoint.replay(1..=3).await;
    holder.flush(Flush::delivered(1, 1, 1)).await.unwrap();
    let failed = Flush::failed(2, 2, 1, HOUR).blocking(2, &[3]);
    holder.flush(Flush { cursor: 3, ..failed }).await.unwrap();
    assert_eq!(read_replay_counts(&mut holder, 3).await, [1, 1], "one per order");
    let states = [
        endpoint.row(2).await.unwrap().state,
        endpoint.row(3).await.unwrap().state,
    ];
    assert_eq!(states, [RowState::Waiting, RowState::Blocked]);
}

/// A retried flush does not end a replay requested between its two writes.
pub async fn retried_flush_does_not_end_later_replay<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::failed(1, number, 1, HOUR)).await.unwrap();
    let request = holder.flush_request(Flush::delivered(1, number, number), LeaseAction::Keep(None));
    holder.send(request.clone()).await.unwrap();
    assert_eq!(endpoint.row(number).await.unwrap().state, RowState::Delivered);
    endpoint.replay(number..=number).await;
    holder.send(request).await.unwrap();
    let row = endpoint.row(number).await.unwrap();
    assert_eq!((row.state, row.log.len()), (RowState::Waiting, 2));
    assert_eq!(read_replay_counts(&mut holder, number).await, [1]);
}

/// The next lease holder reads the replay count and ends that replay.
pub async fn replay_count_is_read_by_next_process<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::up_to(number)).await.unwrap();
    for _ in 0..2 {
        endpoint.replay(number..=number).await;
    }
    assert_eq!(read_replay_counts(&mut holder, number).await, [2]);
    let mut next = endpoint.acquire("one").await;
    let flush = || Flush::delivered(1, number, number).with_replays(2);
    assert!(holder.flush(flush()).await.is_none(), "the lease is lost");
    assert_eq!(read_replay_counts(&mut next, number).await, [2]);
    next.flush(flush()).await.unwrap();
    assert_eq!(endpoint.row(number).await.unwrap().state, RowState::Delivered);
}

/// Replay count of each due delivery.
async fn read_replay_counts(holder: &mut LeaseHolder, after: i64) -> Vec<u32> {
    let page = holder.read(due(after)).await.expect("the lease is held");
    page.pending.iter().map(|pending| pending.replays).collect()
}

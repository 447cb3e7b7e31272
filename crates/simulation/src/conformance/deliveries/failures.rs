//! Conformance cases: failed deliveries, their retries, attempt log and expiry.

use std::time::Duration;

use vouchsafe_actors::delivery::queue::ReadRequest;

use super::endpoint::{EndpointFixture, Flush, HOUR, attempt, due, numbers};
use crate::conformance::subject::{EndpointChange, Subject};
use crate::rows::RowState;

/// A failed delivery is not read before it is due; until then no process needs the lease.
pub async fn failed_delivery_waits_until_due<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::failed(1, number, 1, 2 * HOUR)).await.unwrap();
    let page = holder.read(due(number)).await.unwrap();
    assert!(page.pending.is_empty(), "{page:?}");
    let next = page.next_due_in.expect("the delivery will be retried");
    assert!(next > HOUR && next <= 2 * HOUR, "{next:?}");
    holder
        .release(Flush {
            failures: 1,
            ..Flush::up_to(number)
        })
        .await;
    endpoint.advance_time(HOUR).await;
    assert!(process.acquire().await.is_none(), "the delivery is not due yet");
    endpoint.advance_time(HOUR).await;
    let mut holder = process.acquire().await.expect("the delivery is due");
    assert_eq!(
        (holder.opened.consecutive_failures, holder.opened.cursor),
        (1, number)
    );
    let page = holder.read(due(number)).await.unwrap();
    let [pending] = &page.pending[..] else {
        panic!("expected one due delivery: {page:?}")
    };
    assert_eq!(
        (pending.event.number, pending.attempts, pending.has_row),
        (number, 1, true)
    );
}

/// Every attempt is logged in the row, in order, and counted.
pub async fn attempts_are_logged<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    for attempts in 1..=3 {
        holder
            .flush(Flush::failed(1, number, attempts, HOUR))
            .await
            .unwrap();
    }
    let delivered = Flush {
        attempts: vec![(number, attempt(204, 4))],
        ..Flush::delivered(1, number, number)
    };
    holder.flush(delivered).await.unwrap();
    let row = endpoint.row(number).await.unwrap();
    assert_eq!(row.state, RowState::Delivered);
    assert_eq!(
        row.log,
        [attempt(500, 1), attempt(500, 2), attempt(500, 3), attempt(204, 4)]
    );
    let status = endpoint.status().await.unwrap();
    assert_eq!((status.delivered, status.refused, status.failures), (1, 3, 0));
}

/// A failing endpoint is not leased before its next attempt, even if there are new events. After that its
/// deliveries are read, due or not; one that waits for its order is not.
pub async fn failing_endpoint_retries_oldest_and_ignores_new_events<S: Subject>(
    endpoint: EndpointFixture<'_, S>,
) {
    endpoint.commit_all(&[1, 1, 2]).await;
    let process = endpoint.start("one").await;
    let failing = Flush::failed(1, 1, 1, 8 * HOUR).blocking(1, &[2]).failing(HOUR);
    process.acquire().await.unwrap().release(failing).await;
    endpoint.commit(3).await;
    assert!(process.acquire().await.is_none());
    endpoint.advance_time(HOUR).await;
    let mut holder = process.acquire().await.expect("the delivery will be retried");
    assert!(holder.opened.retry_in < HOUR);
    assert_eq!(
        holder.read_numbers(due(2)).await,
        [3, 4],
        "none of the rows is due"
    );
    assert_eq!(
        holder
            .read_numbers(ReadRequest::Oldest { after: 2, limit: 64 })
            .await,
        [1, 3, 4]
    );
}

/// Rows of a failing endpoint are read in the order in which their retry windows end: the windows of replays
/// end later.
pub async fn failing_endpoint_reads_ending_windows_first<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 3]).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    for (sequence, number) in [(1, 1), (2, 2)] {
        let failed = Flush::failed(sequence, number, 1, 8 * HOUR).failing(HOUR);
        holder.flush(failed).await.unwrap();
    }
    endpoint.advance_time(HOUR).await;
    endpoint.replay(1..=1).await;
    let oldest = |limit| ReadRequest::Oldest { after: 2, limit };
    assert_eq!(holder.read_numbers(oldest(64)).await, [2, 1, 3]);
    assert_eq!(holder.read_numbers(oldest(1)).await, [2, 3], "a row and an event");
}

/// A requested retry revokes the lease, makes failed deliveries due and tells the next lease up to which
/// event.
pub async fn requested_retry_makes_everything_due<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 3]).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    let failed = Flush::failed(1, 1, 1, 8 * HOUR).failing(8 * HOUR);
    holder.flush(failed).await.unwrap();
    endpoint.change(EndpointChange::RequestRetry).await;
    assert!(holder.read(due(1)).await.is_none(), "the lease is revoked");
    endpoint.commit(4).await;
    let mut holder = process.acquire().await.expect("the endpoint is due");
    assert_eq!(
        (holder.opened.retry_to, holder.opened.retry_in),
        (3, Duration::ZERO)
    );
    let page = holder
        .read(ReadRequest::Oldest { after: 1, limit: 64 })
        .await
        .unwrap();
    let due_in: Vec<_> = page
        .pending
        .iter()
        .map(|pending| pending.due_in.is_positive())
        .collect();
    assert_eq!((numbers(&page), due_in), (vec![1, 2, 3, 4], vec![false; 4]));
}

/// A requested retry of an endpoint that works repeats no attempt in flight: the lease stays, and the failed
/// delivery is due at once, also for a later holder. A replay is due at once there as well.
pub async fn requested_retry_of_a_working_endpoint_keeps_its_lease<S: Subject>(
    endpoint: EndpointFixture<'_, S>,
) {
    endpoint.commit_all(&[1, 2]).await;
    let process = endpoint.start("one").await;
    let mut holder = process.acquire().await.unwrap();
    holder.flush(Flush::failed(1, 1, 1, 8 * HOUR)).await.unwrap();
    holder.flush(Flush::up_to(2)).await.unwrap();
    endpoint.change(EndpointChange::RequestRetry).await;
    let page = holder.read(due(2)).await.expect("the lease stays");
    assert_eq!((numbers(&page), page.retry_to), (vec![1], 2));
    holder.release(Flush::up_to(2)).await;
    let mut holder = process.acquire().await.expect("the endpoint is due");
    let failed_again = Flush {
        failures: 1,
        ..Flush::failed(1, 1, 2, 8 * HOUR)
    };
    holder.flush(failed_again).await.unwrap();
    holder
        .release(Flush {
            failures: 1,
            ..Flush::up_to(2)
        })
        .await;
    assert!(process.acquire().await.is_none(), "the next attempt is in hours");
    endpoint.change(EndpointChange::RequestRetry).await;
    let holder = process
        .acquire()
        .await
        .expect("one failure is not a failing endpoint");
    holder
        .release(Flush {
            failures: 1,
            recovered: true,
            ..Flush::failed(1, 1, 3, 8 * HOUR)
        })
        .await;
    let mut holder = process.acquire().await.expect("recovery makes rows due");
    assert_eq!(holder.opened.retry_to, 0, "recovery ends a requested retry");
    let failed_again = Flush {
        failures: 1,
        ..Flush::failed(1, 1, 4, 8 * HOUR)
    };
    holder.flush(failed_again).await.unwrap();
    holder
        .release(Flush {
            failures: 1,
            ..Flush::up_to(2)
        })
        .await;
    endpoint.replay(2..=2).await;
    assert!(process.acquire().await.is_some(), "a replay is due");
}

/// Recovery makes rows that wait for an attempt due at once; rows blocked by their order stay blocked.
pub async fn recovery_makes_failed_deliveries_due<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    endpoint.commit_all(&[1, 2, 2, 3]).await;
    let mut holder = endpoint.acquire("one").await;
    holder.flush(Flush::failed(1, 1, 1, HOUR)).await.unwrap();
    holder
        .flush(Flush::failed(2, 2, 1, 8 * HOUR).blocking(2, &[3]))
        .await
        .unwrap();
    holder.flush(Flush::failed(3, 4, 1, 8 * HOUR)).await.unwrap();
    assert!(holder.read_numbers(due(4)).await.is_empty());
    let recovered = Flush {
        recovered: true,
        ..Flush::delivered(1, 1, 4)
    };
    holder.flush(recovered).await.unwrap();
    assert_eq!(holder.read_numbers(due(4)).await, [2, 4]);
}

/// The 24 hours count from the event's commit, attempted or not.
pub async fn delivery_expires_a_day_after_its_event<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let mut holder = endpoint.acquire("one").await;
    endpoint.advance_time(22 * HOUR).await;
    let is_soon =
        |ends_in: time::Duration| ends_in > time::Duration::HOUR && ends_in <= time::Duration::hours(2);
    let page = holder.read(due(0)).await.unwrap();
    assert!(is_soon(page.pending[0].give_up_in), "{page:?}");
    holder
        .flush(Flush::failed(1, number, 1, Duration::ZERO))
        .await
        .unwrap();
    let page = holder.read(due(number)).await.unwrap();
    assert!(is_soon(page.pending[0].give_up_in), "{page:?}");
}

/// A 410 disables the endpoint and keeps its rows. A flush without the lease does not disable it.
pub async fn gone_receiver_is_disabled<S: Subject>(endpoint: EndpointFixture<'_, S>) {
    let number = endpoint.commit(1).await;
    let process = endpoint.start("one").await;
    let mut former = process.acquire().await.unwrap();
    let mut holder = endpoint.acquire("one").await;
    let gone = || Flush {
        gone: true,
        ..Flush::failed(1, number, 1, HOUR)
    };
    assert!(former.flush(gone()).await.is_none());
    assert!(endpoint.status().await.unwrap().enabled);
    holder.flush(gone()).await.unwrap();
    assert!(!endpoint.status().await.unwrap().enabled);
    holder.release(gone()).await;
    endpoint.advance_time(2 * HOUR).await;
    assert!(process.acquire().await.is_none(), "the endpoint is disabled");
    assert_eq!(endpoint.row(number).await.unwrap().state, RowState::Waiting);
}

//! Tests of a failing endpoint: probes, last attempts and requested retries.

use super::*;

/// Five failed orders, an event blocked by the first, and one that was not attempted.
fn failing() -> DeliveryQueue {
    let mut page: Vec<_> = (1..=5).map(|n| event(n, n.unsigned_abs().into())).collect();
    page.extend([event(6, 1), event(7, 7)]);
    let mut queue = queue(page, 7);
    queue.concurrency = 5;
    assert_eq!(start_all(&mut queue, 0), [1, 2, 3, 4, 5]);
    for number in 1..=5 {
        assert!(!queue.is_failing());
        fail(&mut queue, number, 1);
    }
    assert!(queue.is_failing());
    queue
}

/// The read of a failing endpoint.
fn oldest(after: i64) -> Option<ReadRequest> {
    Some(ReadRequest::Oldest {
        after,
        limit: FAILING_READ_LIMIT,
    })
}

/// Rows of the five orders of [`failing`] after one failure each, which are given up at second 100 and later.
fn failed_rows() -> Vec<LoadedDelivery> {
    let rows = (1..=5).map(|n| row(n, n.unsigned_abs().into(), 1, 11));
    rows.map(|mut read| {
        read.delivery.give_up_at = secs(99 + read.delivery.number.unsigned_abs());
        read
    })
    .collect()
}

#[test]
fn failing_endpoint_is_probed_by_the_oldest_and_recovery_makes_the_others_due() {
    let mut queue = failing();
    let (cursor, rows) = take_outcomes(&mut queue);
    assert_eq!((cursor, rows.len()), (6, 6), "the seventh stays past the cursor");
    assert_eq!(queue.next_read(), oldest(6));
    let page = failed_rows().into_iter().chain([event(7, 7)]).collect();
    load(&mut queue, page, 7);
    assert_eq!(start_all(&mut queue, 10), Vec::<i64>::new());
    assert_eq!(start_all(&mut queue, 11), [1], "the others wait");
    fail(&mut queue, 1, 12);
    assert_eq!(
        take_outcomes(&mut queue),
        (6, vec![(1, DeliveryOutcome::RetryAt(secs(22)))])
    );
    let mut page = failed_rows();
    page[0].delivery.attempts = 2;
    page[0].delivery.due_at = secs(22);
    page.push(event(7, 7));
    load(&mut queue, page, 7);
    assert_eq!(queue.next_due_at(), Some(secs(22)));
    assert_eq!(start_all(&mut queue, 22), [1]);
    succeed(&mut queue, 1, 22);
    let changes = queue.take_changes();
    assert!(changes.recovered && changes.health == EndpointHealth::default());
    queue.concurrency = MAX_CONCURRENCY;
    assert_eq!(
        start_all(&mut queue, 22),
        [2, 3, 4, 5, 7],
        "the others follow at once"
    );
}

#[test]
fn each_delivery_of_a_failing_endpoint_is_attempted_when_its_retry_window_ends() {
    let mut queue = failing();
    drop(queue.take_changes());
    queue.health.not_before = secs(90);
    let mut oldest = row(1, 1, 11, 90);
    oldest.delivery.give_up_at = secs(1_000);
    let ends_at = |number: i64, name, at| {
        let mut read = event(number, name);
        read.delivery.give_up_at = secs(at);
        read
    };
    // The oldest was replayed, so the windows of later events end before its own.
    let page = vec![oldest, ends_at(7, 7, 50), ends_at(8, 7, 51), ends_at(9, 9, 50)];
    load(&mut queue, page, 9);
    queue.health.backoff_step = 8;
    assert_eq!(start_all(&mut queue, 49), Vec::<i64>::new());
    assert_eq!(queue.next_due_at(), Some(secs(50)));
    assert_eq!(start_all(&mut queue, 50), [7, 9], "one of each order");
    fail(&mut queue, 7, 50);
    fail(&mut queue, 9, 52);
    assert_eq!(
        take_outcomes(&mut queue),
        (
            9,
            vec![
                (7, DeliveryOutcome::Failed),
                (8, DeliveryOutcome::Blocked),
                (9, DeliveryOutcome::Failed)
            ]
        ),
        "given up after their own attempts; the next of an order gets a row, so that the scan goes on"
    );
    let mut next_of_order = row(8, 7, 0, 52);
    next_of_order.delivery.give_up_at = secs(51);
    load(&mut queue, vec![oldest, next_of_order], 9);
    assert_eq!(start_all(&mut queue, 52), Vec::<i64>::new(), "spread over time");
    assert_eq!(start_all(&mut queue, 53), [8]);
}

#[test]
fn last_attempts_are_limited_and_read_ahead() {
    let mut queue = failing();
    drop(queue.take_changes());
    let ended = |numbers: std::ops::RangeInclusive<i64>| {
        let read = numbers.map(|number| {
            let mut read = event(number, number.unsigned_abs().into());
            read.delivery.give_up_at = secs(2);
            read
        });
        read.collect::<Vec<_>>()
    };
    load(&mut queue, ended(7..=38), 38);
    assert_eq!(queue.next_read(), None);
    let started = start_all(&mut queue, 100);
    assert_eq!(started.len(), MAX_CONCURRENCY);
    started.iter().for_each(|number| fail(&mut queue, *number, 101));
    assert_eq!(queue.next_read(), oldest(22));
    load(&mut queue, ended(23..=54), 54);
    assert_eq!(start_all(&mut queue, 101), Vec::<i64>::new());
    assert_eq!(start_all(&mut queue, 102).len(), MAX_CONCURRENCY);
}

#[test]
fn requested_retry_attempts_what_waited_once_while_the_endpoint_fails() {
    let mut queue = DeliveryQueue::new(
        6,
        7,
        EndpointHealth {
            consecutive_failures: FAILING_THRESHOLD,
            backoff_step: 8,
            not_before: secs(500),
        },
        PAUSE,
    );
    let mut page = failed_rows();
    // The store made the rows due.
    page.iter_mut().for_each(|read| read.delivery.due_at = secs(1));
    page.extend([event(7, 7), event(8, 8)]);
    load(&mut queue, page, 8);
    assert_eq!(
        start_all(&mut queue, 1),
        [1, 2, 3, 4, 5, 7],
        "not the eighth, which is newer"
    );
    let mut again = failed_rows();
    for read in &mut again {
        let delivery = &mut read.delivery;
        fail(&mut queue, delivery.number, 2);
        let updates = queue.take_changes().updates;
        assert_eq!(
            updates[0].outcome,
            DeliveryOutcome::RetryAt(delivery.give_up_at),
            "one attempt each"
        );
        delivery.due_at = delivery.give_up_at;
    }
    fail(&mut queue, 7, 2);
    assert_eq!(queue.next_read(), oldest(7));
    load(&mut queue, again, 8);
    assert_eq!(start_all(&mut queue, 11), Vec::<i64>::new());
    assert_eq!(start_all(&mut queue, 12), [1], "the oldest probes again");
    assert_eq!(start_all(&mut queue, 99), Vec::<i64>::new());
}

#[test]
fn recovery_ends_a_requested_retry() {
    let mut queue = failing();
    drop(queue.take_changes());
    queue.set_retry_to(7);
    let mut due = failed_rows();
    due.iter_mut().for_each(|read| read.delivery.due_at = secs(1));
    load(&mut queue, due, 7);
    assert_eq!(start_all(&mut queue, 2), [1, 2, 3, 4, 5]);
    succeed(&mut queue, 1, 2);
    assert!(!queue.is_retry_requested(&event(1, 1).delivery));
}

#[test]
fn next_attempt_of_an_empty_queue_is_as_early_as_it_can_be() {
    let mut queue = failing();
    drop(queue.take_changes());
    assert_eq!(
        queue.failing_due_at(),
        secs(2),
        "if this process ends now, the next one reads at once"
    );
    load(&mut queue, failed_rows(), 7);
    assert_eq!(queue.failing_due_at(), secs(11));
}

#[test]
fn next_event_is_attempted_when_none_waits_and_one_failure_suffices() {
    let mut queue = failing();
    drop(queue.take_changes());
    load(&mut queue, vec![], 7);
    assert!(!queue.is_failing());
    load(&mut queue, vec![event(8, 8), event(9, 9)], 9);
    assert_eq!(start_all(&mut queue, 60), [8], "one at a time");
    fail(&mut queue, 8, 60);
    assert!(queue.is_failing());
    assert_eq!(queue.cursor(), 8, "the ninth is read again");
}

#[test]
fn new_oldest_event_inherits_the_backoff() {
    let mut queue = failing();
    drop(queue.take_changes());
    queue.health.backoff_step = 8;
    queue.health.not_before = secs(500);
    load(&mut queue, vec![event(7, 7)], 7);
    assert_eq!(queue.next_due_at(), Some(secs(500)));
    assert_eq!(start_all(&mut queue, 500), [7]);
    let requested_attempts = std::cell::Cell::new(0);
    queue.record_attempt(7, AttemptOutcome::Failed(None), secs(501), |attempts, _| {
        requested_attempts.set(attempts);
        Some(secs(900))
    });
    assert_eq!(
        requested_attempts.get(),
        8,
        "the event's first failure, the endpoint's eighth backoff step"
    );
}

#[test]
fn event_that_was_evicted_during_a_read_is_read_again_after_the_recovery() {
    let mut queue = queue(
        (1..=8)
            .map(|number| event(number, number.unsigned_abs().into()))
            .collect(),
        8,
    );
    queue.concurrency = 6;
    assert_eq!(start_all(&mut queue, 0), [1, 2, 3, 4, 5, 6]);
    let request = queue.next_read().unwrap();
    (1..=5).for_each(|number| fail(&mut queue, number, 1));
    assert!(queue.is_failing(), "7 and 8 are evicted");
    succeed(&mut queue, 6, 1);
    assert!(
        !queue.load(request, vec![event(9, 9)], 9),
        "7 and 8 lie before it"
    );
    assert_eq!(queue.cursor(), 6);
    load(&mut queue, vec![event(7, 7), event(8, 8), event(9, 9)], 9);
    assert_eq!(start_all(&mut queue, 1), [7, 8]);
}

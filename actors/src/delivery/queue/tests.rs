//! Queue tables: what is read, what may be attempted, outcomes, and what is written.

mod failing;
mod replays;

use super::*;

const PAUSE: Duration = Duration::from_secs(5);
const NEVER: Duration = Duration::from_secs(1_000_000);

fn order(name: u128) -> OrderId {
    OrderId::from_uuid(uuid::Uuid::from_u128(name))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Event `number` of an order, without a row.
fn event(number: i64, name: u128) -> LoadedDelivery {
    LoadedDelivery {
        delivery: QueuedDelivery {
            number,
            order_id: order(name),
            attempts: 0,
            replays: 0,
            has_row: false,
            due_at: Duration::ZERO,
            give_up_at: NEVER,
        },
        is_blocked: false,
    }
}

/// The same with a row, after `attempts` failed attempts.
fn row(number: i64, name: u128, attempts: u32, due: u64) -> LoadedDelivery {
    let mut read = event(number, name);
    read.delivery.has_row = true;
    read.delivery.attempts = attempts;
    read.delivery.due_at = secs(due);
    read
}

/// The same with a row, after `replays` replays.
fn replayed(number: i64, name: u128, replays: u32) -> LoadedDelivery {
    let mut read = row(number, name, 0, 0);
    read.delivery.replays = replays;
    read
}

/// Schedules the next attempt ten seconds after this one, unless this was the last.
fn in_ten_seconds(at: u64) -> impl Fn(u32, Duration) -> Option<Duration> {
    move |_, ends| (secs(at) < ends).then(|| (secs(at) + secs(10)).min(ends))
}

fn queue(page: Vec<LoadedDelivery>, scanned_to: i64) -> DeliveryQueue {
    let mut queue = DeliveryQueue::new(0, 0, EndpointHealth::default(), PAUSE);
    queue.concurrency = MAX_CONCURRENCY;
    load(&mut queue, page, scanned_to);
    queue
}

fn load(queue: &mut DeliveryQueue, page: Vec<LoadedDelivery>, scanned_to: i64) {
    let request = queue.next_read().expect("the queue has room");
    assert!(queue.load(request, page, scanned_to));
}

/// Starts everything that may be attempted now.
fn start_all(queue: &mut DeliveryQueue, at: u64) -> Vec<i64> {
    std::iter::from_fn(|| queue.start_next(secs(at)))
        .map(|waiting| waiting.number)
        .collect()
}

fn succeed(queue: &mut DeliveryQueue, number: i64, at: u64) {
    queue.record_attempt(number, AttemptOutcome::Delivered, secs(at), in_ten_seconds(at));
}

fn fail(queue: &mut DeliveryQueue, number: i64, at: u64) {
    queue.record_attempt(number, AttemptOutcome::Failed(None), secs(at), in_ten_seconds(at));
}

fn take_outcomes(queue: &mut DeliveryQueue) -> (i64, Vec<(i64, DeliveryOutcome)>) {
    let changes = queue.take_changes();
    let take_outcomes = changes.updates.iter().map(|mark| (mark.number, mark.outcome));
    (changes.cursor, take_outcomes.collect())
}

#[test]
fn orders_are_parallel_and_events_of_an_order_sequential() {
    let mut queue = queue(vec![event(1, 1), event(2, 1), event(3, 2), event(5, 1)], 5);
    assert_eq!(start_all(&mut queue, 0), [1, 3]);
    succeed(&mut queue, 3, 0);
    assert_eq!(queue.cursor(), 0, "the first is still in flight");
    succeed(&mut queue, 1, 0);
    assert_eq!((queue.cursor(), start_all(&mut queue, 0)), (1, vec![2]));
    succeed(&mut queue, 2, 0);
    assert_eq!(
        (queue.cursor(), start_all(&mut queue, 0)),
        (4, vec![5]),
        "the endpoint does not subscribe to event 4"
    );
    succeed(&mut queue, 5, 0);
    assert_eq!(
        take_outcomes(&mut queue),
        (5, vec![]),
        "an event delivered on the first attempt leaves no row"
    );
    assert_eq!(queue.len(), 0);
}

#[test]
fn failed_event_and_its_followers_get_rows_while_other_orders_continue() {
    let mut queue = queue(vec![event(1, 1), event(2, 1), event(3, 2), event(4, 2)], 4);
    assert_eq!(start_all(&mut queue, 0), [1, 3]);
    fail(&mut queue, 1, 2);
    succeed(&mut queue, 3, 2);
    let rows = vec![
        (1, DeliveryOutcome::RetryAt(secs(12))),
        (2, DeliveryOutcome::Blocked),
    ];
    assert_eq!(take_outcomes(&mut queue), (3, rows));
    assert_eq!(start_all(&mut queue, 2), [4], "another order is not blocked");
    let mut later = event(5, 1);
    later.is_blocked = true;
    load(&mut queue, vec![later], 5);
    assert_eq!(
        take_outcomes(&mut queue),
        (3, vec![(5, DeliveryOutcome::Blocked)])
    );
    load(&mut queue, vec![row(1, 1, 1, 12)], 5);
    assert_eq!(start_all(&mut queue, 11), Vec::<i64>::new());
    assert_eq!(queue.next_due_at(), Some(secs(12)));
    assert_eq!(start_all(&mut queue, 12), [1]);
    succeed(&mut queue, 1, 12);
    succeed(&mut queue, 4, 12);
    assert_eq!(
        take_outcomes(&mut queue),
        (5, vec![(1, DeliveryOutcome::Delivered)])
    );
}

#[test]
fn event_is_given_up_after_last_attempt_and_next_of_order_follows() {
    let mut first = row(1, 1, 11, 0);
    first.delivery.give_up_at = secs(100);
    let mut queue = queue(vec![first, event(2, 1)], 2);
    assert_eq!(start_all(&mut queue, 100), [1]);
    fail(&mut queue, 1, 100);
    assert_eq!(
        take_outcomes(&mut queue),
        (
            2,
            vec![(1, DeliveryOutcome::Failed), (2, DeliveryOutcome::Blocked)]
        ),
        "the store determines the next one"
    );
    load(&mut queue, vec![row(2, 1, 0, 100)], 2);
    assert_eq!(start_all(&mut queue, 100), [2]);
}

#[test]
fn event_finished_after_endpoint_began_to_fail_is_not_sent_twice() {
    let orders = [1, 2, 2, 4, 5, 6, 7, 8];
    let page = (1..).zip(orders).map(|(number, order)| event(number, order));
    let mut queue = queue(page.collect(), 8);
    assert_eq!(start_all(&mut queue, 0), [1, 2, 4, 5, 6, 7, 8]);
    for number in [1, 4, 5, 6, 7] {
        fail(&mut queue, number, 1);
    }
    assert!(queue.is_failing());
    succeed(&mut queue, 8, 1);
    assert!(!queue.is_failing(), "the first success ends it");
    assert_eq!(queue.cursor(), 1, "the second is in flight, the third evicted");
    load(&mut queue, vec![event(3, 2), event(8, 8)], 8);
    assert_eq!(
        start_all(&mut queue, 1),
        Vec::<i64>::new(),
        "the eighth was delivered"
    );
    succeed(&mut queue, 2, 1);
    assert_eq!(start_all(&mut queue, 1), [3]);
    succeed(&mut queue, 3, 1);
    assert_eq!(queue.cursor(), 8);
}

#[test]
fn concurrency_doubles_with_success_and_halves_with_failure() {
    let page = (1..=40).map(|n| event(n, n.unsigned_abs().into())).collect();
    let mut queue = DeliveryQueue::new(0, 0, EndpointHealth::default(), PAUSE);
    load(&mut queue, page, 40);
    let mut at_once = Vec::new();
    for _ in 0..3 {
        let batch = start_all(&mut queue, 0);
        at_once.push(batch.len());
        batch.iter().for_each(|number| succeed(&mut queue, *number, 0));
    }
    assert_eq!(at_once, [1, 2, 8]);
    let batch = start_all(&mut queue, 0);
    assert_eq!(batch.len(), MAX_CONCURRENCY);
    fail(&mut queue, batch[0], 0);
    assert_eq!(queue.concurrency, MAX_CONCURRENCY / 2);
}

#[test]
fn read_ahead_follows_the_concurrency() {
    let page = (1..=16).map(|n| event(n, n.unsigned_abs().into())).collect();
    let mut queue = DeliveryQueue::new(0, 0, EndpointHealth::default(), PAUSE);
    let with_limit = |with_limit| {
        Some(ReadRequest::Due {
            after: 0,
            limit: with_limit,
        })
    };
    assert_eq!(
        queue.next_read(),
        with_limit(16),
        "the initial concurrency is one"
    );
    load(&mut queue, page, 16);
    assert_eq!(start_all(&mut queue, 0), [1]);
    assert_eq!(queue.next_read(), None, "while the attempt hangs");
    succeed(&mut queue, 1, 0);
    assert_eq!(queue.next_read(), Some(ReadRequest::Due { after: 16, limit: 17 }));
    queue.concurrency = MAX_CONCURRENCY;
    assert_eq!(
        queue.next_read(),
        Some(ReadRequest::Due {
            after: 16,
            limit: MAX_CONCURRENCY * READ_AHEAD - 15
        })
    );
}

#[test]
fn event_read_while_its_order_failed_is_blocked() {
    let mut queue = queue(vec![event(1, 1)], 1);
    assert_eq!(start_all(&mut queue, 0), [1]);
    let request = queue.next_read().unwrap();
    fail(&mut queue, 1, 2);
    queue.load(request, vec![event(2, 1), event(3, 2)], 3);
    assert_eq!(start_all(&mut queue, 2), [3]);
}

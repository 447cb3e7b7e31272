//! Queue tests: due and in-flight purchases, and which one is next.

use vouchsafe_domain::fixtures;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::vendor::MAX_CONCURRENCY;

use super::{MAX_QUEUED, PurchaseQueue};

/// Purchases are named by order and number: `a1` is the first of order `a`.
type Name = &'static str;

fn order_of(name: Name) -> OrderId {
    fixtures::order_id(&name[..1])
}

fn offered(due: &[Name]) -> Vec<(Name, OrderId)> {
    due.iter().map(|name| (*name, order_of(name))).collect()
}

/// The purchases that start, in order, with at most `limit` in flight.
fn start_all(queue: &mut PurchaseQueue<Name>, limit: usize) -> Vec<Name> {
    std::iter::from_fn(|| queue.start_next(limit)).collect()
}

#[test]
fn turns_rotate_between_orders() {
    // Due purchases, limit, expected order of starts.
    let table: [(&[Name], usize, &[Name]); 7] = [
        (&[], 4, &[]),
        (&["a1"], 0, &[]),
        (&["a1", "a2", "a3"], 2, &["a1", "a2"]),
        (&["a1", "a2", "a3", "b1"], 2, &["a1", "b1"]),
        (&["a1", "a2", "a3", "b1", "c1"], 4, &["a1", "b1", "c1", "a2"]),
        (&["a1", "b1", "a2", "b2"], 4, &["a1", "b1", "a2", "b2"]),
        (
            &["b1", "a1", "a2", "b2", "b3"],
            9,
            &["b1", "a1", "b2", "a2", "b3"],
        ),
    ];
    for (due, limit, expected) in table {
        let mut queue = PurchaseQueue::default();
        queue.replace_due(offered(due));
        assert_eq!(start_all(&mut queue, limit), expected, "{due:?} of {limit}");
        assert_eq!(queue.in_flight_count(), expected.len());
    }
}

#[test]
fn order_served_last_waits_for_orders_not_served() {
    let mut queue = PurchaseQueue::default();
    queue.replace_due(offered(&["a1", "a2", "a3"]));
    assert_eq!(start_all(&mut queue, 1), ["a1"]);
    queue.finish("a1");
    // The new order is queued last and still starts first.
    queue.replace_due(offered(&["a2", "a3", "b1"]));
    assert_eq!(start_all(&mut queue, 1), ["b1"]);
    queue.finish("b1");
    assert_eq!(start_all(&mut queue, 1), ["a2"]);
}

#[test]
fn large_and_small_order_alternate_until_the_small_one_is_done() {
    let hundred: Vec<_> = (0..100).map(|number| (number, order_of("a"))).collect();
    let mut queue = PurchaseQueue::default();
    queue.replace_due(hundred.iter().copied().chain([(1_000, order_of("b"))]));
    assert_eq!((queue.start_next(4), queue.start_next(4)), (Some(0), Some(1_000)));
    assert_eq!(
        (queue.start_next(4), queue.start_next(4), queue.start_next(4)),
        (Some(1), Some(2), None)
    );
    queue.finish(1_000);
    assert_eq!(queue.start_next(4), Some(3));
}

#[test]
fn more_is_read_only_when_few_are_left() {
    let due: Vec<_> = (0..MAX_QUEUED).map(|number| (number, order_of("a"))).collect();
    let mut queue = PurchaseQueue::default();
    assert!(queue.is_low());
    queue.replace_due(due);
    let mut started = 0;
    while !queue.is_low() {
        let purchase = queue.start_next(1).expect("more are queued");
        queue.finish(purchase);
        started += 1;
    }
    // A read is shared by most of what it returned, and there is work for every call of the largest vendor
    // until the next.
    assert!(started > MAX_QUEUED / 2, "{started}");
    assert!(MAX_QUEUED - started >= usize::from(MAX_CONCURRENCY), "{started}");
}

#[test]
fn purchase_in_flight_is_not_started_again() {
    let mut queue = PurchaseQueue::default();
    queue.replace_due(offered(&["a1", "b1"]));
    assert_eq!(start_all(&mut queue, 1), ["a1"]);
    queue.replace_due(offered(&["a1", "b1"]));
    assert_eq!(start_all(&mut queue, 9), ["b1"]);
    queue.finish("a1");
    queue.replace_due(offered(&["a1"]));
    assert_eq!(start_all(&mut queue, 9), ["a1"], "it is due again");
}

#[test]
fn purchases_beyond_the_limit_are_offered_again() {
    let mut queue = PurchaseQueue::default();
    let due: Vec<_> = (0..2 * MAX_QUEUED)
        .map(|number| (number, order_of("a")))
        .collect();
    queue.replace_due(due.iter().copied());
    for expected in 0..MAX_QUEUED {
        assert_eq!(queue.start_next(usize::MAX), Some(expected));
    }
    assert_eq!(queue.start_next(usize::MAX), None);
    queue.replace_due(due);
    assert_eq!(queue.start_next(usize::MAX), Some(MAX_QUEUED));
}

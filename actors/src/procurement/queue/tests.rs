//! The queue as a table: what is due and under way, and who has the next turn.

use super::{MAX_WAITING, Queue};
use crate::domain::ids::OrderId;
use crate::testing::build;

/// Purchases are named by their order and a number: `a1` is the first of order `a`.
type Name = &'static str;

fn order_of(name: Name) -> OrderId {
    build::order_id(&name[..1])
}

fn offered(due: &[Name]) -> Vec<(Name, OrderId)> {
    due.iter().map(|name| (*name, order_of(name))).collect()
}

/// Who has a turn, one after the other, with so many under way at most.
fn turns(queue: &mut Queue<Name>, most: usize) -> Vec<Name> {
    std::iter::from_fn(|| queue.next(most)).collect()
}

#[test]
fn orders_have_turns_and_not_purchases() {
    // What is due, how many may be under way, and who has a turn.
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
    for (due, most, expected) in table {
        let mut queue = Queue::default();
        queue.offer(offered(due));
        assert_eq!(turns(&mut queue, most), expected, "{due:?} of {most}");
        assert_eq!(queue.under_way(), expected.len());
    }
}

#[test]
fn who_had_a_turn_last_waits_for_those_who_had_none() {
    let mut queue = Queue::default();
    queue.offer(offered(&["a1", "a2", "a3"]));
    assert_eq!(turns(&mut queue, 1), ["a1"]);
    queue.done("a1");
    // It is offered behind the others of the first one, and has its turn before them.
    queue.offer(offered(&["a2", "a3", "b1"]));
    assert_eq!(turns(&mut queue, 1), ["b1"]);
    queue.done("b1");
    assert_eq!(turns(&mut queue, 1), ["a2"]);
}

#[test]
fn a_hundred_lines_and_a_single_one_take_turns_until_the_single_one_is_done() {
    let hundred: Vec<_> = (0..100).map(|number| (number, order_of("a"))).collect();
    let mut queue = Queue::default();
    queue.offer(hundred.iter().copied().chain([(1_000, order_of("b"))]));
    assert_eq!((queue.next(4), queue.next(4)), (Some(0), Some(1_000)));
    assert_eq!(
        (queue.next(4), queue.next(4), queue.next(4)),
        (Some(1), Some(2), None)
    );
    queue.done(1_000);
    assert_eq!(queue.next(4), Some(3));
}

#[test]
fn what_is_under_way_is_not_begun_again() {
    let mut queue = Queue::default();
    queue.offer(offered(&["a1", "b1"]));
    assert_eq!(turns(&mut queue, 1), ["a1"]);
    queue.offer(offered(&["a1", "b1"]));
    assert_eq!(turns(&mut queue, 9), ["b1"]);
    queue.done("a1");
    queue.offer(offered(&["a1"]));
    assert_eq!(turns(&mut queue, 9), ["a1"], "it is due again");
}

#[test]
fn what_there_is_no_room_for_is_offered_again() {
    let mut queue = Queue::default();
    let due: Vec<_> = (0..2 * MAX_WAITING)
        .map(|number| (number, order_of("a")))
        .collect();
    queue.offer(due.iter().copied());
    for expected in 0..MAX_WAITING {
        assert_eq!(queue.next(usize::MAX), Some(expected));
    }
    assert_eq!(queue.next(usize::MAX), None);
    queue.offer(due);
    assert_eq!(queue.next(usize::MAX), Some(MAX_WAITING));
}

//! Tests of replayed deliveries in the delivery queue.

use super::*;

#[test]
fn replayed_event_precedes_waiting_events_of_its_order() {
    let mut queue = queue(vec![event(8, 1), event(9, 1)], 9);
    assert_eq!(start_all(&mut queue, 0), [8]);
    load(&mut queue, vec![replayed(3, 1, 1)], 9);
    succeed(&mut queue, 8, 0);
    assert_eq!(start_all(&mut queue, 0), [3]);
    succeed(&mut queue, 3, 0);
    assert_eq!(
        start_all(&mut queue, 0),
        Vec::<i64>::new(),
        "another event may have been replayed with it"
    );
    let rows = vec![(3, DeliveryOutcome::Delivered), (9, DeliveryOutcome::Blocked)];
    assert_eq!(take_outcomes(&mut queue), (9, rows));
    load(&mut queue, vec![replayed(4, 1, 1)], 9);
    assert_eq!(start_all(&mut queue, 0), [4]);
    succeed(&mut queue, 4, 0);
    assert_eq!(
        take_outcomes(&mut queue),
        (9, vec![(4, DeliveryOutcome::Delivered)])
    );
    load(&mut queue, vec![row(9, 1, 0, 0)], 9);
    assert_eq!(start_all(&mut queue, 0), [9]);
}

#[test]
fn row_replayed_in_flight_is_attempted_again_afterwards() {
    let mut queue = queue(vec![replayed(1, 1, 1)], 1);
    assert_eq!(start_all(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    succeed(&mut queue, 1, 0);
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    assert_eq!(
        start_all(&mut queue, 0),
        Vec::<i64>::new(),
        "not before the outcome is written"
    );
    let updates = queue.take_changes().updates;
    assert_eq!(
        (updates.len(), updates[0].replays),
        (1, 1),
        "the update names its replay"
    );
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    assert_eq!(start_all(&mut queue, 0), [1]);
    succeed(&mut queue, 1, 0);
    assert_eq!(queue.take_changes().updates[0].replays, 2);
}

#[test]
fn event_replayed_in_flight_is_read_again_after_its_outcome_is_written() {
    let mut queue = queue(vec![event(1, 1)], 1);
    assert_eq!(start_all(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(1, 1, 1)], 1);
    assert_eq!(queue.cursor(), 1, "it has a row");
    succeed(&mut queue, 1, 0);
    assert!(queue.has_updates());
    assert_eq!(queue.take_changes().updates[0].replays, 0);
    load(&mut queue, vec![replayed(1, 1, 1)], 1);
    assert_eq!(start_all(&mut queue, 0), [1]);
}

#[test]
fn waiting_row_replayed_is_attempted_as_replayed() {
    let mut queue = queue(vec![event(1, 1), row(2, 2, 3, 500)], 2);
    assert_eq!(start_all(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(2, 2, 1)], 2);
    let delivery = queue.start_next(Duration::ZERO).expect("the replayed row is due");
    assert_eq!((delivery.number, delivery.attempts, delivery.replays), (2, 0, 1));
}

#[test]
fn event_replayed_before_its_first_attempt_is_attempted_once() {
    let mut queue = queue(vec![event(1, 1), event(2, 1)], 2);
    assert_eq!(start_all(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(2, 1, 1)], 2);
    succeed(&mut queue, 1, 0);
    assert_eq!((queue.cursor(), start_all(&mut queue, 0)), (2, vec![2]));
    succeed(&mut queue, 2, 0);
    assert_eq!(queue.take_changes().updates[0].replays, 1);
}

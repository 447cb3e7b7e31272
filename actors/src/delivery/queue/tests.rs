//! The queue as tables: what is read, what may be tried, how it ends, what is written.

use super::*;

const PAUSE: Duration = Duration::from_secs(5);
const NEVER: Duration = Duration::from_secs(1_000_000);

fn order(name: u128) -> OrderId {
    OrderId::from_uuid(uuid::Uuid::from_u128(name))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Event `number` of an order.
fn event(number: i64, name: u128) -> Read {
    Read {
        waiting: Waiting {
            number,
            order_id: order(name),
            attempts: 0,
            replays: 0,
            stored: false,
            due: Duration::ZERO,
            ends: NEVER,
        },
        behind: false,
    }
}

/// The same with a row, after so many failed attempts.
fn row(number: i64, name: u128, attempts: u32, due: u64) -> Read {
    let mut read = event(number, name);
    read.waiting.stored = true;
    read.waiting.attempts = attempts;
    read.waiting.due = secs(due);
    read
}

/// The same after so many replays.
fn replayed(number: i64, name: u128, replays: u32) -> Read {
    let mut read = row(number, name, 0, 0);
    read.waiting.replays = replays;
    read
}

/// Ten seconds after the end, as long as that is not behind the last attempt.
fn in_ten_seconds(at: u64) -> impl Fn(u32, Duration) -> Option<Duration> {
    move |_, ends| (secs(at) < ends).then(|| (secs(at) + secs(10)).min(ends))
}

fn queue(reads: Vec<Read>, read_to: i64) -> Queue {
    let mut queue = Queue::new(0, Health::default(), PAUSE);
    queue.room = MAX_AT_ONCE;
    load(&mut queue, reads, read_to);
    queue
}

fn load(queue: &mut Queue, reads: Vec<Read>, read_to: i64) {
    let want = queue.wants().expect("there is room");
    queue.load(want, reads, read_to);
}

/// Everything that may be tried at this moment.
fn tried(queue: &mut Queue, at: u64) -> Vec<i64> {
    std::iter::from_fn(|| queue.next(secs(at)))
        .map(|waiting| waiting.number)
        .collect()
}

fn delivered(queue: &mut Queue, number: i64, at: u64) {
    queue.ended(number, Ending::Delivered, secs(at), in_ten_seconds(at));
}

fn refused(queue: &mut Queue, number: i64, at: u64) {
    queue.ended(number, Ending::Refused(None), secs(at), in_ten_seconds(at));
}

fn fates(queue: &mut Queue) -> (i64, Vec<(i64, Fate)>) {
    let changes = queue.take_changes();
    let fates = changes.marks.iter().map(|mark| (mark.number, mark.fate));
    (changes.cursor, fates.collect())
}

#[test]
fn orders_go_side_by_side_and_each_in_sequence() {
    let mut queue = queue(vec![event(1, 1), event(2, 1), event(3, 2), event(5, 1)], 5);
    assert_eq!(tried(&mut queue, 0), [1, 3]);
    delivered(&mut queue, 3, 0);
    assert_eq!(queue.cursor(), 0, "the first is still under way");
    delivered(&mut queue, 1, 0);
    assert_eq!((queue.cursor(), tried(&mut queue, 0)), (1, vec![2]));
    delivered(&mut queue, 2, 0);
    assert_eq!(
        (queue.cursor(), tried(&mut queue, 0)),
        (4, vec![5]),
        "nobody asked for 4"
    );
    delivered(&mut queue, 5, 0);
    assert_eq!(
        fates(&mut queue),
        (5, vec![]),
        "what was taken at once leaves no row"
    );
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_failure_gets_a_row_and_so_does_what_is_behind_it_while_others_go_on() {
    let mut queue = queue(vec![event(1, 1), event(2, 1), event(3, 2), event(4, 2)], 4);
    assert_eq!(tried(&mut queue, 0), [1, 3]);
    refused(&mut queue, 1, 2);
    delivered(&mut queue, 3, 2);
    let rows = vec![(1, Fate::Again(secs(12))), (2, Fate::Behind)];
    assert_eq!(fates(&mut queue), (3, rows));
    assert_eq!(tried(&mut queue, 2), [4], "another order does not wait");
    let mut later = event(5, 1);
    later.behind = true;
    load(&mut queue, vec![later], 5);
    assert_eq!(fates(&mut queue), (3, vec![(5, Fate::Behind)]));
    load(&mut queue, vec![row(1, 1, 1, 12)], 5);
    assert_eq!(tried(&mut queue, 11), Vec::<i64>::new());
    assert_eq!(queue.due_at(), Some(secs(12)));
    assert_eq!(tried(&mut queue, 12), [1]);
    delivered(&mut queue, 1, 12);
    delivered(&mut queue, 4, 12);
    assert_eq!(fates(&mut queue), (5, vec![(1, Fate::Delivered)]));
}

#[test]
fn the_last_attempt_gives_up_and_the_orders_next_follows() {
    let mut first = row(1, 1, 11, 0);
    first.waiting.ends = secs(100);
    let mut queue = queue(vec![first, event(2, 1)], 2);
    assert_eq!(tried(&mut queue, 100), [1]);
    refused(&mut queue, 1, 100);
    assert_eq!(
        fates(&mut queue),
        (2, vec![(1, Fate::Failed), (2, Fate::Behind)]),
        "the store knows what is next"
    );
    load(&mut queue, vec![row(2, 1, 0, 100)], 2);
    assert_eq!(tried(&mut queue, 100), [2]);
}

/// Five orders that fail, one that waits behind the first, and one that was not tried.
fn failing() -> Queue {
    let mut reads: Vec<_> = (1..=5).map(|n| event(n, n.unsigned_abs().into())).collect();
    reads.extend([event(6, 1), event(7, 7)]);
    let mut queue = queue(reads, 7);
    queue.room = 5;
    assert_eq!(tried(&mut queue, 0), [1, 2, 3, 4, 5]);
    for number in 1..=5 {
        assert!(!queue.failing());
        refused(&mut queue, number, 1);
    }
    assert!(queue.failing());
    queue
}

#[test]
fn while_it_fails_the_oldest_alone_is_tried_and_the_rest_is_forgotten() {
    let mut queue = failing();
    let (cursor, rows) = fates(&mut queue);
    assert_eq!(
        (cursor, rows.len()),
        (6, 6),
        "the seventh waits where every new event does"
    );
    assert_eq!(queue.wants(), Some(Want::Oldest { after: 6 }));
    let rows: Vec<_> = (1..=5)
        .map(|n| row(n, n.unsigned_abs().into(), 1, 11))
        .chain([event(7, 7)])
        .collect();
    load(&mut queue, rows, 7);
    assert_eq!((queue.len(), queue.wants()), (1, None));
    assert_eq!(tried(&mut queue, 10), Vec::<i64>::new());
    assert_eq!(tried(&mut queue, 11), [1]);
    refused(&mut queue, 1, 12);
    assert_eq!(fates(&mut queue), (6, vec![(1, Fate::Again(secs(22)))]));
    load(&mut queue, vec![row(1, 1, 2, 22)], 6);
    assert_eq!(tried(&mut queue, 22), [1]);
    delivered(&mut queue, 1, 22);
    let changes = queue.take_changes();
    assert!(changes.recovered && changes.health == Health::default());
    assert_eq!(
        queue.wants(),
        Some(Want::Due {
            after: 6,
            most: 2 * READ_AHEAD
        })
    );
}

#[test]
fn what_is_over_its_time_while_it_fails_is_given_up_with_the_oldest() {
    let mut queue = failing();
    drop(queue.take_changes());
    let mut oldest = row(1, 1, 11, 50);
    oldest.waiting.ends = secs(50);
    load(&mut queue, vec![oldest], 6);
    assert_eq!(tried(&mut queue, 50), [1]);
    refused(&mut queue, 1, 53);
    assert_eq!(fates(&mut queue), (6, vec![(1, Fate::Failed)]));
    let mut over = row(2, 2, 1, 11);
    over.waiting.ends = secs(52);
    let mut over_too = event(7, 7);
    over_too.waiting.ends = secs(53);
    let mut next = event(8, 8);
    next.waiting.ends = secs(54);
    load(&mut queue, vec![over, over_too, next, event(9, 9)], 9);
    assert_eq!(
        fates(&mut queue),
        (7, vec![(2, Fate::Failed), (7, Fate::Failed)]),
        "the ninth is read again"
    );
    assert_eq!(
        tried(&mut queue, 57),
        Vec::<i64>::new(),
        "not sooner than the pause"
    );
    assert_eq!(tried(&mut queue, 58), [8]);
}

#[test]
fn where_nothing_waits_any_more_the_next_event_is_tried_and_one_failure_is_enough() {
    let mut queue = failing();
    drop(queue.take_changes());
    load(&mut queue, vec![], 7);
    assert!(!queue.failing());
    load(&mut queue, vec![event(8, 8), event(9, 9)], 9);
    assert_eq!(tried(&mut queue, 60), [8], "one at a time");
    refused(&mut queue, 8, 60);
    assert!(queue.failing());
    assert_eq!(queue.cursor(), 8, "the ninth is read again");
}

#[test]
fn a_new_oldest_takes_over_how_far_the_gaps_have_grown() {
    let mut queue = failing();
    drop(queue.take_changes());
    queue.health.step = 8;
    queue.health.not_before = secs(500);
    load(&mut queue, vec![event(7, 7)], 7);
    assert_eq!(queue.due_at(), Some(secs(500)));
    assert_eq!(tried(&mut queue, 500), [7]);
    let asked = std::cell::Cell::new(0);
    queue.ended(7, Ending::Refused(None), secs(501), |attempts, _| {
        asked.set(attempts);
        Some(secs(900))
    });
    assert_eq!(asked.get(), 8, "its own first failure, the endpoint's eighth gap");
}

#[test]
fn what_ends_after_the_endpoint_began_to_fail_is_not_sent_twice() {
    let orders = [1, 2, 2, 4, 5, 6, 7, 8];
    let reads = (1..).zip(orders).map(|(number, order)| event(number, order));
    let mut queue = queue(reads.collect(), 8);
    assert_eq!(tried(&mut queue, 0), [1, 2, 4, 5, 6, 7, 8]);
    for number in [1, 4, 5, 6, 7] {
        refused(&mut queue, number, 1);
    }
    assert!(queue.failing());
    delivered(&mut queue, 8, 1);
    assert!(!queue.failing(), "the first that is taken ends it");
    assert_eq!(queue.cursor(), 1, "the second is under way, the third forgotten");
    load(&mut queue, vec![event(3, 2), event(8, 8)], 8);
    assert_eq!(tried(&mut queue, 1), Vec::<i64>::new(), "the eighth was taken");
    delivered(&mut queue, 2, 1);
    assert_eq!(tried(&mut queue, 1), [3]);
    delivered(&mut queue, 3, 1);
    assert_eq!(queue.cursor(), 8);
}

#[test]
fn room_grows_with_what_is_taken_and_shrinks_with_what_is_not() {
    let reads = (1..=40).map(|n| event(n, n.unsigned_abs().into())).collect();
    let mut queue = Queue::new(0, Health::default(), PAUSE);
    load(&mut queue, reads, 40);
    let mut at_once = Vec::new();
    for _ in 0..3 {
        let batch = tried(&mut queue, 0);
        at_once.push(batch.len());
        batch.iter().for_each(|number| delivered(&mut queue, *number, 0));
    }
    assert_eq!(at_once, [1, 2, 8]);
    let batch = tried(&mut queue, 0);
    assert_eq!(batch.len(), MAX_AT_ONCE);
    refused(&mut queue, batch[0], 0);
    assert_eq!(queue.room, MAX_AT_ONCE / 2);
}

#[test]
fn nothing_is_read_that_an_endpoint_which_takes_nothing_will_not_get_to() {
    let reads = (1..=16).map(|n| event(n, n.unsigned_abs().into())).collect();
    let mut queue = Queue::new(0, Health::default(), PAUSE);
    let most = |most| Some(Want::Due { after: 0, most });
    assert_eq!(queue.wants(), most(16), "one is under way at first");
    load(&mut queue, reads, 16);
    assert_eq!(tried(&mut queue, 0), [1]);
    assert_eq!(queue.wants(), None, "as long as it hangs");
    delivered(&mut queue, 1, 0);
    assert_eq!(queue.wants(), Some(Want::Due { after: 16, most: 17 }));
    queue.room = MAX_AT_ONCE;
    assert_eq!(
        queue.wants(),
        Some(Want::Due {
            after: 16,
            most: MAX_AT_ONCE * READ_AHEAD - 15
        })
    );
}

#[test]
fn what_was_read_while_one_of_its_order_failed_waits_behind_it() {
    let mut queue = queue(vec![event(1, 1)], 1);
    assert_eq!(tried(&mut queue, 0), [1]);
    let want = queue.wants().unwrap();
    refused(&mut queue, 1, 2);
    queue.load(want, vec![event(2, 1), event(3, 2)], 3);
    assert_eq!(tried(&mut queue, 2), [3]);
}

#[test]
fn a_replayed_event_goes_before_what_waits_of_its_order() {
    let mut queue = queue(vec![event(8, 1), event(9, 1)], 9);
    assert_eq!(tried(&mut queue, 0), [8]);
    load(&mut queue, vec![replayed(3, 1, 1)], 9);
    delivered(&mut queue, 8, 0);
    assert_eq!(tried(&mut queue, 0), [3]);
    delivered(&mut queue, 3, 0);
    assert_eq!(
        tried(&mut queue, 0),
        Vec::<i64>::new(),
        "another may have been replayed with it"
    );
    let rows = vec![(3, Fate::Delivered), (9, Fate::Behind)];
    assert_eq!(fates(&mut queue), (9, rows));
    load(&mut queue, vec![replayed(4, 1, 1)], 9);
    assert_eq!(tried(&mut queue, 0), [4]);
    delivered(&mut queue, 4, 0);
    assert_eq!(fates(&mut queue), (9, vec![(4, Fate::Delivered)]));
    load(&mut queue, vec![row(9, 1, 0, 0)], 9);
    assert_eq!(tried(&mut queue, 0), [9]);
}

#[test]
fn what_is_replayed_while_it_is_under_way_is_tried_again_after_that() {
    let mut queue = queue(vec![replayed(1, 1, 1)], 1);
    assert_eq!(tried(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    delivered(&mut queue, 1, 0);
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    assert_eq!(
        tried(&mut queue, 0),
        Vec::<i64>::new(),
        "not before that is written"
    );
    let marks = queue.take_changes().marks;
    assert_eq!((marks.len(), marks[0].replays), (1, 1), "it names its replay");
    load(&mut queue, vec![replayed(1, 1, 2)], 1);
    assert_eq!(tried(&mut queue, 0), [1]);
    delivered(&mut queue, 1, 0);
    assert_eq!(queue.take_changes().marks[0].replays, 2);
}

#[test]
fn an_event_that_is_replayed_while_it_is_under_way_is_read_again_when_that_is_written() {
    let mut queue = queue(vec![event(1, 1)], 1);
    assert_eq!(tried(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(1, 1, 1)], 1);
    assert_eq!(queue.cursor(), 1, "it has a row");
    delivered(&mut queue, 1, 0);
    assert!(queue.has_marks());
    assert_eq!(queue.take_changes().marks[0].replays, 0);
    load(&mut queue, vec![replayed(1, 1, 1)], 1);
    assert_eq!(tried(&mut queue, 0), [1]);
}

#[test]
fn what_is_replayed_while_it_waits_is_tried_as_the_replay_says() {
    let mut queue = queue(vec![event(1, 1), row(2, 2, 3, 500)], 2);
    assert_eq!(tried(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(2, 2, 1)], 2);
    let again = queue.next(Duration::ZERO).expect("it is due now");
    assert_eq!((again.number, again.attempts, again.replays), (2, 0, 1));
}

#[test]
fn an_event_that_is_replayed_before_it_was_tried_is_tried_once() {
    let mut queue = queue(vec![event(1, 1), event(2, 1)], 2);
    assert_eq!(tried(&mut queue, 0), [1]);
    load(&mut queue, vec![replayed(2, 1, 1)], 2);
    delivered(&mut queue, 1, 0);
    assert_eq!((queue.cursor(), tried(&mut queue, 0)), (2, vec![2]));
    delivered(&mut queue, 2, 0);
    assert_eq!(queue.take_changes().marks[0].replays, 1);
}

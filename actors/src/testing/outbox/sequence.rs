//! What goes before what: of an order one after the other, orders side by side.

use super::subject::{OutboxSubject, RowState};
use super::teller::{HOUR, Said, due, numbers, taken};
use crate::delivery::queue::Want;

/// When one was taken, or its time is over, the next of its order is due, and the one after that waits on.
pub async fn of_an_order_the_next_is_due_when_one_ended<S: OutboxSubject>(subject: &S) {
    for order in [1, 1, 1, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    let failed = Said::failed(1, 1, 1, HOUR).behind(1, &[2, 3]);
    teller.say(failed).await.unwrap();
    assert_eq!(teller.numbers(due(3)).await, [4], "the other order goes on");
    teller.say(Said::taken(1, 1, 4)).await.unwrap();
    assert_eq!(teller.numbers(due(4)).await, [2]);
    assert_eq!(subject.row(3).await.unwrap().state, RowState::Behind);
    subject.pass(24 * HOUR).await;
    teller.say(Said::given_up(1, 2, 4)).await.unwrap();
    assert_eq!(teller.numbers(due(4)).await, [3]);
}

/// A new event of an order that waits in a row says that it has to wait; of another order it does not.
pub async fn an_event_behind_one_that_waits_says_so<S: OutboxSubject>(subject: &S) {
    for order in [1, 2, 1, 2] {
        subject.commit(order).await;
    }
    let mut teller = taken(subject, "one").await;
    teller.say(Said::failed(1, 1, 1, HOUR)).await.unwrap();
    let page = teller.read(due(1)).await.unwrap();
    let behind: Vec<_> = page.pending.iter().map(|pending| pending.behind).collect();
    assert_eq!(
        (numbers(&page), behind),
        (vec![2, 3, 4], vec![false, true, false])
    );
}

/// An event that was replayed before it was sent is read when its turn comes: not before an earlier one of its order,
/// which does not wait for it either.
pub async fn a_row_among_unread_events_is_read_in_its_place<S: OutboxSubject>(subject: &S) {
    for order in [1, 2, 1, 1] {
        subject.commit(order).await;
    }
    subject.replay(3..=3).await;
    let mut teller = taken(subject, "one").await;
    let page = teller.read(due(0)).await.unwrap();
    let stored: Vec<_> = page.pending.iter().map(|pending| pending.stored).collect();
    assert_eq!(
        (numbers(&page), stored),
        (vec![1, 2, 3, 4], vec![false, false, true, false])
    );
    let behind: Vec<_> = page.pending.iter().map(|pending| pending.behind).collect();
    assert_eq!(behind, [false, false, false, true]);
    assert_eq!(teller.numbers(Want::Due { after: 0, most: 1 }).await, [1]);
    assert_eq!(teller.numbers(Want::Oldest { after: 0 }).await, [1, 2, 3, 4]);
    assert_eq!(
        teller.numbers(due(3)).await,
        [3, 4],
        "once it was passed it is read as any row"
    );
}

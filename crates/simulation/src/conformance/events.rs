//! Conformance cases: event numbers are per partner, consecutive, in commit order.

use super::fixture::{Fixture, INITIAL_BALANCE};
use super::subject::{OtherTransaction, Subject};
use crate::build;
use crate::rows::FeedEntry;

fn assert_consecutive_numbers(events: &[FeedEntry]) {
    let mut next = 1;
    for row in events {
        assert_eq!(row.number, next, "{events:?}");
        next += i64::from(row.bundle.count());
    }
}

/// Numbers are consecutive across batches and lanes; rejected records take none.
pub async fn events_are_numbered_consecutively<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(4).await;
    let mut second = fixture.second_lane().await;
    let left = [
        fixture.delivered_order("a", &gifts[..2]),
        fixture.pending_order("short", INITIAL_BALANCE),
        fixture.pending_order("b", 10),
    ];
    let right = [
        fixture.pending_order("c", 10),
        fixture.delivered_order("d", &gifts[2..3]),
    ];
    tokio::join!(fixture.commit(&left), second.commit(&right));
    fixture
        .commit(&[left[0].clone(), fixture.delivered_order("e", &gifts[3..])])
        .await;
    let events = fixture.subject.events(fixture.partner).await;
    assert_eq!(events.len(), 5, "{events:?}");
    assert_consecutive_numbers(&events);
}

pub async fn events_follow_batch_sequence<S: Subject>(mut fixture: Fixture<'_, S>) {
    let records = ["c", "a", "b"].map(|name| fixture.pending_order(name, 10));
    fixture.commit(&records).await;
    let events = fixture.subject.events(fixture.partner).await;
    let orders: Vec<_> = events.iter().map(|row| row.bundle.order_id).collect();
    assert_eq!(orders, ["c", "a", "b"].map(build::order_id));
}

/// A partner's first event is written in one batch with events of partners that already have some.
pub async fn first_events_are_written_with_others_in_one_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let new_partner = fixture.add_partner(2, 100).await;
    let known = fixture.add_partner(3, 100).await;
    fixture.must_commit(&build::pending_order(known, "a", 10)).await;
    let records = [
        build::pending_order(known, "b", 10),
        build::pending_order(new_partner, "c", 10),
        build::pending_order(known, "d", 10),
    ];
    fixture.commit(&records).await;
    for (partner, names) in [(new_partner, &["c"][..]), (known, &["a", "b", "d"])] {
        let events = fixture.subject.events(partner).await;
        let orders: Vec<_> = events.iter().map(|row| row.bundle.order_id).collect();
        let expected: Vec<_> = names.iter().map(|name| build::order_id(name)).collect();
        assert_eq!(orders, expected);
        assert_consecutive_numbers(&events);
    }
}

pub async fn event_numbers_are_per_partner<S: Subject>(mut fixture: Fixture<'_, S>) {
    let other_partner = fixture.add_partner(2, 100).await;
    let records = [
        fixture.pending_order("a", 10),
        build::pending_order(other_partner, "b", 10),
        fixture.pending_order("c", 10),
    ];
    fixture.commit(&records).await;
    for (partner, count) in [(fixture.partner, 2), (other_partner, 1)] {
        let events = fixture.subject.events(partner).await;
        assert_eq!(events.len(), count);
        assert_consecutive_numbers(&events);
    }
}

/// Event and ledger numbers assigned while a batch was blocked are not assigned again.
pub async fn numbers_assigned_while_blocked_are_not_reused<S: Subject>(mut fixture: Fixture<'_, S>) {
    let mut second = fixture.second_lane().await;
    let records = [fixture.pending_order("a", 10), fixture.pending_order("b", 10)];
    let competitors = [fixture.pending_order("c", 10), fixture.pending_order("d", 10)];
    let transaction = fixture.begin_insert_key_of(&records[1]).await;
    fixture
        .commit_blocked(&records, async {
            second.commit(&competitors).await;
            transaction.rollback().await;
        })
        .await;
    let events = fixture.subject.events(fixture.partner).await;
    let orders: Vec<_> = events.iter().map(|row| row.bundle.order_id).collect();
    assert_eq!(orders, ["c", "d", "a", "b"].map(build::order_id));
    assert_consecutive_numbers(&events);
    let ledger = fixture.subject.ledger(fixture.wallet()).await;
    let sequences: Vec<_> = ledger.iter().map(|entry| entry.receipt.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
}

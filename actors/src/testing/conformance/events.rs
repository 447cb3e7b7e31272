//! In which numbers a partner is told: its own, without a gap, in the order of the commits.

use super::desk::{Desk, FUNDS, Line, another_answer, must_wait};
use super::subject::{OtherTransaction, Subject};
use crate::testing::build;
use crate::testing::facts::Told;

fn assert_without_gap(told: &[Told]) {
    let mut next = 1;
    for row in told {
        assert_eq!(row.number, next, "{told:?}");
        next += i64::from(row.bundle.count());
    }
}

/// Numbers run on over batches and lanes; what was refused takes none.
pub async fn events_are_numbered_without_gap<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(4).await;
    let mut second = Line::open(&desk.store, 1).await;
    let left = [
        desk.order("a", &gifts[..2]),
        desk.debit("short", FUNDS),
        desk.debit("b", 10),
    ];
    let right = [desk.debit("c", 10), desk.order("d", &gifts[2..3])];
    tokio::join!(desk.line.commit(&left), second.commit(&right));
    desk.line
        .commit(&[left[0].clone(), desk.order("e", &gifts[3..])])
        .await;
    let told = subject.events(desk.partner).await;
    assert_eq!(told.len(), 5, "{told:?}");
    assert_without_gap(&told);
}

/// Within one batch a partner is told in the order of its records.
pub async fn events_follow_the_order_of_the_batch<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let records = ["c", "a", "b"].map(|name| desk.debit(name, 10));
    desk.line.commit(&records).await;
    let told: Vec<_> = subject
        .events(desk.partner)
        .await
        .iter()
        .map(|row| row.bundle.order_id)
        .collect();
    assert_eq!(told, ["c", "a", "b"].map(build::order_id));
}

/// A partner that is told something for the first time stands in one batch with one that was told before.
pub async fn first_events_are_told_beside_others<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let (newcomer, known) = (build::partner(2), build::partner(3));
    for partner in [newcomer, known] {
        subject.add_partner(partner).await;
        subject.top_up(build::usd_of(partner), build::minor(100)).await;
    }
    desk.line.must_commit(&build::pending(known, "a", 10)).await;
    let records = [
        build::pending(known, "b", 10),
        build::pending(newcomer, "c", 10),
        build::pending(known, "d", 10),
    ];
    desk.line.commit(&records).await;
    for (partner, names) in [(newcomer, &["c"][..]), (known, &["a", "b", "d"])] {
        let told = subject.events(partner).await;
        let orders: Vec<_> = told.iter().map(|row| row.bundle.order_id).collect();
        let expected: Vec<_> = names.iter().map(|name| build::order_id(name)).collect();
        assert_eq!(orders, expected);
        assert_without_gap(&told);
    }
}

/// Each partner has numbers of its own.
pub async fn partners_are_numbered_apart<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let neighbour = build::partner(2);
    subject.add_partner(neighbour).await;
    subject.top_up(build::usd_of(neighbour), build::minor(100)).await;
    let records = [
        desk.debit("a", 10),
        build::pending(neighbour, "b", 10),
        desk.debit("c", 10),
    ];
    desk.line.commit(&records).await;
    for (partner, count) in [(desk.partner, 2), (neighbour, 1)] {
        let told = subject.events(partner).await;
        assert_eq!(told.len(), count);
        assert_without_gap(&told);
    }
}

/// Numbers that were given while a batch waited are not given again, neither to events nor to ledger entries.
pub async fn numbers_given_during_a_wait_are_taken<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let mut second = Line::open(&desk.store, 1).await;
    let records = [desk.debit("a", 10), desk.debit("b", 10)];
    let rivals = [desk.debit("c", 10), desk.debit("d", 10)];
    let other = subject.open_key(records[1].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    second.commit(&rivals).await;
    other.rollback().await;
    under_way.await.unwrap();
    let told = subject.events(desk.partner).await;
    let orders: Vec<_> = told.iter().map(|row| row.bundle.order_id).collect();
    assert_eq!(orders, ["c", "d", "a", "b"].map(build::order_id));
    assert_without_gap(&told);
    let ledger = subject.ledger(desk.wallet()).await;
    let sequences: Vec<_> = ledger.iter().map(|entry| entry.after.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
}

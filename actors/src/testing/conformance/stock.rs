//! What the commit verifies of stock: the voucher is free, its chunk this start's, and a refused record leaves nothing.

use super::desk::{Desk, FUNDS, GONE, Line, NODE, PRICE, SHORT, another_answer, claim, gift, must_wait};
use super::subject::{OtherTransaction, Subject};
use crate::domain::ledger::Receipt;
use crate::journal::Verdict;
use crate::testing::build;
use crate::testing::facts::Holder;

/// Guard `chunk-node`: a voucher of another node's chunk cannot be sold, nor one of nobody's.
pub async fn a_chunk_of_another_node_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let stranger = subject.start_node("two").await;
    subject.lapse_lease(NODE).await;
    assert_eq!(claim(&stranger, &[]).await.chunks.len(), 1);
    let unclaimed = subject.add_chunk(&gift(), &[build::day(1)]).await;
    for (name, vouchers) in [("a", gifts), ("b", unclaimed)] {
        let record = desk.order(name, &vouchers);
        assert_eq!(desk.line.commit_one(&record).await, GONE, "{name}");
        desk.assert_absent(&record).await;
    }
}

/// Guard `chunk-incarnation`: a chunk that an earlier start of the node claimed must be claimed again.
pub async fn a_chunk_of_an_earlier_start_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    desk.store = subject.start_node(NODE).await;
    desk.line = Line::open(&desk.store, 0).await;
    let record = desk.order("a", &gifts);
    assert_eq!(desk.line.commit_one(&record).await, GONE);
    desk.assert_absent(&record).await;
    assert_eq!(desk.claim(&[]).await.chunks.len(), 1);
    desk.line.must_commit(&record).await;
}

/// Guard `voucher`: a voucher of an order is not sold again.
pub async fn a_voucher_of_an_order_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let first = desk.order("a", &gifts);
    desk.line.must_commit(&first).await;
    let second = desk.order("b", &gifts);
    assert_eq!(desk.line.commit_one(&second).await, GONE);
    desk.assert_absent(&second).await;
    desk.assert_present(&first).await;
}

/// Guard `voucher`: a void voucher is not sold.
pub async fn a_void_voucher_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    subject.void(gifts[0].stock_id).await;
    let record = desk.order("a", &gifts);
    assert_eq!(desk.line.commit_one(&record).await, GONE);
    desk.assert_absent(&record).await;
    assert_eq!(subject.allocations().await, [(gifts[0].stock_id, Holder::Void)]);
}

/// A voucher that another transaction is about to take out is waited for: gone, or free.
pub async fn a_void_under_way_is_waited_for<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let records = [desk.order("a", &gifts[..1])];
    let other = subject.open_void(gifts[0].stock_id).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    other.commit().await;
    assert_eq!(under_way.await.unwrap(), [GONE]);

    let records = [desk.order("b", &gifts[1..])];
    let other = subject.open_void(gifts[1].stock_id).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    other.rollback().await;
    let verdicts = under_way.await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
}

/// One voucher in two records of a batch is sold once.
pub async fn a_voucher_twice_in_a_batch_is_sold_once<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let records = [desk.order("a", &gifts), desk.order("b", &gifts)];
    let verdicts = desk.line.commit(&records).await;
    let sold = verdicts
        .iter()
        .filter(|verdict| matches!(verdict, Verdict::Committed(Some(_))))
        .count();
    let gone = verdicts.iter().filter(|verdict| **verdict == GONE).count();
    assert_eq!((sold, gone), (1, 1), "{verdicts:?}");
    assert_eq!(subject.allocations().await.len(), 1);
}

/// Guard `give-back-key`: the key of a stale record is free: with other vouchers, or less money, it commits.
pub async fn a_stale_record_gives_back_its_key<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    subject.void(gifts[0].stock_id).await;
    assert_eq!(desk.line.commit_one(&desk.order("a", &gifts)).await, GONE);
    assert_eq!(desk.store.find_answer(build::key("a")).await.unwrap(), None);
    desk.line.must_commit(&desk.order("a", &gifts[1..])).await;

    assert_eq!(desk.line.commit_one(&desk.debit("b", FUNDS)).await, SHORT);
    assert_eq!(desk.store.find_answer(build::key("b")).await.unwrap(), None);
    desk.line.must_commit(&desk.debit("b", 100)).await;
}

/// Guard `give-back-vouchers`: the other vouchers of a stale record are free again.
pub async fn a_stale_record_gives_back_its_vouchers<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(3).await;
    subject.void(gifts[1].stock_id).await;
    assert_eq!(desk.line.commit_one(&desk.order("a", &gifts)).await, GONE);
    assert_eq!(subject.allocations().await, [(gifts[1].stock_id, Holder::Void)]);
    let rest = [gifts[0], gifts[2]];
    desk.line.must_commit(&desk.order("b", &rest)).await;
}

/// A stale record in the midst of a batch does not hold up the others, and its money does not move.
pub async fn a_stale_record_fails_alone<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(3).await;
    subject.void(gifts[1].stock_id).await;
    let records = [
        desk.order("a", &gifts[..1]),
        desk.order("b", &gifts[1..2]),
        desk.order("c", &gifts[2..]),
    ];
    let verdicts = desk.line.commit(&records).await;
    assert_eq!(verdicts[1], GONE);
    desk.assert_present(&records[0]).await;
    desk.assert_absent(&records[1]).await;
    desk.assert_present(&records[2]).await;
    let paid = Receipt {
        sequence: 3,
        balance: build::minor(FUNDS - 2 * PRICE),
    };
    assert_eq!(subject.wallet(desk.wallet()).await, Some(paid));
}

/// Guard `chunk-lock`: a chunk that a running commit stands on does not change hands before its end.
pub async fn a_chunk_under_a_running_batch_stays<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let stranger = subject.start_node("two").await;
    let records = [desk.order("a", &gifts)];
    let other = subject.open_void(gifts[0].stock_id).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    subject.lapse_lease(NODE).await;
    // A store may let the claim wait, or pass over the chunk; it may not hand it over.
    let mut claiming = Box::pin(claim(&stranger, &[]));
    let early = tokio::select! {
        biased;
        claimed = &mut claiming => Some(claimed),
        () = subject.until_waiting(2) => None,
    };
    other.rollback().await;
    let (verdicts, claimed) = match early {
        Some(claimed) => (under_way.await, claimed),
        None => tokio::join!(under_way, claiming),
    };
    let verdicts = verdicts.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
    assert_eq!(claimed.chunks, [], "its only voucher is sold");
}

/// Guard `chunk-node`: a chunk that changes hands while a batch waits is found another's, whatever was so when it was sent.
pub async fn a_chunk_taken_over_during_a_wait_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let stranger = subject.start_node("two").await;
    let records = [desk.order("a", &gifts)];
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    subject.lapse_lease(NODE).await;
    assert_eq!(claim(&stranger, &[]).await.chunks.len(), 1);
    other.rollback().await;
    assert_eq!(under_way.await.unwrap(), [GONE]);
    desk.assert_absent(&records[0]).await;
}

/// A voucher that was sold while a batch waited is gone.
pub async fn a_voucher_sold_during_a_wait_is_stale<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let mut second = Line::open(&desk.store, 1).await;
    let records = [desk.order("a", &gifts)];
    let rival = desk.order("b", &gifts);
    let other = subject.open_key(records[0].claim.key, &another_answer()).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    second.must_commit(&rival).await;
    other.rollback().await;
    assert_eq!(under_way.await.unwrap(), [GONE]);
    desk.assert_absent(&records[0]).await;
}

/// Two lanes sell from one chunk at the same time: neither waits for the other.
pub async fn two_lanes_sell_from_one_chunk<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let neighbour = build::partner(2);
    subject.add_partner(neighbour).await;
    subject
        .top_up(build::usd_of(neighbour), build::minor(PRICE))
        .await;
    let mut second = Line::open(&desk.store, 1).await;
    let records = [desk.order("a", &gifts[..1])];
    let other = subject.open_void(gifts[0].stock_id).await;
    let mut under_way = desk.line.send(&records);
    must_wait(subject, 1, &mut under_way).await;
    let theirs = build::delivered(neighbour, "b", &[(&gift(), &gifts[1..])]);
    second.must_commit(&theirs).await;
    other.rollback().await;
    let verdicts = under_way.await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
}

//! Conformance cases: stock that the commit verifies. The voucher is free, the node owns its chunk, and a
//! rejected record leaves no rows.

use vouchsafe_actors::ports::record::Verdict;

use super::fixture::{
    Fixture, INITIAL_BALANCE, NODE, PRICE, STALE_BALANCE, STALE_STOCK, assert_blocked, assert_committed,
    claim, gift, wallet_state,
};
use super::subject::{OtherTransaction, Subject};
use crate::build;
use crate::rows::Holder;

/// Guard `chunk-node`: a voucher of another node's chunk or of an unclaimed chunk cannot be sold.
pub async fn chunk_of_another_node_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    fixture.subject.expire_lease(NODE).await;
    assert_eq!(claim(&other_node, &[]).await.chunks.len(), 1);
    let unclaimed = fixture.subject.add_chunk(&gift(), &[build::day(1)]).await;
    for (name, vouchers) in [("a", gifts), ("b", unclaimed)] {
        let record = fixture.delivered_order(name, &vouchers);
        assert_eq!(fixture.commit_one(&record).await, STALE_STOCK, "{name}");
        fixture.assert_absent(&record).await;
    }
}

/// Guard `chunk-incarnation`: a chunk claimed by an earlier start of the node must be claimed again.
pub async fn chunk_of_earlier_incarnation_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    fixture.restart().await;
    let record = fixture.delivered_order("a", &gifts);
    fixture.assert_rejected(&record, STALE_STOCK).await;
    assert_eq!(fixture.claim(&[]).await.chunks.len(), 1);
    fixture.must_commit(&record).await;
}

/// Guard `voucher`: an allocated voucher is not sold again.
pub async fn allocated_voucher_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let first = fixture.delivered_order("a", &gifts);
    fixture.must_commit(&first).await;
    let second = fixture.delivered_order("b", &gifts);
    fixture.assert_rejected(&second, STALE_STOCK).await;
    fixture.assert_present(&first).await;
}

/// Guard `voucher`: a void voucher is not sold.
pub async fn void_voucher_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    fixture.subject.void(gifts[0].stock_id).await;
    let record = fixture.delivered_order("a", &gifts);
    fixture.assert_rejected(&record, STALE_STOCK).await;
    assert_eq!(
        fixture.subject.allocations().await,
        [(gifts[0].stock_id, Holder::Void)]
    );
}

/// The commit blocks on a voucher that another transaction voids: stale if that commits, sold if it rolls
/// back.
pub async fn void_in_open_transaction_blocks_commit<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let records = [fixture.delivered_order("a", &gifts[..1])];
    let transaction = fixture.subject.begin_void(gifts[0].stock_id).await;
    let verdicts = fixture.commit_blocked(&records, transaction.commit()).await;
    assert_eq!(verdicts, [STALE_STOCK]);

    let records = [fixture.delivered_order("b", &gifts[1..])];
    let transaction = fixture.subject.begin_void(gifts[1].stock_id).await;
    let verdicts = fixture.commit_blocked(&records, transaction.rollback()).await;
    assert_committed(&verdicts);
}

pub async fn voucher_twice_in_batch_is_sold_once<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let records = [
        fixture.delivered_order("a", &gifts),
        fixture.delivered_order("b", &gifts),
    ];
    let verdicts = fixture.commit(&records).await;
    let sold = verdicts
        .iter()
        .filter(|verdict| matches!(verdict, Verdict::Committed(Some(_))))
        .count();
    let stale = verdicts.iter().filter(|verdict| **verdict == STALE_STOCK).count();
    assert_eq!((sold, stale), (1, 1), "{verdicts:?}");
    assert_eq!(fixture.subject.allocations().await.len(), 1);
}

/// Guard `give-back-key`: the key of a stale record stays free; with other vouchers or a smaller amount it
/// commits.
pub async fn stale_record_releases_its_key<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    fixture.subject.void(gifts[0].stock_id).await;
    assert_eq!(
        fixture.commit_one(&fixture.delivered_order("a", &gifts)).await,
        STALE_STOCK
    );
    assert_eq!(fixture.find_response(build::key("a")).await, None);
    fixture
        .must_commit(&fixture.delivered_order("a", &gifts[1..]))
        .await;

    assert_eq!(
        fixture
            .commit_one(&fixture.pending_order("b", INITIAL_BALANCE))
            .await,
        STALE_BALANCE
    );
    assert_eq!(fixture.find_response(build::key("b")).await, None);
    fixture.must_commit(&fixture.pending_order("b", 100)).await;
}

/// Guard `give-back-vouchers`: the other vouchers of a stale record stay free.
pub async fn stale_record_releases_its_vouchers<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(3).await;
    fixture.subject.void(gifts[1].stock_id).await;
    assert_eq!(
        fixture.commit_one(&fixture.delivered_order("a", &gifts)).await,
        STALE_STOCK
    );
    assert_eq!(
        fixture.subject.allocations().await,
        [(gifts[1].stock_id, Holder::Void)]
    );
    let others = [gifts[0], gifts[2]];
    fixture.must_commit(&fixture.delivered_order("b", &others)).await;
}

/// A stale record in the middle of a batch does not affect the others, and moves no money.
pub async fn stale_record_fails_alone<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(3).await;
    fixture.subject.void(gifts[1].stock_id).await;
    let records = [
        fixture.delivered_order("a", &gifts[..1]),
        fixture.delivered_order("b", &gifts[1..2]),
        fixture.delivered_order("c", &gifts[2..]),
    ];
    let verdicts = fixture.commit(&records).await;
    assert_eq!(verdicts[1], STALE_STOCK);
    fixture.assert_present(&records[0]).await;
    fixture.assert_absent(&records[1]).await;
    fixture.assert_present(&records[2]).await;
    let paid = wallet_state(3, INITIAL_BALANCE - 2 * PRICE);
    assert_eq!(fixture.wallet_state().await, Some(paid));
}

/// Guard `chunk-lock`: a chunk locked by a running commit does not change its owner.
pub async fn chunk_locked_by_running_batch_keeps_its_owner<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    let records = [fixture.delivered_order("a", &gifts)];
    let transaction = fixture.subject.begin_void(gifts[0].stock_id).await;
    let mut blocked = fixture.lane.send(&records);
    assert_blocked(fixture.subject, 1, &mut blocked).await;
    fixture.subject.expire_lease(NODE).await;
    // A store may block the claim or skip the chunk, but must not hand it over.
    let mut claiming = Box::pin(claim(&other_node, &[]));
    let early = tokio::select! {
        biased;
        claimed = &mut claiming => Some(claimed),
        () = fixture.subject.wait_for_blocked(2) => None,
    };
    transaction.rollback().await;
    let (verdicts, claimed) = match early {
        Some(claimed) => (blocked.await, claimed),
        None => tokio::join!(blocked, claiming),
    };
    assert_committed(&verdicts.unwrap());
    assert_eq!(claimed.chunks, [], "its only voucher is sold");
}

/// Guard `chunk-node`: a record is stale if its chunk changes its owner while the batch is blocked.
pub async fn chunk_taken_over_while_blocked_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    let records = [fixture.delivered_order("a", &gifts)];
    let transaction = fixture.begin_insert_key_of(&records[0]).await;
    let verdicts = fixture
        .commit_blocked(&records, async {
            fixture.subject.expire_lease(NODE).await;
            assert_eq!(claim(&other_node, &[]).await.chunks.len(), 1);
            transaction.rollback().await;
        })
        .await;
    assert_eq!(verdicts, [STALE_STOCK]);
    fixture.assert_absent(&records[0]).await;
}

pub async fn voucher_sold_while_blocked_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let [record, competitor] = ["a", "b"].map(|name| fixture.delivered_order(name, &gifts));
    let verdict = fixture.commit_overtaken(&record, &competitor).await;
    assert_eq!(verdict, STALE_STOCK);
    fixture.assert_absent(&record).await;
}

pub async fn two_lanes_sell_from_one_chunk<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let other_partner = fixture.add_partner(2, PRICE).await;
    let mut second = fixture.second_lane().await;
    let records = [fixture.delivered_order("a", &gifts[..1])];
    let transaction = fixture.subject.begin_void(gifts[0].stock_id).await;
    let verdicts = fixture
        .commit_blocked(&records, async {
            let theirs = build::delivered_order(other_partner, "b", &[(&gift(), &gifts[1..])]);
            second.must_commit(&theirs).await;
            transaction.rollback().await;
        })
        .await;
    assert_committed(&verdicts);
}

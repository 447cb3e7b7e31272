//! Conformance cases: stock claims and demands. Earliest expiry first, own chunks at once, another node's
//! chunks after its lease or on demand.

use std::sync::Arc;
use std::time::Duration;

use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::stock::{ClaimedStock, StockDemand, StockRequest, TAKEOVER_DELAY, UnclaimableStock};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::fixture::{Fixture, NODE, STALE_STOCK, claim, claim_sorted, expiries_on, gift, stock_request};
use super::lane_client::LaneClient;
use super::subject::Subject;
use crate::build;

fn chunk_ids(claimed: &ClaimedStock) -> Vec<ChunkId> {
    claimed.chunks.iter().map(|chunk| chunk.chunk_id).collect()
}

fn stock_and_expiry(vouchers: &[StockVoucher]) -> Vec<(StockId, Expiry)> {
    vouchers
        .iter()
        .map(|voucher| (voucher.stock_id, voucher.expiry))
        .collect()
}

/// A claim takes chunks in order of expiry until it has enough, and returns the expiry of the next one.
pub async fn earliest_expiry_is_claimed_first<S: Subject>(fixture: Fixture<'_, S>) {
    let _other_node = fixture.subject.start_node("two").await;
    let late = fixture.subject.add_chunk(&gift(), &expiries_on(30, 2)).await;
    let soon = fixture
        .subject
        .add_chunk(&gift(), &[build::day(11), build::day(10)])
        .await;
    let never = fixture.subject.add_chunk(&gift(), &[Expiry::NEVER]).await;
    fixture
        .subject
        .add_chunk(&build::sku("other", 5), &expiries_on(1, 2))
        .await;

    let claimed = claim_sorted(&fixture.store, stock_request(&[], 2)).await;
    assert_eq!(chunk_ids(&claimed), [soon[0].chunk_id]);
    assert_eq!(claimed.chunks[0].vouchers, stock_and_expiry(&soon));
    assert_eq!(
        (claimed.next_expiry, claimed.unclaimable),
        (Some(build::day(30)), UnclaimableStock::None)
    );

    let claimed = claim_sorted(&fixture.store, stock_request(&soon, 3)).await;
    assert_eq!(chunk_ids(&claimed), [late[0].chunk_id, never[0].chunk_id]);
    assert_eq!(claimed.next_expiry, None);
}

/// A node that is alone claims more than it asks for, up to a full chunk: no other node sells what it leaves.
/// With another node it does not.
pub async fn node_alone_claims_small_chunks_together<S: Subject>(fixture: Fixture<'_, S>) {
    let mut chunks = Vec::new();
    for _ in 0..3 {
        chunks.push(fixture.subject.add_chunk(&gift(), &expiries_on(30, 2)).await[0].chunk_id);
    }
    let claimed = claim_sorted(&fixture.store, stock_request(&[], 1)).await;
    assert_eq!(chunk_ids(&claimed), chunks);
    let _other_node = fixture.subject.start_node("two").await;
    let claimed = claim_sorted(&fixture.store, stock_request(&[], 1)).await;
    assert_eq!(chunk_ids(&claimed), chunks[..1]);
}

/// Chunks already loaded are left out; others are returned again, so a lost response costs nothing.
pub async fn repeated_claim_is_harmless<S: Subject>(fixture: Fixture<'_, S>) {
    let gifts = fixture.subject.add_chunk(&gift(), &expiries_on(1, 2)).await;
    let claimed = fixture.claim(&[]).await;
    assert_eq!(fixture.claim(&[]).await, claimed);
    assert_eq!(fixture.claim(&gifts).await, ClaimedStock::default());
}

/// After a restart a node gets its own chunks back without waiting for its lease, less the vouchers sold.
pub async fn own_chunks_are_reclaimed_at_once<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    fixture
        .must_commit(&fixture.delivered_order("a", &gifts[..1]))
        .await;
    let restarted = fixture.subject.start_node(NODE).await;
    let claimed = claim(&restarted, &[]).await;
    assert_eq!(chunk_ids(&claimed), [gifts[0].chunk_id]);
    assert_eq!(claimed.chunks[0].vouchers, stock_and_expiry(&gifts[1..]));
}

/// Another node's chunks are reported as unclaimable during its lease and claimed after it.
pub async fn chunks_of_another_node_are_claimed_after_its_lease<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    let before = claim(&other_node, &[]).await;
    assert_eq!(
        (chunk_ids(&before), before.next_expiry, before.unclaimable),
        (vec![], None, UnclaimableStock::OwnedByOtherNode)
    );
    fixture.subject.expire_lease(NODE).await;
    let after = claim(&other_node, &[]).await;
    assert_eq!(
        (chunk_ids(&after), after.unclaimable),
        (vec![gifts[0].chunk_id], UnclaimableStock::None)
    );
    assert_eq!(
        fixture.commit_one(&fixture.delivered_order("a", &gifts)).await,
        STALE_STOCK,
        "the paused node is fenced"
    );
    let paused = fixture.claim(&[]).await;
    assert_eq!(
        (chunk_ids(&paused), paused.unclaimable),
        (vec![], UnclaimableStock::OwnedByOtherNode)
    );
}

/// Claims [`gift`] for orders that wait for one voucher.
async fn demand(store: &Arc<dyn Store>) -> ClaimedStock {
    let request = StockRequest {
        demanded: 1,
        ..stock_request(&[], 1)
    };
    claim_sorted(store, request).await
}

async fn demands_of_others(store: &Arc<dyn Store>) -> Vec<StockDemand> {
    store.list_stock_demands().await.expect("the store is reachable")
}

async fn release(store: &Arc<dyn Store>, kept: &[StockVoucher]) {
    let kept = kept.iter().map(|voucher| voucher.chunk_id).collect();
    store
        .release_stock(gift(), kept)
        .await
        .expect("the store is reachable");
}

/// The owner sees the demand of another node, releases what it does not keep, and can no longer sell that.
pub async fn demanded_stock_is_released_by_its_owner<S: Subject>(mut fixture: Fixture<'_, S>) {
    let given_up = fixture.add_stock(1).await;
    let kept = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    assert_eq!(demands_of_others(&fixture.store).await, []);
    let before = demand(&other_node).await;
    assert_eq!(
        (chunk_ids(&before), before.unclaimable),
        (vec![], UnclaimableStock::OwnedByOtherNode)
    );
    fixture.subject.age_demand(&gift(), "two", Duration::ZERO).await;
    let demanded = StockDemand {
        sku: gift(),
        quantity: 1,
    };
    assert_eq!(demands_of_others(&fixture.store).await, [demanded]);
    assert_eq!(demands_of_others(&other_node).await, [], "it owns nothing");
    release(&fixture.store, &kept).await;
    assert_eq!(chunk_ids(&claim(&other_node, &[]).await), [given_up[0].chunk_id]);
    assert_eq!(
        fixture
            .commit_one(&fixture.delivered_order("gone", &given_up))
            .await,
        STALE_STOCK
    );
    fixture.must_commit(&fixture.delivered_order("kept", &kept)).await;
}

/// A node that waits for too long takes the stock of a live one, whose commits then reject it.
pub async fn stock_that_is_not_released_is_taken_over<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    demand(&other_node).await;
    assert_eq!(chunk_ids(&demand(&other_node).await), []);
    fixture.subject.age_demand(&gift(), "two", TAKEOVER_DELAY).await;
    assert_eq!(chunk_ids(&demand(&other_node).await), [gifts[0].chunk_id]);
    assert_eq!(
        fixture.commit_one(&fixture.delivered_order("a", &gifts)).await,
        STALE_STOCK
    );
}

/// Released stock goes to the node that has waited longest, however long another has waited. Its demand ends
/// with that.
pub async fn oldest_demand_is_served_first<S: Subject>(fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let [second, third] = [
        fixture.subject.start_node("two").await,
        fixture.subject.start_node("three").await,
    ];
    demand(&second).await;
    demand(&third).await;
    fixture
        .subject
        .age_demand(&gift(), "two", 2 * TAKEOVER_DELAY)
        .await;
    fixture.subject.age_demand(&gift(), "three", TAKEOVER_DELAY).await;
    assert_eq!(
        chunk_ids(&demand(&third).await),
        [],
        "its takeover is behind the older demand"
    );
    release(&fixture.store, &[]).await;
    assert_eq!(chunk_ids(&demand(&third).await), []);
    assert_eq!(
        chunk_ids(&claim(&fixture.store, &[]).await),
        [],
        "the former owner does not demand it"
    );
    assert_eq!(demands_of_others(&second).await, [], "its own demand is older");
    assert_eq!(chunk_ids(&demand(&second).await), [gifts[0].chunk_id]);
    fixture.subject.age_demand(&gift(), "three", Duration::ZERO).await;
    let next = StockDemand {
        sku: gift(),
        quantity: 1,
    };
    assert_eq!(
        demands_of_others(&second).await,
        [next],
        "its own demand has ended"
    );
    demand(&fixture.store).await;
    release(&second, &[]).await;
    assert_eq!(
        chunk_ids(&demand(&third).await),
        [gifts[0].chunk_id],
        "a later demand comes after it"
    );
}

/// A node died while the database's clock was an hour fast: its lease holds no other node off after the
/// correction.
pub async fn lease_renewed_by_a_fast_clock_has_ended<S: Subject>(fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    assert_eq!(chunk_ids(&claim(&other_node, &[]).await), []);
    fixture.subject.advance_lease(NODE).await;
    assert_eq!(chunk_ids(&claim(&other_node, &[]).await), [gifts[0].chunk_id]);
}

/// What an ended incarnation owned is for sale everywhere, although the node has a lease.
pub async fn chunk_of_ended_incarnation_is_claimed_by_another_node<S: Subject>(fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let other_node = fixture.subject.start_node("two").await;
    let _restarted = fixture.subject.start_node(NODE).await;
    assert_eq!(chunk_ids(&claim(&other_node, &[]).await), [gifts[0].chunk_id]);
}

pub async fn sold_stock_is_not_reported_as_unclaimable<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let other_node = fixture.subject.start_node("two").await;
    fixture
        .must_commit(&fixture.delivered_order("a", &gifts[..1]))
        .await;
    assert_eq!(
        claim(&other_node, &[]).await.unclaimable,
        UnclaimableStock::OwnedByOtherNode
    );
    fixture.subject.void(gifts[1].stock_id).await;
    assert_eq!(claim(&other_node, &[]).await.unclaimable, UnclaimableStock::None);
}

pub async fn empty_chunk_is_not_claimed<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    fixture
        .must_commit(&fixture.delivered_order("a", &gifts[..1]))
        .await;
    fixture.subject.void(gifts[1].stock_id).await;
    for _ in 0..2 {
        assert_eq!(fixture.claim(&[]).await, ClaimedStock::default());
    }
    let fresh = fixture.subject.add_chunk(&gift(), &expiries_on(40, 1)).await;
    assert_eq!(chunk_ids(&fixture.claim(&[]).await), [fresh[0].chunk_id]);
}

/// Vouchers that expire too soon are left out; a chunk of only such vouchers is not claimed.
pub async fn stock_expiring_too_soon_is_left_out<S: Subject>(fixture: Fixture<'_, S>) {
    let mixed = fixture
        .subject
        .add_chunk(&gift(), &[build::day(4), build::day(5), build::day(9)])
        .await;
    let stale = fixture.subject.add_chunk(&gift(), &expiries_on(4, 2)).await;
    let from = |day| StockRequest {
        not_before: build::day(day),
        ..stock_request(&[], 1_000)
    };
    let claimed = claim_sorted(&fixture.store, from(5)).await;
    assert_eq!(chunk_ids(&claimed), [mixed[0].chunk_id]);
    let usable: Vec<_> = mixed[1..]
        .iter()
        .map(|voucher| (voucher.stock_id, voucher.expiry))
        .collect();
    assert_eq!(
        (&claimed.chunks[0].vouchers, claimed.next_expiry),
        (&usable, None)
    );
    let claimed = claim_sorted(&fixture.store, from(4)).await;
    assert_eq!(
        chunk_ids(&claimed),
        [mixed[0].chunk_id, stale[0].chunk_id],
        "a relaxed minimum finds them again"
    );
}

pub async fn superseded_node_claims_nothing<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(1).await;
    let newer = fixture.subject.start_node(NODE).await;
    assert_eq!(claim(&newer, &[]).await.chunks.len(), 1);
    let refused = fixture.store.claim_stock(stock_request(&[], 10)).await;
    assert!(
        refused.as_ref().map_or(true, |claimed| claimed.chunks.is_empty()),
        "{refused:?}"
    );
    fixture.lane = LaneClient::open(&newer, 0).await;
    fixture.must_commit(&fixture.delivered_order("a", &gifts)).await;
}

//! Which chunks a claim hands out: what expires first, its own at once, a stranger's only after the lease.

use super::desk::{Desk, GONE, Line, NODE, claim, claim_of, ending_on, gift, request};
use super::subject::Subject;
use crate::domain::ids::{ChunkId, StockId};
use crate::domain::stock::{ClaimedStock, Elsewhere, StockRequest};
use crate::domain::voucher::{Expiry, Shelved};
use crate::testing::build;

fn ids(claimed: &ClaimedStock) -> Vec<ChunkId> {
    claimed.chunks.iter().map(|chunk| chunk.chunk_id).collect()
}

fn pairs(vouchers: &[Shelved]) -> Vec<(StockId, Expiry)> {
    vouchers
        .iter()
        .map(|voucher| (voucher.stock_id, voucher.expiry))
        .collect()
}

/// What expires first is claimed, until it is enough; the next to expire is announced. Other SKUs are left alone.
pub async fn what_expires_first_is_claimed_first<S: Subject>(subject: &S) {
    let desk = Desk::open(subject).await;
    let late = subject.add_chunk(&gift(), &ending_on(30, 2)).await;
    let soon = subject
        .add_chunk(&gift(), &[build::day(11), build::day(10)])
        .await;
    let never = subject.add_chunk(&gift(), &[Expiry::NEVER]).await;
    subject.add_chunk(&build::sku("other", 5), &ending_on(1, 2)).await;

    let claimed = claim_of(&desk.store, request(&[], 2)).await;
    assert_eq!(ids(&claimed), [soon[0].chunk_id]);
    assert_eq!(claimed.chunks[0].vouchers, pairs(&soon));
    assert_eq!(
        (claimed.next, claimed.elsewhere),
        (Some(build::day(30)), Elsewhere::Nowhere)
    );

    let claimed = claim_of(&desk.store, request(&soon, 3)).await;
    assert_eq!(ids(&claimed), [late[0].chunk_id, never[0].chunk_id]);
    assert_eq!(claimed.next, None);
}

/// What is loaded is not handed out again; what is not comes again, so that a lost answer costs nothing.
pub async fn asking_again_is_harmless<S: Subject>(subject: &S) {
    let desk = Desk::open(subject).await;
    let gifts = subject.add_chunk(&gift(), &ending_on(1, 2)).await;
    let claimed = desk.claim(&[]).await;
    assert_eq!(desk.claim(&[]).await, claimed);
    assert_eq!(desk.claim(&gifts).await, ClaimedStock::default());
}

/// After a restart a node has its own chunks back at once, lease or not, without what was sold.
pub async fn own_chunks_come_back_at_once<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    desk.line.must_commit(&desk.order("a", &gifts[..1])).await;
    let restarted = subject.start_node(NODE).await;
    let claimed = claim(&restarted, &[]).await;
    assert_eq!(ids(&claimed), [gifts[0].chunk_id]);
    assert_eq!(claimed.chunks[0].vouchers, pairs(&gifts[1..]));
}

/// A stranger's chunks are announced as elsewhere while its lease lasts, and claimed once it is over.
pub async fn a_strangers_chunks_come_after_its_lease<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let stranger = subject.start_node("two").await;
    let before = claim(&stranger, &[]).await;
    assert_eq!(
        (ids(&before), before.next, before.elsewhere),
        (vec![], None, Elsewhere::Owned)
    );
    subject.lapse_lease(NODE).await;
    let after = claim(&stranger, &[]).await;
    assert_eq!(
        (ids(&after), after.elsewhere),
        (vec![gifts[0].chunk_id], Elsewhere::Nowhere)
    );
    assert_eq!(
        desk.line.commit_one(&desk.order("a", &gifts)).await,
        GONE,
        "the paused one is shut out"
    );
    let paused = desk.claim(&[]).await;
    assert_eq!((ids(&paused), paused.elsewhere), (vec![], Elsewhere::Owned));
}

/// What is elsewhere but sold or void is not elsewhere.
pub async fn sold_stock_is_not_elsewhere<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    let stranger = subject.start_node("two").await;
    desk.line.must_commit(&desk.order("a", &gifts[..1])).await;
    assert_eq!(claim(&stranger, &[]).await.elsewhere, Elsewhere::Owned);
    subject.void(gifts[1].stock_id).await;
    assert_eq!(claim(&stranger, &[]).await.elsewhere, Elsewhere::Nowhere);
}

/// A chunk without a free voucher is not handed out, and announces nothing.
pub async fn an_emptied_chunk_is_not_handed_out<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(2).await;
    desk.line.must_commit(&desk.order("a", &gifts[..1])).await;
    subject.void(gifts[1].stock_id).await;
    for _ in 0..2 {
        assert_eq!(desk.claim(&[]).await, ClaimedStock::default());
    }
    let fresh = subject.add_chunk(&gift(), &ending_on(40, 1)).await;
    assert_eq!(ids(&desk.claim(&[]).await), [fresh[0].chunk_id]);
}

/// Vouchers that expire too soon are left out, and a chunk of such alone is not claimed.
pub async fn what_expires_too_soon_is_left_out<S: Subject>(subject: &S) {
    let desk = Desk::open(subject).await;
    let mixed = subject
        .add_chunk(&gift(), &[build::day(4), build::day(5), build::day(9)])
        .await;
    let stale = subject.add_chunk(&gift(), &ending_on(4, 2)).await;
    let from = |day| StockRequest {
        not_before: build::day(day),
        ..request(&[], 1_000)
    };
    let claimed = claim_of(&desk.store, from(5)).await;
    assert_eq!(ids(&claimed), [mixed[0].chunk_id]);
    let usable: Vec<_> = mixed[1..]
        .iter()
        .map(|voucher| (voucher.stock_id, voucher.expiry))
        .collect();
    assert_eq!((&claimed.chunks[0].vouchers, claimed.next), (&usable, None));
    let claimed = claim_of(&desk.store, from(4)).await;
    assert_eq!(
        ids(&claimed),
        [mixed[0].chunk_id, stale[0].chunk_id],
        "a rule that was relaxed finds them again"
    );
}

/// A node that was started again claims nothing by its earlier start.
pub async fn a_superseded_node_claims_nothing<S: Subject>(subject: &S) {
    let mut desk = Desk::open(subject).await;
    let gifts = desk.stock(1).await;
    let newer = subject.start_node(NODE).await;
    assert_eq!(claim(&newer, &[]).await.chunks.len(), 1);
    let refused = desk.store.claim_stock(request(&[], 10)).await;
    assert!(
        refused.as_ref().map_or(true, |claimed| claimed.chunks.is_empty()),
        "{refused:?}"
    );
    desk.line = Line::open(&newer, 0).await;
    desk.line.must_commit(&desk.order("a", &gifts)).await;
}

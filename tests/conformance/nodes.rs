//! Concurrent stock claims of one node, and a takeover of stock after a lease expires.

use std::sync::Arc;

use futures_util::future::join_all;
use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_actors::ports::store::{LaneStore, Store};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedChunk, ClaimedStock, StockRequest, UnclaimableStock};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject;
use vouchsafe_store::PgNode;

use crate::subject::PgSubject;

fn gift() -> Sku {
    build::sku("gift", 1_000)
}

async fn claim(node: &Arc<PgNode>) -> ClaimedStock {
    let request = StockRequest {
        sku: gift(),
        loaded_chunks: Vec::new(),
        target_quantity: 1_000,
        not_before: build::day(0),
    };
    node.claim_stock(request).await.unwrap()
}

async fn commit(lane: &mut Box<dyn LaneStore>, batch: i64, record: &Record) -> Verdict {
    let mut verdicts = lane.commit(batch, std::slice::from_ref(record)).await.unwrap();
    verdicts.remove(0)
}

/// Concurrent claims share a batch; each returns only its own SKU's stock.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_claims_return_their_own_stock() {
    const SKUS: i64 = 100;
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let sku = |face| build::sku("gift", face);
    // SKUs have no chunk, one, or two, of which the first to expire is enough.
    let mut stock = Vec::new();
    for face in 1..=SKUS {
        let mut chunks = Vec::new();
        for chunk in 0..face % 3 {
            chunks.push(subject.add_chunk(&sku(face), &[build::day(20 - chunk); 2]).await);
        }
        stock.push(chunks);
    }
    let claims = (1..=SKUS).map(|face| {
        node.claim_stock(StockRequest {
            sku: sku(face),
            loaded_chunks: Vec::new(),
            target_quantity: 2,
            not_before: build::day(0),
        })
    });
    for (claimed, chunks) in join_all(claims).await.into_iter().zip(&stock) {
        let claimed = claimed.unwrap();
        let expected = ClaimedStock {
            chunks: chunks
                .last()
                .into_iter()
                .map(|chunk| ClaimedChunk {
                    chunk_id: chunk[0].chunk_id,
                    vouchers: chunk.iter().map(|one| (one.stock_id, one.expiry)).collect(),
                })
                .collect(),
            next_expiry: (chunks.len() > 1).then(|| build::day(20)),
            unclaimable: UnclaimableStock::None,
        };
        assert_eq!(claimed, expected);
    }
    subject.remove().await;
}

/// A crashed shelf may leave a claim in the queue; its loaded chunks do not affect the next shelf's claim.
#[tokio::test(flavor = "multi_thread")]
async fn chunk_loaded_by_one_claim_is_returned_to_another() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        let sku = build::sku("gift", face);
        let stock = subject.add_chunk(&sku, &[build::day(1)]).await;
        for loaded_chunks in [vec![stock[0].chunk_id], Vec::new()] {
            let expected = usize::from(loaded_chunks.is_empty());
            let claim = node.claim_stock(StockRequest {
                sku: sku.clone(),
                loaded_chunks,
                target_quantity: 1,
                not_before: build::day(0),
            });
            claims.push(async move { (expected, claim.await.unwrap()) });
        }
    }
    for (expected, claimed) in join_all(claims).await {
        assert_eq!(claimed.chunks.len(), expected, "{claimed:?}");
    }
    subject.remove().await;
}

/// One failing claim does not affect the others in its batch.
#[tokio::test(flavor = "multi_thread")]
async fn failing_claim_fails_alone() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        let sku = build::sku("gift", face);
        subject.add_chunk(&sku, &[build::day(1)]).await;
        claims.push(node.claim_stock(StockRequest {
            sku,
            loaded_chunks: Vec::new(),
            target_quantity: 1,
            not_before: build::day(0),
        }));
    }
    // Not a representable date.
    let damage = "UPDATE stock SET expiry = 'infinity' WHERE stock_id = (SELECT max(stock_id) FROM stock)";
    sqlx::query(damage).execute(subject.pool()).await.unwrap();
    let mut failed = Vec::new();
    for (claimed, face) in join_all(claims).await.into_iter().zip(1..) {
        match claimed {
            Ok(claimed) => assert_eq!(claimed.chunks.len(), 1, "{face}: {claimed:?}"),
            Err(_) => failed.push(face),
        }
    }
    assert_eq!(failed, [40]);
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_paused_past_its_lease_sells_none_of_the_claimed_stock() {
    const STALE_STOCK: Verdict = Verdict::Stale(StaleReason::Stock);
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject
        .top_up(build::usd_wallet(partner), build::minor(10_000))
        .await;
    let vouchers = subject.add_chunk(&gift(), &[build::day(1), build::day(2)]).await;
    let order =
        |name: &str, of: usize| build::delivered_order(partner, name, &[(&gift(), &vouchers[of..=of])]);

    let (paused, other) = (subject.start("one").await, subject.start("two").await);
    assert_eq!(claim(&paused).await.chunks.len(), 1);
    let mut paused_lane = paused.open_lane(0).await.unwrap();
    let mut other_lane = other.open_lane(0).await.unwrap();
    // During the lease the other node can neither claim nor sell the stock.
    let early = claim(&other).await;
    assert!(
        early.chunks.is_empty() && early.unclaimable == UnclaimableStock::OwnedByOtherNode,
        "{early:?}"
    );
    assert_eq!(commit(&mut other_lane, 1, &order("early", 0)).await, STALE_STOCK);

    subject.expire_lease("one").await;
    assert_eq!(claim(&other).await.chunks.len(), 1);
    let sold = commit(&mut other_lane, 2, &order("taken", 0)).await;
    assert!(matches!(sold, Verdict::Committed(Some(_))), "{sold:?}");

    // The paused node's decisions are rejected, for the sold voucher and for the free one.
    assert_eq!(commit(&mut paused_lane, 1, &order("sold", 0)).await, STALE_STOCK);
    assert_eq!(commit(&mut paused_lane, 2, &order("free", 1)).await, STALE_STOCK);
    // The paused node can still renew its lease and commit; only the stock has another owner.
    assert!(paused.renew_lease().await.unwrap());
    let pending = commit(&mut paused_lane, 3, &build::pending_order(partner, "bought", 500)).await;
    assert!(matches!(pending, Verdict::Committed(Some(_))), "{pending:?}");
    let late = claim(&paused).await;
    assert!(
        late.chunks.is_empty() && late.unclaimable == UnclaimableStock::OwnedByOtherNode,
        "{late:?}"
    );

    assert_eq!(subject.allocations().await.len(), 1);
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

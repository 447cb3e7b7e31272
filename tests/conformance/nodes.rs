//! Two nodes over one database: one is paused past its lease, the other takes its stock, and the paused one comes back.

use std::sync::Arc;

use futures_util::future::join_all;
use vouchsafe::store::PgNode;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::stock::{ClaimedChunk, ClaimedStock, Elsewhere, StockRequest};
use vouchsafe_actors::journal::{Record, Stale, Verdict};
use vouchsafe_actors::store::{LaneStore, Store};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::Subject;

use crate::subject::PgSubject;

fn gift() -> Sku {
    build::sku("gift", 1_000)
}

async fn claim(node: &Arc<PgNode>) -> ClaimedStock {
    let request = StockRequest {
        sku: gift(),
        loaded: Vec::new(),
        enough: 1_000,
        not_before: build::day(0),
    };
    node.claim_stock(request).await.unwrap()
}

async fn commit(lane: &mut Box<dyn LaneStore>, batch: i64, record: &Record) -> Verdict {
    let mut verdicts = lane.commit(batch, std::slice::from_ref(record)).await.unwrap();
    verdicts.remove(0)
}

/// Claims that come at once go together: each brings the stock of its own SKU, and no more than that.
#[tokio::test(flavor = "multi_thread")]
async fn claims_that_come_at_once_bring_each_its_own() {
    const SKUS: i64 = 100;
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let sku = |face| build::sku("gift", face);
    // One SKU has nothing, one a chunk, one two of them, of which the one that expires first is enough.
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
            loaded: Vec::new(),
            enough: 2,
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
            next: (chunks.len() > 1).then(|| build::day(20)),
            elsewhere: Elsewhere::Nowhere,
        };
        assert_eq!(claimed, expected);
    }
    subject.remove().await;
}

/// A shelf that died may leave a claim in the line, and what it had loaded is nothing to the shelf that comes after it.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_has_loaded_another_one_gets() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        let sku = build::sku("gift", face);
        let stock = subject.add_chunk(&sku, &[build::day(1)]).await;
        for loaded in [vec![stock[0].chunk_id], Vec::new()] {
            let expected = usize::from(loaded.is_empty());
            let claim = node.claim_stock(StockRequest {
                sku: sku.clone(),
                loaded,
                enough: 1,
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

/// What cannot be read of one SKU is no trouble of those whose claims went together with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_fails_fails_alone() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        let sku = build::sku("gift", face);
        subject.add_chunk(&sku, &[build::day(1)]).await;
        claims.push(node.claim_stock(StockRequest {
            sku,
            loaded: Vec::new(),
            enough: 1,
            not_before: build::day(0),
        }));
    }
    // No day that a shelf could tell.
    let damaged = "UPDATE stock SET expiry = 'infinity' WHERE stock_id = (SELECT max(stock_id) FROM stock)";
    sqlx::query(damaged).execute(subject.pool()).await.unwrap();
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
async fn a_node_that_was_paused_past_its_lease_sells_nothing_of_what_was_taken() {
    const GONE: Verdict = Verdict::Stale(Stale::Stock);
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject.top_up(build::usd_of(partner), build::minor(10_000)).await;
    let vouchers = subject.add_chunk(&gift(), &[build::day(1), build::day(2)]).await;
    let order = |name: &str, of: usize| build::delivered(partner, name, &[(&gift(), &vouchers[of..=of])]);

    let (paused, other) = (subject.start("one").await, subject.start("two").await);
    assert_eq!(claim(&paused).await.chunks.len(), 1);
    let mut its_lane = paused.open_lane(0).await.unwrap();
    let mut other_lane = other.open_lane(0).await.unwrap();
    // While the lease lasts there is nothing to take, and nothing that could be sold.
    let early = claim(&other).await;
    assert!(
        early.chunks.is_empty() && early.elsewhere == Elsewhere::Owned,
        "{early:?}"
    );
    assert_eq!(commit(&mut other_lane, 1, &order("early", 0)).await, GONE);

    subject.lapse_lease("one").await;
    assert_eq!(claim(&other).await.chunks.len(), 1);
    let sold = commit(&mut other_lane, 2, &order("taken", 0)).await;
    assert!(matches!(sold, Verdict::Committed(Some(_))), "{sold:?}");

    // What the paused one had decided on is refused: the voucher that was sold, and the one that was not.
    assert_eq!(commit(&mut its_lane, 1, &order("sold", 0)).await, GONE);
    assert_eq!(commit(&mut its_lane, 2, &order("free", 1)).await, GONE);
    // It is no stranger for that: its lease is its own, its lane still writes, and the stock is somewhere else.
    assert!(paused.renew_lease().await.unwrap());
    let pending = commit(&mut its_lane, 3, &build::pending(partner, "bought", 500)).await;
    assert!(matches!(pending, Verdict::Committed(Some(_))), "{pending:?}");
    let late = claim(&paused).await;
    assert!(
        late.chunks.is_empty() && late.elsewhere == Elsewhere::Owned,
        "{late:?}"
    );

    assert_eq!(subject.allocations().await.len(), 1);
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

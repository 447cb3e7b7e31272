//! Concurrent stock claims of one node, and commits of a node that was paused past its lease.

use futures_util::future::join_all;
use sqlx::Executor as _;
use tokio::join;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::ids::ChunkId;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedChunk, ClaimedStock, StockRequest, UnclaimableStock};
use vouchsafe_simulation::conformance::{
    CaseFixture as _, Fixture, NODE, STALE_STOCK, Subject as _, claim, claimed_vouchers,
};
use vouchsafe_simulation::{build, conformance};
use vouchsafe_store::PgNode;

use crate::subject::PgSubject;

fn sku(face: i64) -> Sku {
    build::sku("gift", face)
}

fn stock_request(sku: Sku, loaded_chunks: Vec<ChunkId>, target_quantity: usize) -> StockRequest {
    StockRequest {
        sku,
        loaded_chunks,
        target_quantity,
        not_before: build::day(0),
        demanded: 0,
    }
}

/// Concurrent claims share a batch; each returns only its own SKU's stock.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_claims_return_their_own_stock() {
    const SKUS: i64 = 100;
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    // Alone, the first one would claim whatever there is.
    let _other_node = subject.start("two").await;
    // SKUs have no chunk, one, or two, of which the first to expire is enough.
    let mut stock = Vec::new();
    for face in 1..=SKUS {
        let mut chunks = Vec::new();
        for chunk in 0..face % 3 {
            chunks.push(subject.add_chunk(&sku(face), &[build::day(20 - chunk); 2]).await);
        }
        stock.push(chunks);
    }
    let claims = (1..=SKUS).map(|face| node.claim_stock(stock_request(sku(face), Vec::new(), 2)));
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

/// A claim whose transaction is still open holds no chunk that it does not take: another node claims the next
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn open_claim_locks_only_the_chunks_that_it_takes() {
    const CLAIM: &str = "
        SELECT FROM claim_chunks_v1('one', (SELECT incarnation FROM nodes WHERE node = 'one'), ARRAY[$1], ARRAY[$2], ARRAY['0001-01-01'::date],
                                    ARRAY[1::bigint], 500, 32, '{}', ARRAY[0], false, '3 seconds')";
    let subject = PgSubject::new().await;
    let _one = subject.start("one").await;
    let two = subject.start("two").await;
    let sku = sku(5);
    let mut chunks = Vec::new();
    for _ in 0..3 {
        chunks.push(subject.add_chunk(&sku, &[build::day(1)]).await[0].chunk_id);
    }
    let claim = sqlx::query(CLAIM)
        .bind(sku.product_id.as_str())
        .bind(sku.denomination.minor());
    let open = subject.begin_with(claim).await;
    let claimed = two.claim_stock(stock_request(sku, Vec::new(), 1)).await.unwrap();
    let claimed: Vec<_> = claimed.chunks.iter().map(|chunk| chunk.chunk_id).collect();
    assert_eq!(claimed, chunks[1..2]);
    conformance::OtherTransaction::rollback(open).await;
    subject.remove().await;
}

/// A crashed shelf may leave a claim in the queue; its loaded chunks do not affect the next shelf's claim.
#[tokio::test(flavor = "multi_thread")]
async fn chunk_loaded_by_one_claim_is_returned_to_another() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        let stock = subject.add_chunk(&sku(face), &[build::day(1)]).await;
        for loaded_chunks in [vec![stock[0].chunk_id], Vec::new()] {
            let expected = usize::from(loaded_chunks.is_empty());
            let claim = node.claim_stock(stock_request(sku(face), loaded_chunks, 1));
            claims.push(async move { (expected, claim.await.unwrap()) });
        }
    }
    for (expected, claimed) in join_all(claims).await {
        assert_eq!(claimed.chunks.len(), expected, "{claimed:?}");
    }
    subject.remove().await;
}

/// The connection is lost after the outcome of a batch was found, and the next one leads to a copy of the
/// database without it.
#[tokio::test(flavor = "multi_thread")]
async fn lane_that_reads_verdicts_from_an_older_copy_quarantines_stock() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut lane = node.open_lane(0).await.unwrap();
    lane.commit(1, &[]).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'vouchsafe lane 0'";
    subject.pool().execute(end).await.unwrap();
    lane.commit(2, &[]).await.unwrap_err();
    let before = node.discontinuities();
    lane.load_verdicts(&[]).await.unwrap();
    assert_eq!(node.discontinuities(), before, "nothing is missing");
    subject.pool().execute(end).await.unwrap();
    lane.commit(2, &[]).await.unwrap_err();
    subject
        .pool()
        .execute("UPDATE lanes SET batch = 0")
        .await
        .unwrap();
    lane.load_verdicts(&[]).await.unwrap();
    assert!(subject.store().quarantine.is_active().await.unwrap());
    assert_eq!(node.discontinuities(), before + 1);
    subject.remove().await;
}

/// One failing claim does not affect the others in its batch.
#[tokio::test(flavor = "multi_thread")]
async fn failing_claim_fails_alone() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let mut claims = Vec::new();
    for face in 1..=40 {
        subject.add_chunk(&sku(face), &[build::day(1)]).await;
        claims.push(node.claim_stock(stock_request(sku(face), Vec::new(), 1)));
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

/// A claim that needs stock of another node waits on connections of its own: orders of other SKUs need those
/// of `control`.
#[tokio::test(flavor = "multi_thread")]
async fn contested_claim_waits_on_a_connection_of_claims() {
    let subject = PgSubject::new().await;
    let (one, two) = (subject.start("one").await, subject.start("two").await);
    subject.add_chunk(&sku(1), &[build::day(1)]).await;
    one.claim_stock(stock_request(sku(1), Vec::new(), 1))
        .await
        .unwrap();
    let mut other = subject.pool().begin().await.unwrap();
    other
        .execute("LOCK TABLE stock_demands IN EXCLUSIVE MODE")
        .await
        .unwrap();
    let contested = StockRequest {
        demanded: 1,
        ..stock_request(sku(1), Vec::new(), 1)
    };
    let observe = async {
        subject.wait_for_blocked(1).await;
        let waiting = "SELECT a.application_name
                         FROM pg_locks AS l
                         JOIN pg_stat_activity AS a ON a.pid = l.pid
                        WHERE NOT l.granted AND a.datname = current_database()";
        let waiting: Vec<String> = sqlx::query_scalar(waiting)
            .fetch_all(subject.pool())
            .await
            .unwrap();
        other.rollback().await.unwrap();
        waiting
    };
    let (claimed, waiting) = join!(two.claim_stock(contested), observe);
    assert_eq!(waiting, ["vouchsafe claims"]);
    claimed.unwrap();
    subject.remove().await;
}

/// The paused node renews its lease and commits, but sells none of the stock that another node has claimed
/// meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn node_paused_past_its_lease_sells_none_of_the_claimed_stock() {
    let subject = PgSubject::new().await;
    let mut fixture = Fixture::create(&subject).await;
    let paused = subject.newest_node();
    let gifts = fixture.add_stock(2).await;
    let other = subject.start_node("two").await;
    subject.expire_lease(NODE).await;
    assert_eq!(claimed_vouchers(&claim(&other, &[]).await), gifts);
    assert!(paused.renew_lease().await.unwrap());
    let sale = fixture.delivered_order("a", &gifts[..1]);
    assert_eq!(fixture.commit_one(&sale).await, STALE_STOCK);
    fixture.must_commit(&fixture.pending_order("b", 500)).await;
    let late = fixture.claim(&[]).await;
    assert!(
        late.chunks.is_empty() && late.unclaimable == UnclaimableStock::OwnedByOtherNode,
        "{late:?}"
    );
    assert_eq!(subject.allocations().await, []);
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

/// The stock is free at all times, whichever node owns it: a claim that meets a release between two of its
/// statements must not take the SKU for sold out.
#[tokio::test(flavor = "multi_thread")]
async fn stock_that_changes_hands_is_never_sold_out() {
    const CLAIMS: usize = 400;
    let subject = PgSubject::new().await;
    let nodes = [subject.start("one").await, subject.start("two").await];
    subject.add_chunk(&sku(1), &[build::day(1)]).await;
    let trade = async |node: &PgNode| {
        for _ in 0..CLAIMS {
            let claimed = node
                .claim_stock(stock_request(sku(1), Vec::new(), 1))
                .await
                .unwrap();
            if claimed.chunks.is_empty() && claimed.next_expiry.is_none() {
                assert_eq!(claimed.unclaimable, UnclaimableStock::OwnedByOtherNode);
            }
            node.release_stock(sku(1), Vec::new()).await.unwrap();
        }
    };
    tokio::join!(trade(&nodes[0]), trade(&nodes[1]));
    drop(nodes);
    subject.remove().await;
}

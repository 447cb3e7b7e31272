//! How long an order takes in memory: the whole flow from the key to the verdict, with a store that says yes.
//!
//! `orders` many are placed at once, so that the journal gathers batches as it does under load; the figure is for one.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench has nobody to tell, and runs on its own thread"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::task::LocalSet;
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, KeyHash, KnownAnswer};
use vouchsafe_actors::domain::catalogue::{Assortment, Catalogue, RequestedLine, RequestedOrder};
use vouchsafe_actors::domain::clock::SystemClock;
use vouchsafe_actors::domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::{Amount, Currency};
use vouchsafe_actors::domain::order::{Fulfilment, Order, StoredOrder};
use vouchsafe_actors::domain::payout::Payout;
use vouchsafe_actors::domain::product::{Approval, ExpiryKind, ExpiryPolicy, Product, Redemption, Route};
use vouchsafe_actors::domain::stock::{ClaimedChunk, ClaimedStock, Elsewhere, StockRequest};
use vouchsafe_actors::domain::voucher::{Expiry, Shelved};
use vouchsafe_actors::engine::{Engine, Parts};
use vouchsafe_actors::flows::{PlaceOrder, Placed, Refusal, Wording, place_order};
use vouchsafe_actors::journal::{JournalMetrics, Record, Verdict};
use vouchsafe_actors::store::{
    BatchFate, CommitError, LaneStore, RecoverError, Store, StoreFuture, Unavailable,
};
use vouchsafe_actors::supervisor::Spawner;

/// Vouchers in a chunk of the endless stock.
const CHUNK: i64 = 500;

/// A store that holds endless stock and money, and commits everything at once.
#[derive(Debug, Default)]
struct YesStore {
    chunks: std::sync::atomic::AtomicI64,
}

struct YesLane;

impl LaneStore for YesLane {
    fn commit<'a>(
        &'a mut self,
        _: i64,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, CommitError>> {
        Box::pin(async move { Ok(vec![Verdict::Committed(None); records.len()]) })
    }

    fn recover(&mut self, _: i64) -> StoreFuture<'_, Result<BatchFate, RecoverError>> {
        Box::pin(async { Ok(BatchFate::Committed) })
    }

    fn verdicts<'a>(
        &'a mut self,
        records: &'a [Record],
    ) -> StoreFuture<'a, Result<Vec<Verdict>, Unavailable>> {
        Box::pin(async move { Ok(vec![Verdict::Committed(None); records.len()]) })
    }
}

impl Store for YesStore {
    fn open_lane(&self, _: u16) -> StoreFuture<'_, Result<Box<dyn LaneStore>, RecoverError>> {
        Box::pin(async { Ok(Box::new(YesLane) as Box<dyn LaneStore>) })
    }

    fn claim_stock(&self, request: StockRequest) -> StoreFuture<'_, Result<ClaimedStock, Unavailable>> {
        let chunks = i64::try_from(request.enough).unwrap().div_euclid(CHUNK) + 1;
        let first = self
            .chunks
            .fetch_add(chunks, std::sync::atomic::Ordering::Relaxed);
        let chunk = |id: i64| ClaimedChunk {
            chunk_id: ChunkId(id),
            vouchers: (id * CHUNK..(id + 1) * CHUNK)
                .map(|stock| (StockId(stock), Expiry::NEVER))
                .collect(),
        };
        let chunks = (first..first + chunks).map(chunk).collect();
        Box::pin(async {
            Ok(ClaimedStock {
                chunks,
                next: Some(Expiry::NEVER),
                elsewhere: Elsewhere::Nowhere,
            })
        })
    }

    fn load_wallets(&self, _: PartnerId) -> StoreFuture<'_, Result<Vec<(Currency, Receipt)>, Unavailable>> {
        let rich = Receipt {
            sequence: 1,
            balance: Amount::from_minor(i64::MAX),
        };
        Box::pin(async move { Ok(vec![(usd(), rich)]) })
    }

    fn load_order(
        &self,
        _: PartnerId,
        _: OrderId,
    ) -> StoreFuture<'_, Result<Option<StoredOrder>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }

    fn load_payout(&self, _: PartnerId, _: PayoutId) -> StoreFuture<'_, Result<Option<Payout>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }

    fn claim_bought(&self, _: uuid::Uuid) -> StoreFuture<'_, Result<Vec<Shelved>, Unavailable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn number_stock(&self, _: usize) -> StoreFuture<'_, Result<Vec<StockId>, Unavailable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn find_answer(&self, _: KeyHash) -> StoreFuture<'_, Result<Option<KnownAnswer>, Unavailable>> {
        Box::pin(async { Ok(None) })
    }
}

struct Plain;

impl Wording for Plain {
    fn accepted(&self, order: &Order) -> Answer {
        Answer {
            status: 201,
            body: order.order_id.to_string().into(),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Answer {
        Answer {
            status: 409,
            body: format!("{refusal:?}").into(),
        }
    }
}

fn usd() -> Currency {
    "USD".parse().unwrap()
}

fn product() -> Product {
    Product {
        product_id: "hot".parse().unwrap(),
        name: String::new(),
        brand: String::new(),
        category_id: String::new(),
        vendor: String::new(),
        currency: usd(),
        countries: Vec::new(),
        denominations: vec![Amount::from_minor(2_500)],
        denomination_range: None,
        expiry_policy: ExpiryPolicy {
            kind: ExpiryKind::None,
            value: None,
        },
        redemption: Redemption::default(),
        route: Route::Stock,
        approval: Approval::Rule,
        returnable: false,
        min_validity_days: 0,
        low_stock_at: 0,
        discontinued: false,
        updated_at: time::OffsetDateTime::UNIX_EPOCH,
    }
}

fn command(partner_id: PartnerId, catalogue: &Arc<Catalogue>) -> PlaceOrder {
    let line = RequestedLine {
        product_id: "hot".to_owned(),
        denomination: "25".into(),
        quantity: 1,
    };
    PlaceOrder {
        partner_id,
        key: KeyHash(uuid::Uuid::now_v7()),
        fingerprint: Fingerprint([0; 32]),
        request: RequestedOrder {
            lines: vec![line],
            currency: None,
            fulfilment: Fulfilment::Auto,
            reference: None,
            metadata: None,
        },
        assortment: Assortment::new(Arc::clone(catalogue), None),
        approval_rule: None,
        earlier_orders: None,
    }
}

async fn engine() -> Engine {
    let parts = Parts {
        store: Arc::new(YesStore::default()),
        clock: Arc::new(SystemClock::new()),
        spawner: Spawner::Here,
        spawn: &|lane| drop(tokio::task::spawn_local(lane)),
        lanes: 1,
        metrics: JournalMetrics::default(),
    };
    Engine::start(parts).await.unwrap()
}

/// Places `rounds` times `at_once` orders, and says how long one round took on average.
async fn place(rounds: u64, at_once: usize) -> Duration {
    let engine = engine().await;
    let catalogue = Arc::new(Catalogue::new([product()]));
    let partner_id = PartnerId::generate();
    let warm_up = place_order(&engine, command(partner_id, &catalogue), &Plain).await;
    assert!(matches!(warm_up, Ok(Placed::Fresh(_))), "{warm_up:?}");
    let begun = Instant::now();
    for _ in 0..rounds {
        let orders = (0..at_once).map(|_| place_order(&engine, command(partner_id, &catalogue), &Plain));
        for placed in futures_util::future::join_all(orders).await {
            assert!(matches!(black_box(placed), Ok(Placed::Fresh(_))));
        }
    }
    begun.elapsed()
}

fn orders_in_memory(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut group = criterion.benchmark_group("place_order_in_memory");
    for at_once in [1, 16, 256] {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(at_once),
            &at_once,
            |bencher, &at_once| {
                bencher.iter_custom(|rounds| LocalSet::new().block_on(&runtime, place(rounds, at_once)));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, orders_in_memory);
criterion_main!(benches);

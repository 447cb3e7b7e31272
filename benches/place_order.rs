//! How long an order takes in memory: the whole flow from the key to the verdict, with a store that says yes.
//!
//! `at_once` places so many together, so that the journal gathers batches as it does under load. `by_skus` and `by_partners`
//! place 64 together, with from one to as many SKUs or partners in memory as actors live at once, who take turns.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench has nobody to tell, and runs on its own thread"
)]

#[path = "parts/growth.rs"]
mod growth;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, KeyHash};
use vouchsafe_actors::domain::catalogue::{Assortment, Catalogue, RequestedLine, RequestedOrder};
use vouchsafe_actors::domain::clock::SystemClock;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::{Fulfilment, Order};
use vouchsafe_actors::domain::product::{Approval, ExpiryKind, ExpiryPolicy, Product, Redemption, Route};
use vouchsafe_actors::engine::{Engine, Parts};
use vouchsafe_actors::flows::{PlaceOrder, Placed, Refusal, Wording, place_order};
use vouchsafe_actors::journal::JournalMetrics;
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_actors::testing::build::{partner, usd};

use crate::growth::DECADES;
use crate::yes_store::{Claims, YesStore};

/// Orders that are placed together where it is not their number that is measured.
const TOGETHER: usize = 64;

/// Vouchers that a SKU has in memory at first, where there are many of them.
const CHUNK: i64 = 32;

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

fn name_of(sku: usize) -> String {
    format!("p-{sku}")
}

fn product(sku: usize) -> Product {
    Product {
        product_id: name_of(sku).parse().unwrap(),
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

/// An engine with what is ordered of it, and by whom.
struct World {
    engine: Engine,
    catalogue: Arc<Catalogue>,
    skus: usize,
    partners: Vec<PartnerId>,
    placed: Cell<usize>,
}

impl World {
    async fn new(claims: Claims, skus: u32, partners: u32) -> Self {
        let parts = Parts {
            store: Arc::new(YesStore::new(claims)),
            clock: Arc::new(SystemClock::new()),
            spawner: Spawner::Here,
            spawn: &|lane| drop(tokio::task::spawn_local(lane)),
            lanes: 1,
            metrics: JournalMetrics::default(),
        };
        let skus = usize::try_from(skus).unwrap();
        let world = Self {
            engine: Engine::start(parts).await.unwrap(),
            catalogue: Arc::new(Catalogue::new((0..skus).map(product))),
            skus,
            partners: (1..=partners).map(|number| partner(number.into())).collect(),
            placed: Cell::new(0),
        };
        // Every actor lives before anything is measured.
        let turns = skus.max(world.partners.len()).div_ceil(TOGETHER);
        world.place(turns as u64, TOGETHER).await;
        world
    }

    /// The next order: SKUs and partners take turns.
    fn command(&self) -> PlaceOrder {
        let number = self.placed.replace(self.placed.get() + 1);
        let line = RequestedLine {
            product_id: name_of(number % self.skus),
            denomination: "25".into(),
            quantity: 1,
        };
        PlaceOrder {
            partner_id: self.partners[number % self.partners.len()],
            key: KeyHash(uuid::Uuid::now_v7()),
            fingerprint: Fingerprint([0; 32]),
            request: RequestedOrder {
                lines: vec![line],
                currency: None,
                fulfilment: Fulfilment::Auto,
                reference: None,
                metadata: None,
            },
            assortment: Assortment::new(Arc::clone(&self.catalogue), None),
            approval_rule: None,
            earlier_orders: None,
        }
    }

    /// Places `rounds` times `at_once` orders, and says how long that took.
    async fn place(&self, rounds: u64, at_once: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..rounds {
            let orders = (0..at_once).map(|_| place_order(&self.engine, self.command(), &Plain));
            for placed in futures_util::future::join_all(orders).await {
                assert!(matches!(black_box(placed), Ok(Placed::Fresh(_))));
            }
        }
        begun.elapsed()
    }
}

fn orders_at_once(criterion: &mut Criterion, runtime: &Runtime) {
    let mut group = growth::group(criterion, "place_order_at_once");
    let local = LocalSet::new();
    let world = local.block_on(runtime, World::new(Claims::InFull, 1, 1));
    for at_once in [1, 16, 256] {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, world.place(rounds, at_once)));
        });
    }
    group.finish();
}

fn orders_by(criterion: &mut Criterion, runtime: &Runtime, name: &str, parties: fn(u32) -> (u32, u32)) {
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(TOGETHER as u64));
    for size in DECADES {
        let local = LocalSet::new();
        let (skus, partners) = parties(size);
        let world = local.block_on(runtime, World::new(Claims::ByTheChunk(CHUNK), skus, partners));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, world.place(rounds, TOGETHER)));
        });
    }
    group.finish();
}

fn orders_in_memory(criterion: &mut Criterion) {
    let runtime = growth::runtime();
    orders_at_once(criterion, &runtime);
    orders_by(criterion, &runtime, "place_order_by_skus", |size| (size, 1));
    orders_by(criterion, &runtime, "place_order_by_partners", |size| (1, size));
}

criterion_group!(benches, orders_in_memory);
criterion_main!(benches);

//! An in-memory engine with SKUs and partners for benches.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vouchsafe_actors::engine::{Engine, EngineParts};
use vouchsafe_actors::flows::{
    IdempotentResponse, OrderRefusal, OrderResponseEncoder, PlaceOrder, place_order,
};
use vouchsafe_actors::journal::JournalMetrics;
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_domain::catalogue::{Assortment, Catalogue, RequestedLine, RequestedOrder};
use vouchsafe_domain::clock::SystemClock;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{Fulfilment, Order};
use vouchsafe_domain::product::Product;
use vouchsafe_simulation::build;

use super::always_commits::{AlwaysCommits, StockClaims};

/// Concurrent orders in benches that vary another parameter.
pub(crate) const CONCURRENT_ORDERS: usize = 64;

struct PlainResponses;

impl OrderResponseEncoder for PlainResponses {
    fn accepted(&self, order: &Order) -> Response {
        Response {
            status: 201,
            body: order.order_id.to_string().into(),
        }
    }

    fn refused(&self, refusal: &OrderRefusal) -> Response {
        Response {
            status: 409,
            body: format!("{refusal:?}").into(),
        }
    }
}

fn product_id(sku: usize) -> String {
    format!("p-{sku}")
}

fn product(sku: usize) -> Product {
    Product {
        denominations: vec![Amount::from_minor(2_500).of(build::usd())],
        ..build::product(&product_id(sku))
    }
}

/// An engine with its SKUs and partners.
pub(crate) struct BenchEngine {
    engine: Engine,
    catalogue: Arc<Catalogue>,
    skus: usize,
    partners: Vec<PartnerId>,
    order_count: Cell<usize>,
}

impl BenchEngine {
    pub(crate) async fn new(claims: StockClaims, skus: u32, partners: u32) -> Self {
        let parts = EngineParts {
            store: Arc::new(AlwaysCommits::new(claims)),
            clock: Arc::new(SystemClock::new()),
            spawner: Spawner::CurrentThread,
            spawn: &|lane| drop(tokio::task::spawn_local(lane)),
            lanes: 1,
            metrics: JournalMetrics::default(),
        };
        let skus = usize::try_from(skus).unwrap();
        let bench = Self {
            engine: Engine::start(parts).await.unwrap(),
            catalogue: Arc::new(Catalogue::new((0..skus).map(product))),
            skus,
            partners: (1..=partners)
                .map(|number| build::partner(number.into()))
                .collect(),
            order_count: Cell::new(0),
        };
        // Starts every actor before the measurement.
        let rounds = skus.max(bench.partners.len()).div_ceil(CONCURRENT_ORDERS);
        bench.place(rounds as u64, CONCURRENT_ORDERS).await;
        bench
    }

    /// The next order; SKUs and partners are used round-robin.
    fn command(&self) -> PlaceOrder {
        let number = self.order_count.replace(self.order_count.get() + 1);
        let line = RequestedLine {
            product_id: product_id(number % self.skus),
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
            caps: None,
            origin: None,
        }
    }

    /// Places `at_once` concurrent orders in each round; returns the elapsed time.
    pub(crate) async fn place(&self, rounds: u64, at_once: usize) -> Duration {
        let started = Instant::now();
        for _ in 0..rounds {
            let orders = (0..at_once).map(|_| place_order(&self.engine, self.command(), &PlainResponses));
            for placed in futures_util::future::join_all(orders).await {
                assert!(matches!(black_box(placed), Ok(IdempotentResponse::Fresh(_))));
            }
        }
        started.elapsed()
    }
}

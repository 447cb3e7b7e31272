//! What does it cost to make an order durable? From the record to its verdict, with a store that says yes at once, and with
//! Postgres.
//!
//! The records are whole orders of one voucher, of 16 partners, and so many are submitted together. The Postgres is a private
//! one with durable settings: a verdict comes after its commit is on the disk.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench has nobody to tell, and its lanes end with it"
)]

#[path = "../tests/support/database.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod database;
#[path = "parts/growth.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod growth;
#[path = "../tests/conformance/rows.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod rows;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Semaphore;
use vouchsafe::postgres::Durability;
use vouchsafe::store::{PgNode, PgStore};
use vouchsafe_actors::delivery::commit_notifier::CommitNotifier;
use vouchsafe_actors::domain::clock::SystemClock;
use vouchsafe_actors::domain::ids::{ChunkId, PartnerId};
use vouchsafe_actors::domain::stock::StockRequest;
use vouchsafe_actors::domain::voucher::{Expiry, StockVoucher};
use vouchsafe_actors::engine::{DEFAULT_LANES, MAX_ADMITTED};
use vouchsafe_actors::journal::{Journal, JournalMetrics, RecordOutcome, Record, Ticket};
use vouchsafe_actors::idempotency::{KeyStatus, IdempotencyKeys};
use vouchsafe_actors::store::Store;
use vouchsafe_actors::testing::build;

use crate::database::Database;
use crate::yes_store::{Claims, YesStore};

/// How many records are submitted together.
const AT_ONCE: [usize; 3] = [1, 16, 256];

/// Who orders, in turn.
const PARTNERS: u64 = 16;

/// Vouchers of a chunk, as an import forms them.
const CHUNK: usize = 500;

/// What of production a database has from its first start on.
const FIRST_ROWS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO data_keys (purpose, wrapped) VALUES ('codes', ''), ('blind_index', '');";

/// A journal, and what its records are made of.
struct Desk {
    journal: Journal,
    keys: Arc<IdempotencyKeys>,
    admission: Arc<Semaphore>,
    store: Arc<dyn Store>,
    /// Where stock is imported, if it has to be.
    pool: Option<PgPool>,
    chunks: Vec<ChunkId>,
    vouchers: VecDeque<StockVoucher>,
    made: u64,
}

impl Desk {
    async fn new(store: Arc<dyn Store>, pool: Option<PgPool>) -> Self {
        let mut lanes = Vec::new();
        for lane in 0..DEFAULT_LANES {
            lanes.push(store.open_lane(lane).await.unwrap());
        }
        let (metrics, bell) = (JournalMetrics::default(), Arc::<CommitNotifier>::default());
        Self {
            journal: Journal::start(lanes, metrics, bell, &|lane| drop(tokio::spawn(lane))),
            keys: IdempotencyKeys::new(Arc::new(SystemClock::new())),
            admission: Arc::new(Semaphore::new(MAX_ADMITTED as usize)),
            store,
            pool,
            chunks: Vec::new(),
            vouchers: VecDeque::new(),
            made: 0,
        }
    }

    async fn on_postgres(database: &Database) -> Self {
        let pool = PgPoolOptions::new()
            .connect_with(database.options())
            .await
            .unwrap();
        sqlx::raw_sql(FIRST_ROWS).execute(&pool).await.unwrap();
        for partner_id in (1..=PARTNERS).map(build::partner) {
            sqlx::query("INSERT INTO partners (partner_id, name, allowlist) VALUES ($1, 'A partner', '{}')")
                .bind(partner_id.as_uuid())
                .execute(&pool)
                .await
                .unwrap();
            rows::top_up(&pool, build::usd_wallet(partner_id), build::minor(1_000_000_000_000)).await;
        }
        let store = PgStore::open(database.options(), Handle::current());
        let node = PgNode::start(store, "bench".to_owned()).await.unwrap();
        // Nobody renews it here.
        sqlx::query("UPDATE nodes SET lease_until = now() + interval '1 day'")
            .execute(&pool)
            .await
            .unwrap();
        Self::new(Arc::new(node), Some(pool)).await
    }

    /// Has so many vouchers ready.
    async fn stock_up(&mut self, vouchers: usize) {
        let sku = build::sku("hot", 2_500);
        while self.vouchers.len() < vouchers {
            if let Some(pool) = &self.pool {
                rows::add_chunk(pool, &sku, &[build::day(1); CHUNK]).await;
            }
            let request = StockRequest {
                sku: sku.clone(),
                loaded_chunks: self.chunks.clone(),
                target_quantity: CHUNK,
                not_before: Expiry::PAST,
            };
            let claimed = self.store.claim_stock(request).await.unwrap();
            for chunk in claimed.chunks {
                let chunk_id = chunk.chunk_id;
                self.chunks.push(chunk_id);
                self.vouchers
                    .extend(chunk.vouchers.iter().map(|(stock_id, expiry)| StockVoucher {
                        expiry: *expiry,
                        stock_id: *stock_id,
                        chunk_id,
                    }));
            }
        }
    }

    fn record(&mut self) -> Record {
        let voucher = self.vouchers.pop_front().unwrap();
        self.made += 1;
        let partner_id: PartnerId = build::partner(self.made % PARTNERS + 1);
        let sku = build::sku("hot", 2_500);
        build::delivered_order(partner_id, &format!("order {}", self.made), &[(&sku, &[voucher])])
    }

    fn ticket(&self, record: &Record) -> Ticket {
        let KeyStatus::First(key) = self.keys.begin(record.claim.key) else {
            unreachable!("each record has a key of its own");
        };
        let admission = Arc::clone(&self.admission).try_acquire_owned().unwrap();
        Ticket { key, admission }
    }

    /// Makes the records of all rounds, and says how long it took to submit them and hear their verdicts.
    async fn commit(&mut self, rounds: u64, at_once: usize) -> Duration {
        let mut took = Duration::ZERO;
        for _ in 0..rounds {
            self.stock_up(at_once).await;
            let records: Vec<_> = (0..at_once).map(|_| self.record()).collect();
            let begun = Instant::now();
            let submitted = records.into_iter().map(|record| {
                let ticket = self.ticket(&record);
                self.journal.submit(record, Vec::new(), ticket)
            });
            for outcome in join_all(submitted.collect::<Vec<_>>()).await {
                assert!(matches!(outcome, Ok(RecordOutcome::Committed(_))), "{outcome:?}");
            }
            took += begun.elapsed();
        }
        took
    }
}

fn measure(criterion: &mut Criterion, name: &str, runtime: &Runtime, mut desk: Desk) {
    let mut group = growth::group(criterion, name);
    group.sample_size(10);
    for at_once in AT_ONCE {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.iter_custom(|rounds| runtime.block_on(desk.commit(rounds, at_once)));
        });
    }
    group.finish();
}

fn journal(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let yes = Arc::new(YesStore::new(Claims::InFull));
    let desk = runtime.block_on(Desk::new(yes, None));
    measure(criterion, "journal_yes", &runtime, desk);
    let database = runtime.block_on(Database::create_on(Durability::Durable));
    let desk = runtime.block_on(Desk::on_postgres(&database));
    measure(criterion, "journal_postgres", &runtime, desk);
    runtime.block_on(database.remove());
}

criterion_group!(benches, journal);
criterion_main!(benches);

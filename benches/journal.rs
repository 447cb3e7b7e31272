//! Benchmark of the journal: from submitting a record to its verdict, with a store that commits at once and
//! with Postgres.
//!
//! The records are orders of one voucher from 16 partners, submitted concurrently. Postgres is a private
//! server with durable settings: a verdict follows the commit on disk.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench may panic, and its lanes end with the process"
)]

#[path = "parts/mod.rs"]
mod parts;
#[path = "../tests/conformance/rows.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod rows;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::{Handle, Runtime};
use vouchsafe_actors::delivery::commit_notifier::CommitNotifier;
use vouchsafe_actors::engine::DEFAULT_LANES;
use vouchsafe_actors::idempotency::{IdempotencyKeys, KeyStatus};
use vouchsafe_actors::journal::{Journal, JournalMetrics, RecordOutcome, Ticket};
use vouchsafe_actors::ports::record::Record;
use vouchsafe_actors::ports::store::Store;
use vouchsafe_domain::clock::SystemClock;
use vouchsafe_domain::ids::{ChunkId, PartnerId};
use vouchsafe_domain::stock::StockRequest;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_private_postgres::Durability;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::claimed_vouchers;
use vouchsafe_store::{PgNode, PgStore};

use crate::parts::always_commits::{AlwaysCommits, StockClaims};
use crate::parts::growth;
use vouchsafe_test_harness::Database;

/// Concurrent records.
const AT_ONCE: [usize; 3] = [1, 16, 256];

/// Partners, round-robin.
const PARTNERS: u64 = 16;

/// Vouchers per chunk, as in an import.
const CHUNK: usize = 500;

/// Rows that a database gets at its first start.
const FIRST_ROWS: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO data_keys (purpose, wrapped, wrapped_by) VALUES ('codes', '', ''), ('blind_index', '', '');";

/// A journal with the data for its records.
struct JournalBench {
    journal: Journal,
    keys: Arc<IdempotencyKeys>,
    store: Arc<dyn Store>,
    /// Connections that import stock; `None` if the store has unlimited stock.
    pool: Option<PgPool>,
    chunks: Vec<ChunkId>,
    vouchers: VecDeque<StockVoucher>,
    record_count: u64,
}

impl JournalBench {
    async fn new(store: Arc<dyn Store>, pool: Option<PgPool>) -> Self {
        let mut lanes = Vec::new();
        for lane in 0..DEFAULT_LANES {
            lanes.push(store.open_lane(lane).await.unwrap());
        }
        let (metrics, bell) = (JournalMetrics::default(), Arc::<CommitNotifier>::default());
        Self {
            journal: Journal::start(lanes, metrics, bell, &|lane| drop(tokio::spawn(lane))),
            keys: IdempotencyKeys::new(Arc::new(SystemClock::new())),
            store,
            pool,
            chunks: Vec::new(),
            vouchers: VecDeque::new(),
            record_count: 0,
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
            rows::top_up(
                &pool,
                build::usd_wallet(partner_id),
                build::minor(1_000_000_000_000),
            )
            .await;
        }
        let store = PgStore::open(database.options(), Handle::current());
        let node = PgNode::start(&store.database, "bench".to_owned()).await.unwrap();
        // No process renews the lease in this bench.
        sqlx::query("UPDATE nodes SET lease_until = now() + interval '1 day'")
            .execute(&pool)
            .await
            .unwrap();
        Self::new(Arc::new(node), Some(pool)).await
    }

    /// Claims stock until `vouchers` vouchers are available.
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
                demanded: 0,
            };
            let claimed = self.store.claim_stock(request).await.unwrap();
            self.chunks
                .extend(claimed.chunks.iter().map(|chunk| chunk.chunk_id));
            self.vouchers.extend(claimed_vouchers(&claimed));
        }
    }

    fn record(&mut self) -> Record {
        let voucher = self.vouchers.pop_front().unwrap();
        self.record_count += 1;
        let partner_id: PartnerId = build::partner(self.record_count % PARTNERS + 1);
        let sku = build::sku("hot", 2_500);
        build::delivered_order(
            partner_id,
            &format!("order {}", self.record_count),
            &[(&sku, &[voucher])],
        )
    }

    fn ticket(&self, record: &Record) -> Ticket {
        let KeyStatus::First(key) = self.keys.begin(record.claim.key) else {
            unreachable!("each record has a unique key");
        };
        let admission = self.journal.try_admit(record.partner_id).unwrap();
        Ticket { key, admission }
    }

    /// Submits `at_once` concurrent records in each round; returns the time until all verdicts.
    async fn commit(&mut self, rounds: u64, at_once: usize) -> Duration {
        let mut elapsed = Duration::ZERO;
        for _ in 0..rounds {
            self.stock_up(at_once).await;
            let records: Vec<_> = (0..at_once).map(|_| self.record()).collect();
            let started = Instant::now();
            let submitted = records.into_iter().map(|record| {
                let ticket = self.ticket(&record);
                self.journal.submit(record, Vec::new(), ticket)
            });
            for outcome in join_all(submitted.collect::<Vec<_>>()).await {
                assert!(matches!(outcome, Ok(RecordOutcome::Committed(_))), "{outcome:?}");
            }
            elapsed += started.elapsed();
        }
        elapsed
    }
}

fn measure(criterion: &mut Criterion, name: &str, runtime: &Runtime, mut bench: JournalBench) {
    let mut group = growth::group(criterion, name);
    group.sample_size(10);
    for at_once in AT_ONCE {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.iter_custom(|rounds| runtime.block_on(bench.commit(rounds, at_once)));
        });
    }
    group.finish();
}

fn journal(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let always_commits = Arc::new(AlwaysCommits::new(StockClaims::InFull));
    let bench = runtime.block_on(JournalBench::new(always_commits, None));
    measure(criterion, "journal_yes", &runtime, bench);
    let database = runtime.block_on(Database::create_on(Durability::Durable));
    let bench = runtime.block_on(JournalBench::on_postgres(&database));
    measure(criterion, "journal_postgres", &runtime, bench);
    runtime.block_on(database.remove());
}

criterion_group!(benches, journal);
criterion_main!(benches);

//! Group commit of the floor behind HTTP: two lanes with one connection each. A lane writes all queued orders in one
//! batch and responds after the commit.
//!
//! The same commit strategy as the service, without decisions and verification.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use super::clock;
use super::floor::{FloorBatch, FloorOrder};
use super::refusal::Refusal;

const LANES: usize = 2;
/// Maximum orders per batch, as in the service.
const MAX_BATCH: usize = 4_096;

/// A queued order and the channel for its result.
type QueuedOrder = (FloorOrder, oneshot::Sender<bool>);

#[derive(Default)]
struct OrderQueue {
    queued: Mutex<Vec<QueuedOrder>>,
    order_queued: Notify,
}

/// Handle of the lanes, which run until the process ends.
#[derive(Clone)]
pub(super) struct FloorBatcher {
    queue: Arc<OrderQueue>,
    numbers: Arc<AtomicI64>,
}

impl FloorBatcher {
    /// Starts the lanes on a dedicated thread; order numbers continue after existing rows.
    pub(super) async fn start(options: &PgConnectOptions, partner_id: Uuid) -> anyhow::Result<Self> {
        let mut connection = PgConnection::connect_with(options).await?;
        let last: i64 = sqlx::query_scalar("SELECT COALESCE(max(stock_id), 0) FROM allocations")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        let batcher = Self {
            queue: Arc::default(),
            numbers: Arc::new(AtomicI64::new(last)),
        };
        let (queue, options) = (Arc::clone(&batcher.queue), options.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new().name("lanes".to_owned()).spawn(move || {
            let lanes = tokio::task::LocalSet::new();
            for _ in 0..LANES {
                lanes.spawn_local(run_lane(Arc::clone(&queue), options.clone(), partner_id));
            }
            runtime.block_on(lanes);
        })?;
        Ok(batcher)
    }

    pub(super) fn next_number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes an order; returns after its commit.
    pub(super) async fn write(&self, order: FloorOrder) -> Result<(), Refusal> {
        let (reply, committed) = oneshot::channel();
        self.queue.push((order, reply));
        match committed.await {
            Ok(true) => Ok(()),
            _ => Err(Refusal::ServiceUnavailable),
        }
    }
}

impl OrderQueue {
    fn push(&self, queued: QueuedOrder) {
        self.queued
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(queued);
        self.order_queued.notify_one();
    }

    /// Takes all queued orders, up to the maximum; waits for at least one.
    async fn take(&self) -> Vec<QueuedOrder> {
        loop {
            let batch = {
                let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
                let count = queued.len().min(MAX_BATCH);
                let remaining = queued.split_off(count);
                std::mem::replace(&mut *queued, remaining)
            };
            if !batch.is_empty() {
                return batch;
            }
            self.order_queued.notified().await;
        }
    }
}

/// Writes batches until the process ends. Reconnects after an error.
async fn run_lane(queue: Arc<OrderQueue>, options: PgConnectOptions, partner_id: Uuid) {
    let mut idle_connection = None;
    loop {
        let (orders, replies): (Vec<FloorOrder>, Vec<_>) = queue.take().await.into_iter().unzip();
        let mut batch = FloorBatch::default();
        orders.into_iter().for_each(|order| batch.push(order));
        let connection = match idle_connection.take() {
            Some(connection) => Ok(connection),
            None => PgConnection::connect_with(&options).await,
        };
        let committed = match connection {
            Ok(mut connection) => {
                let written = batch
                    .write(&mut connection, partner_id, clock::now())
                    .await
                    .is_ok();
                idle_connection = written.then_some(connection);
                written
            }
            Err(_) => false,
        };
        for queued in replies {
            // The caller may have disconnected.
            let _ = queued.send(committed);
        }
    }
}

//! How does the floor write behind the HTTP stack? Two lanes, each with a connection: one takes whatever has gathered
//! while the commits before it were under way, writes it, and only then are its orders answered.
//!
//! The same group commit as the service's, with nothing decided before it and nothing verified in it.

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

/// Connections that write.
const LANES: usize = 2;
/// Orders of a batch, at most: as many as the service's.
const MAX_BATCH: usize = 4_096;

/// An order that waits, and who is told.
type Waiting = (FloorOrder, oneshot::Sender<bool>);

/// What has gathered.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    filled: Notify,
}

/// The lanes. They end with the process.
#[derive(Clone)]
pub(super) struct FloorBatcher {
    queue: Arc<Queue>,
    numbers: Arc<AtomicI64>,
}

impl FloorBatcher {
    /// Starts the lanes on a thread of their own, numbering on from what is there.
    ///
    /// # Errors
    /// When the database cannot be reached or the thread not be started.
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
                lanes.spawn_local(lane(Arc::clone(&queue), options.clone(), partner_id));
            }
            runtime.block_on(lanes);
        })?;
        Ok(batcher)
    }

    /// The number of the next order.
    pub(super) fn next_number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns when the order is committed.
    ///
    /// # Errors
    /// [`Refusal::ServiceUnavailable`] if its batch was not.
    pub(super) async fn write(&self, order: FloorOrder) -> Result<(), Refusal> {
        let (told, committed) = oneshot::channel();
        self.queue.push((order, told));
        match committed.await {
            Ok(true) => Ok(()),
            _ => Err(Refusal::ServiceUnavailable),
        }
    }
}

impl Queue {
    fn push(&self, waiting: Waiting) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(waiting);
        self.filled.notify_one();
    }

    /// Everything that has gathered, and at least one.
    async fn take(&self) -> Vec<Waiting> {
        loop {
            let taken = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let rest = waiting.len().min(MAX_BATCH);
                let later = waiting.split_off(rest);
                std::mem::replace(&mut *waiting, later)
            };
            if !taken.is_empty() {
                return taken;
            }
            self.filled.notified().await;
        }
    }
}

/// Writes batches for as long as the process lives, each on the connection of the last one that went well.
async fn lane(queue: Arc<Queue>, options: PgConnectOptions, partner_id: Uuid) {
    let mut open = None;
    loop {
        let (orders, told): (Vec<FloorOrder>, Vec<_>) = queue.take().await.into_iter().unzip();
        let mut batch = FloorBatch::default();
        orders.into_iter().for_each(|order| batch.push(order));
        let connection = match open.take() {
            Some(connection) => Ok(connection),
            None => PgConnection::connect_with(&options).await,
        };
        let committed = match connection {
            Ok(mut connection) => {
                let written = batch
                    .write(&mut connection, partner_id, clock::now())
                    .await
                    .is_ok();
                open = written.then_some(connection);
                written
            }
            Err(_) => false,
        };
        for waiting in told {
            // Whoever has gone needs no answer.
            let _ = waiting.send(committed);
        }
    }
}

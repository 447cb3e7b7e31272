//! Orders of the floor behind HTTP: two lanes with one connection each. A lane writes all queued orders in
//! one statement, one row in each of five tables per order, and responds after the commit.
//!
//! The same commit strategy as the service, without decisions and verification.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::{Mutex, mpsc, oneshot};
use uuid::Uuid;

use super::order;
use super::refusal::Refusal;

const LANES: usize = 2;
/// Maximum orders per batch, as in the service.
const MAX_BATCH: usize = 4_096;

/// An order of one voucher, written as five rows.
#[derive(Clone, Debug)]
pub(super) struct FloorOrder {
    pub(super) order_id: Uuid,
    pub(super) transaction_id: Uuid,
    pub(super) voucher_id: Uuid,
    pub(super) total: i64,
    pub(super) lines: String,
    pub(super) event: String,
}

/// A queued order and the channel for its result.
type QueuedOrder = (FloorOrder, oneshot::Sender<bool>);

/// The lanes take turns in waiting for orders.
type Queue = Arc<Mutex<mpsc::UnboundedReceiver<QueuedOrder>>>;

/// Handle of the lanes, which run until the process ends.
#[derive(Clone)]
pub(super) struct FloorBatcher(mpsc::UnboundedSender<QueuedOrder>);

impl FloorBatcher {
    /// Starts the lanes on a dedicated thread; order numbers continue after existing rows.
    pub(super) async fn start(options: &PgConnectOptions, partner_id: Uuid) -> anyhow::Result<Self> {
        let mut connection = PgConnection::connect_with(options).await?;
        let last: i64 = sqlx::query_scalar("SELECT COALESCE(max(stock_id), 0) FROM allocations")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let (queue, numbers) = (Arc::new(Mutex::new(receiver)), Arc::new(AtomicI64::new(last)));
        let options = options.clone();
        let runtime = crate::runtime::new_runtime()?;
        thread::Builder::new().name("lanes".to_owned()).spawn(move || {
            let lanes = tokio::task::LocalSet::new();
            for _ in 0..LANES {
                let (queue, numbers) = (Arc::clone(&queue), Arc::clone(&numbers));
                lanes.spawn_local(run_lane(queue, numbers, options.clone(), partner_id));
            }
            runtime.block_on(lanes);
        })?;
        Ok(Self(sender))
    }

    /// Writes an order; returns after its commit.
    pub(super) async fn write(&self, order: FloorOrder) -> Result<(), Refusal> {
        let (reply, committed) = oneshot::channel();
        let queued = self.0.send((order, reply)).is_ok();
        match committed.await {
            Ok(true) if queued => Ok(()),
            _ => Err(Refusal::ServiceUnavailable),
        }
    }
}

/// Writes batches until the process ends. Reconnects after an error.
async fn run_lane(queue: Queue, numbers: Arc<AtomicI64>, options: PgConnectOptions, partner_id: Uuid) {
    let mut idle_connection = None;
    loop {
        let mut batch = Vec::new();
        if queue.lock().await.recv_many(&mut batch, MAX_BATCH).await == 0 {
            return;
        }
        let (orders, replies): (Vec<FloorOrder>, Vec<_>) = batch.into_iter().unzip();
        let connection = match idle_connection.take() {
            Some(connection) => Ok(connection),
            None => PgConnection::connect_with(&options).await,
        };
        let committed = match connection {
            Ok(mut connection) => {
                let written = write_batch(&mut connection, &orders, &numbers, partner_id).await;
                idle_connection = written.is_ok().then_some(connection);
                written.is_ok()
            }
            Err(_) => false,
        };
        for reply in replies {
            // The caller may have disconnected.
            let _ = reply.send(committed);
        }
    }
}

/// Writes a batch in one transaction. A number is stock id, balance sequence and event number of its order.
async fn write_batch(
    connection: &mut PgConnection,
    orders: &[FloorOrder],
    numbers: &AtomicI64,
    partner_id: Uuid,
) -> sqlx::Result<()> {
    fn column<T>(orders: &[FloorOrder], value: impl Fn(&FloorOrder) -> T) -> Vec<T> {
        orders.iter().map(value).collect()
    }
    let statement = sqlx::query(include_str!("sql/floor_batch.sql"))
        .bind(partner_id)
        .bind(order::now())
        .bind(column(orders, |order| order.order_id))
        .bind(column(orders, |order| order.total))
        .bind(column(orders, |order| order.lines.clone()))
        .bind(column(orders, |_| numbers.fetch_add(1, Ordering::Relaxed) + 1))
        .bind(column(orders, |order| order.voucher_id))
        .bind(column(orders, |order| order.transaction_id))
        .bind(column(orders, |order| order.event.clone()));
    connection.execute(statement).await.map(drop)
}

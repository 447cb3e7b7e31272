//! Request coalescing: concurrent operations of one kind share one SQL statement and one commit.
//!
//! A [`Batcher`] queues operations; each of its workers drains the queue, runs one statement for the whole
//! batch, and repeats. A lone operation never waits for company. Setting up a statement costs Postgres more
//! than one more row in it, so under load a worker pauses up to 4 ms between batches to let the queue grow.
//! Each worker has its own connection.
//!
//! Failure isolation: if a batch fails, each of its operations runs again alone; an operation that would
//! block its batch is left out of it and runs alone. Counts of a failed batch fail with it: they would occupy
//! connections that others need, for a response that comes too late. Operations queued for longer than the
//! pool's acquire timeout are rejected.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::PgPool;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep};
use vouchsafe_domain::store_error::Unavailable;

use super::connection_pool::{ACQUIRE_TIMEOUT, ConnectionPool, DEADLINE, PoolLimits};
use super::database::Database;
use super::error::{StoreError, unavailable};

/// A batch slower than this was waiting for CPU or disk, so larger batches pay: an idle server needs half of
/// the time.
const SLOW_BATCH: Duration = Duration::from_millis(1);

/// First delay between batches, and the bound of its exponential growth. 4 ms is short compared with the
/// response times under the load at which the delay gets there.
const MIN_DELAY: Duration = Duration::from_millis(1);
const MAX_DELAY: Duration = Duration::from_millis(4);

/// Longer than the statement timeout of lookups and counts below.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(3);

/// Settings of connections that only read. A lookup that waits for a lock gives up after a second and runs
/// alone. Each statement is planned once: with array parameters, the server would plan it for each execution,
/// which takes longer than the lookup. The plan consists of index probes, whatever the table sizes were at
/// plan time.
const LOOKUP_SETTINGS: [(&str, &str); 6] = [
    ("statement_timeout", "1s"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// Settings of connections that count. A statement that waits for longer comes too late for its requests.
const COUNT_SETTINGS: [(&str, &str); 1] = [("statement_timeout", "1s")];

/// One entry per request: a response, an error of this request, or `None` to run the request alone.
pub type BatchResponse<R> = Vec<Option<Result<R, sqlx::Error>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatcherKind {
    /// Calls SQL functions with planner settings of their own.
    Write,
    /// Reads rows.
    Lookup,
    /// Updates counts that a crash may lose. The caller handles the failure of a batch.
    Count,
}

/// An operation that can run for many callers in one statement.
pub trait BatchOp: Clone + Send + Sync + 'static {
    type Request: Clone + Send + 'static;
    type Response: Default + Send + 'static;

    /// Bounds the memory of one statement and the wait of the first caller in a batch.
    const MAX_BATCH: usize;

    /// Statements at the same time, each on a connection of its own. With one, batches are larger, and each
    /// request costs less; a second one executes while the first waits for a lock.
    const WORKERS: usize = 1;

    /// Runs the whole batch and responds in its order. `Err` means that nothing was written, as far as this
    /// node knows.
    fn execute_batch(
        self,
        pool: PgPool,
        requests: Vec<Self::Request>,
    ) -> impl Future<Output = Result<BatchResponse<Self::Response>, sqlx::Error>> + Send;

    /// Runs one request from the beginning: as a batch of one, whose request has the default response if it
    /// is left out.
    fn execute_one(
        self,
        pool: PgPool,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Response, sqlx::Error>> + Send {
        async move {
            let mut responses = self.execute_batch(pool, vec![request]).await?;
            let response = responses.pop().flatten();
            response.unwrap_or_else(|| Ok(Self::Response::default()))
        }
    }
}

/// Converts a request number from SQL, where numbers start at 1.
///
/// # Errors
/// [`sqlx::Error::Decode`] for a number below 1.
pub fn request_index(number: i32) -> Result<usize, sqlx::Error> {
    let index = usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    index.ok_or_else(|| sqlx::Error::Decode(format!("no request has the number {number}").into()))
}

struct QueuedRequest<Op: BatchOp> {
    request: Op::Request,
    queued_at: Instant,
    reply: oneshot::Sender<Result<Op::Response, Unavailable>>,
}

/// Handle to the queue of one operation; clones share the queue.
#[derive(Debug)]
pub struct Batcher<Op: BatchOp> {
    // Unbounded: the limits on actors and HTTP requests bound its length.
    queue: mpsc::UnboundedSender<QueuedRequest<Op>>,
}

impl<Op: BatchOp> Clone for Batcher<Op> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<Op: BatchOp> Batcher<Op> {
    /// Starts the workers. They end when the last clone of the batcher is dropped. Requests that run alone
    /// use the connections of `database`.
    pub fn start(database: &Database, op: &Op, kind: BatcherKind) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let requests = Arc::new(Mutex::new(requests));
        let (settings, deadline) = match kind {
            BatcherKind::Write => ([].as_slice(), DEADLINE),
            BatcherKind::Lookup => (LOOKUP_SETTINGS.as_slice(), LOOKUP_DEADLINE),
            BatcherKind::Count => (COUNT_SETTINGS.as_slice(), LOOKUP_DEADLINE),
        };
        for _ in 0..Op::WORKERS {
            let servers = database.session_servers().with_settings(settings.iter().copied());
            let limits = PoolLimits {
                connections: 1,
                acquire_timeout: ACQUIRE_TIMEOUT,
                deadline,
            };
            let worker = BatchWorker {
                database: database.clone(),
                connection: ConnectionPool::new(servers, limits, None),
                op: op.clone(),
                kind,
            };
            let requests = Arc::clone(&requests);
            drop(database.spawn(async move {
                worker.run(&requests).await;
                Ok(())
            }));
        }
        Self { queue }
    }

    /// Queues a request and waits for its response. The request runs to completion even if the caller stops
    /// waiting after it was started.
    ///
    /// # Errors
    /// [`Unavailable`] if the statement failed, or the queue has ended.
    pub async fn submit(&self, request: Op::Request) -> Result<Op::Response, Unavailable> {
        let (reply, response) = oneshot::channel();
        let worker_gone = || Err(unavailable(&sqlx::Error::WorkerCrashed));
        let queued_at = Instant::now();
        let queued = self.queue.send(QueuedRequest {
            request,
            queued_at,
            reply,
        });
        if queued.is_err() {
            return worker_gone();
        }
        response.await.unwrap_or_else(|_| worker_gone())
    }
}

struct BatchWorker<Op> {
    /// Runs requests that were left out of a batch.
    database: Database,
    connection: ConnectionPool,
    op: Op,
    kind: BatcherKind,
}

impl<Op: BatchOp> BatchWorker<Op> {
    async fn run(&self, queue: &Mutex<mpsc::UnboundedReceiver<QueuedRequest<Op>>>) {
        let mut received = Vec::new();
        let mut delay = Duration::ZERO;
        while queue.lock().await.recv_many(&mut received, Op::MAX_BATCH).await > 0 {
            // Requests of callers that have disconnected are dropped.
            let (expired, batch): (Vec<_>, Vec<_>) = received
                .drain(..)
                .filter(|queued| !queued.reply.is_closed())
                .partition(|queued| queued.queued_at.elapsed() > ACQUIRE_TIMEOUT);
            for queued in expired {
                queued.send_reply(Err::<Op::Response, _>(sqlx::Error::PoolTimedOut));
            }
            let started = Instant::now();
            if !batch.is_empty() {
                self.run_batch(batch).await;
            }
            // `try_lock` fails only while the other worker waits for the first request: the queue is empty
            // then.
            let queue_length = queue.try_lock().map_or(0, |queue| queue.len());
            delay = next_batch_delay(delay, started.elapsed(), queue_length, Op::MAX_BATCH);
            if queue_length > 0 {
                sleep(delay).await;
            }
        }
    }

    async fn run_batch(&self, batch: Vec<QueuedRequest<Op>>) {
        let requests = batch.iter().map(|queued| queued.request.clone()).collect();
        let op = self.op.clone();
        let work = self.connection.run(move |pool| op.execute_batch(pool, requests));
        let result = AssertUnwindSafe(work)
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(sqlx::Error::WorkerCrashed.into()));
        match result {
            Ok(responses) => {
                for (queued, response) in batch.into_iter().zip(responses) {
                    match response {
                        Some(response) => queued.send_reply(response),
                        None => self.run_alone(queued),
                    }
                }
            }
            // The database accepts no connection: each request would find the same, after as long, if it ran
            // alone.
            Err(error) if error.is_overload() || error.is_refused() || self.kind == BatcherKind::Count => {
                reject_all(batch, &error)
            }
            Err(_) => batch.into_iter().for_each(|queued| self.run_alone(queued)),
        }
    }

    fn run_alone(&self, queued: QueuedRequest<Op>) {
        let (op, request) = (self.op.clone(), queued.request.clone());
        let response = self.database.run(move |pool| op.execute_one(pool, request));
        drop(self.database.spawn(async move {
            queued.send_reply(response.await);
            Ok(())
        }));
    }
}

/// Doubles the delay while batches are slow and the queue is not empty, halves it otherwise. A full batch
/// starts at once.
fn next_batch_delay(
    previous: Duration,
    duration: Duration,
    queue_length: usize,
    max_batch: usize,
) -> Duration {
    if queue_length >= max_batch {
        Duration::ZERO
    } else if queue_length > 0 && duration >= SLOW_BATCH {
        (previous * 2).clamp(MIN_DELAY, MAX_DELAY)
    } else if previous > MIN_DELAY {
        previous / 2
    } else {
        Duration::ZERO
    }
}

fn reject_all<Op: BatchOp>(batch: Vec<QueuedRequest<Op>>, error: &StoreError) {
    let reason = unavailable(error.cause());
    for queued in batch {
        // The caller may have disconnected.
        drop(queued.reply.send(Err(reason.clone())));
    }
}

impl<Op: BatchOp> QueuedRequest<Op> {
    fn send_reply(self, response: Result<Op::Response, impl Into<StoreError>>) {
        // The caller may have disconnected.
        drop(
            self.reply
                .send(response.map_err(|error| unavailable(error.into().cause()))),
        );
    }
}

#[cfg(test)]
mod tests;

//! Batching writer of the log of delivery attempts.
//!
//! Delivery actors add attempts to a bounded queue and never wait for it. One task drains the queue a few
//! times per second and inserts all of it in one statement. When the queue is full, or the database rejects a
//! batch repeatedly, attempts are dropped from the log and counted; deliveries and orders are not affected.
//! At shutdown the task writes what is queued.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tracing::warn;
use vouchsafe_actors::delivery::outbox::AttemptLog;
use vouchsafe_domain::delivery::attempt::EndedAttempt;
use vouchsafe_domain::ids::AttemptId;
use vouchsafe_store::{DeliveryLog, PgNode};

use crate::metrics::AttemptLogMetrics;

/// Attempts that wait to be written: three seconds at 5,000 deliveries per second, of about half a kilobyte
/// each.
const QUEUE_CAPACITY: usize = 16_384;

/// Attempts per statement.
const MAX_BATCH: usize = 2_048;

/// Pause between two statements, so that a batch grows.
const BATCH_DELAY: Duration = Duration::from_millis(250);

/// How often a batch is written before it is dropped: the database was away for longer than leases last, or
/// rejects it.
const MAX_TRIES: u32 = 30;

/// Delay before a batch is written again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

type LogEntry = (AttemptId, EndedAttempt);

/// The log of the attempts of this node.
#[derive(Debug)]
pub struct AttemptLogWriter {
    queue: mpsc::Sender<LogEntry>,
    metrics: AttemptLogMetrics,
    stop: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl AttemptLogWriter {
    /// Starts the task that writes, on the runtime of the database.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // the task must outlive the caller, until it has drained the queue
    pub fn start(node: &PgNode, runtime: &Handle, metrics: AttemptLogMetrics) -> Arc<Self> {
        let (log, receiver) = Self::with_capacity(QUEUE_CAPACITY, metrics);
        let writer = Writer {
            store: DeliveryLog::of_node(node),
            receiver,
            stop: Arc::clone(&log.stop),
            metrics: log.metrics.clone(),
        };
        let task = runtime.spawn(writer.run());
        *log.task.lock() = Some(task);
        Arc::new(log)
    }

    fn with_capacity(capacity: usize, metrics: AttemptLogMetrics) -> (Self, mpsc::Receiver<LogEntry>) {
        let (queue, receiver) = mpsc::channel(capacity);
        let log = Self {
            queue,
            metrics,
            stop: Arc::default(),
            task: Mutex::default(),
        };
        (log, receiver)
    }

    /// Writes what is queued and ends the task. Attempts that end later are not logged.
    pub async fn drain(&self) {
        let task = self.task.lock().take();
        self.stop.notify_one();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            warn!(error.message = %error, "the writer of delivery attempts failed");
        }
    }
}

impl AttemptLog for AttemptLogWriter {
    fn record(&self, attempt: EndedAttempt) {
        let id = AttemptId::generate_at(attempt.attempt.at);
        if self.queue.try_send((id, attempt)).is_err() {
            self.metrics.record_queue_full();
        }
    }
}

struct Writer {
    store: DeliveryLog,
    receiver: mpsc::Receiver<LogEntry>,
    stop: Arc<Notify>,
    metrics: AttemptLogMetrics,
}

impl Writer {
    async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                received = self.receiver.recv_many(&mut batch, MAX_BATCH) => {
                    if received == 0 {
                        return;
                    }
                }
                () = self.stop.notified() => {
                    // What is queued is still received.
                    self.receiver.close();
                    continue;
                }
            }
            let is_full = batch.len() == MAX_BATCH;
            self.write(std::mem::take(&mut batch)).await;
            if !is_full {
                self.pause(BATCH_DELAY).await;
            }
        }
    }

    /// Waits, unless the log is being drained.
    async fn pause(&mut self, delay: Duration) {
        if self.receiver.is_closed() {
            return;
        }
        if tokio::time::timeout(delay, self.stop.notified()).await.is_ok() {
            self.receiver.close();
        }
    }

    async fn write(&mut self, batch: Vec<LogEntry>) {
        let batch: Arc<[LogEntry]> = batch.into();
        for attempt in 1..=MAX_TRIES {
            match self.store.insert_attempts(Arc::clone(&batch)).await {
                Ok(()) => return self.metrics.record_logged(batch.len()),
                Err(error) if attempt == 1 => {
                    warn!(error.message = %error, "cannot log delivery attempts, retrying");
                }
                Err(_) => {}
            }
            if self.receiver.is_closed() {
                break;
            }
            self.pause(RETRY_DELAY).await;
        }
        warn!(attempts = batch.len(), "delivery attempts dropped from the log");
        self.metrics.record_write_failed(batch.len());
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use vouchsafe_domain::delivery::{AttemptOutcome, CommittedEvents, DeliveryAttempt, WebhookEvent};
    use vouchsafe_domain::event_kind::EventKind;
    use vouchsafe_domain::ids::{OrderId, PartnerId, WebhookId};
    use vouchsafe_domain::sample_event::sample_bundle;

    use super::*;

    fn ended() -> EndedAttempt {
        let at = datetime!(2026-11-20 12:00 UTC);
        let events = CommittedEvents {
            partner_id: PartnerId::generate(),
            first_number: 1,
            bundle: sample_bundle(EventKind::OrderCreated, at).unwrap(),
            created_at: at,
        };
        EndedAttempt {
            webhook_id: WebhookId::generate(),
            event: WebhookEvent {
                events: Arc::new(events),
                number: 1,
            },
            order_id: OrderId::generate_at(at),
            number: 1,
            outcome: AttemptOutcome::Delivered,
            attempt: DeliveryAttempt {
                at,
                latency_ms: 3,
                status: Some(204),
                fault: None,
                answer: String::new(),
            },
            retry_at: None,
        }
    }

    #[tokio::test]
    async fn attempt_beyond_the_queue_is_counted_and_never_waits() {
        let metrics = AttemptLogMetrics::default();
        let (log, mut receiver) = AttemptLogWriter::with_capacity(2, metrics.clone());
        (0..5).for_each(|_| log.record(ended()));
        assert_eq!(metrics.counts(), (0, 3, 0));
        assert!(receiver.recv().await.is_some());
        log.record(ended());
        assert_eq!((receiver.len(), metrics.counts()), (2, (0, 3, 0)));
    }
}

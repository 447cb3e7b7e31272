//! Bounded queue between the code that ends spans and the thread that exports them.
//!
//! A full queue drops spans. Spans dropped here or by the collector are counted, and the export thread logs
//! when a loss begins and when it ends, because request threads must not log for each span.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry as MetricsRegistry;
use tracing::{info, warn};

/// Maximum spans queued or being sent: about 16 MiB, or two seconds at 1,500 orders per second.
const MAX_QUEUED_SPANS: usize = 16_384;

/// Spans per request to the collector: about 200 KiB.
const BATCH_SIZE: usize = 512;

/// Maximum time a span waits for its batch to fill.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Shared counters of the queue.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanQueue(Arc<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    queued: AtomicUsize,
    exported: Counter,
    dropped: Counter,
    /// Value of `dropped` at the last log decision.
    reported_drops: AtomicU64,
    is_dropping: AtomicBool,
}

impl SpanQueue {
    /// Wraps an exporter with the queue and starts the export thread.
    pub(super) fn wrap(&self, exporter: impl SpanExporter + 'static) -> impl SpanProcessor + 'static {
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED_SPANS)
            .with_max_export_batch_size(BATCH_SIZE)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let exporter = CountingExporter {
            exporter,
            queue: self.clone(),
        };
        QueueingProcessor {
            batches: BatchSpanProcessor::new(exporter, config),
            queue: self.clone(),
        }
    }

    pub(super) fn register(&self, metrics: &mut MetricsRegistry) {
        let QueueState {
            exported, dropped, ..
        } = &*self.0;
        metrics.register(
            "spans_exported",
            "Spans accepted by the collector",
            exported.clone(),
        );
        metrics.register(
            "spans_dropped",
            "Spans lost because the queue was full or the collector did not accept them",
            dropped.clone(),
        );
    }

    /// Reserves a place in the queue. If the queue is full, counts the span as dropped and returns false.
    fn try_enqueue(&self) -> bool {
        let next_length = |queued| (queued < MAX_QUEUED_SPANS).then_some(queued + 1);
        let entered = self
            .0
            .queued
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_length)
            .is_ok();
        if !entered {
            self.0.dropped.inc();
        }
        entered
    }

    /// Frees the places of a batch that was sent or lost.
    fn complete(&self, spans: usize, sent: &OTelSdkResult) {
        self.0.queued.fetch_sub(spans, Ordering::Relaxed);
        let counter = if sent.is_ok() {
            &self.0.exported
        } else {
            &self.0.dropped
        };
        counter.inc_by(spans as u64);
        self.log_transition(sent);
    }

    /// Logs when a loss of spans begins or ends.
    fn log_transition(&self, sent: &OTelSdkResult) {
        let dropped = self.0.dropped.get();
        let losing = self.0.reported_drops.swap(dropped, Ordering::Relaxed) != dropped;
        match (self.0.is_dropping.swap(losing, Ordering::Relaxed), losing) {
            (false, true) => {
                let reason = sent.as_ref().err().map(ToString::to_string);
                let reason = reason.unwrap_or_else(|| format!("more than {MAX_QUEUED_SPANS} spans queued"));
                warn!(spans.dropped = dropped, reason, "span export dropping spans");
            }
            (true, false) => info!(spans.dropped = dropped, "span export recovered"),
            _ => {}
        }
    }
}

/// Counts spans as queued and passes them to the batch processor.
#[derive(Debug)]
struct QueueingProcessor {
    batches: BatchSpanProcessor,
    queue: SpanQueue,
}

impl SpanProcessor for QueueingProcessor {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.queue.try_enqueue() {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Counts batches out of the queue after the export.
#[derive(Debug)]
struct CountingExporter<E> {
    exporter: E,
    queue: SpanQueue,
}

impl<E: SpanExporter> SpanExporter for CountingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.queue.complete(spans, &sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    fn counts(queue: &SpanQueue) -> (u64, u64, bool) {
        let QueueState {
            exported, dropped, ..
        } = &*queue.0;
        (
            exported.get(),
            dropped.get(),
            queue.0.is_dropping.load(Ordering::Relaxed),
        )
    }

    #[test]
    fn span_beyond_the_queue_limit_is_dropped() {
        let queue = SpanQueue::default();
        assert!((0..MAX_QUEUED_SPANS).all(|_| queue.try_enqueue()));
        assert!(!queue.try_enqueue() && !queue.try_enqueue());
        assert_eq!(counts(&queue), (0, 2, false), "ending a span logs nothing");
        queue.complete(BATCH_SIZE, &Ok(()));
        assert_eq!(counts(&queue), (512, 2, true));
        assert!((0..BATCH_SIZE).all(|_| queue.try_enqueue()));
        assert!(!queue.try_enqueue());
    }

    #[test]
    fn loss_of_spans_is_detected_until_it_ends() {
        let queue = SpanQueue::default();
        let failed = || Err(OTelSdkError::InternalFailure("away".to_owned()));
        for (sent, expected) in [
            (Ok(()), (3, 0, false)),
            (failed(), (3, 3, true)),
            (failed(), (3, 6, true)),
            (Ok(()), (6, 6, false)),
            (Ok(()), (9, 6, false)),
        ] {
            assert!((0..3).all(|_| queue.try_enqueue()));
            queue.complete(3, &sent);
            assert_eq!(counts(&queue), expected);
        }
    }
}

//! How many spans wait, and what became of the others? The queue between those who end spans and the thread that sends them.
//!
//! Rule: a span that finds the queue full is dropped. What is lost, there or at the collector, is counted, and there is a
//! line when it begins and one when it ends; the thread that sends says both, since who ends a span has no time.

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
use prometheus_client::registry::Registry as Figures;
use tracing::{info, warn};

/// Most spans that wait or are being sent: some 16 MiB, or two seconds of 1,500 orders a second.
const MAX_WAITING: usize = 16_384;

/// Spans of one request to the collector: some 200 KiB.
const BATCH: usize = 512;

/// How long a span waits for others to be sent with.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// What is counted of the queue. Cheap to share.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    exported: Counter,
    dropped: Counter,
    /// How many were lost when that was looked at last.
    seen: AtomicU64,
    losing: AtomicBool,
}

impl Queue {
    /// Puts the queue in front of an exporter, and starts its thread.
    pub(super) fn in_front_of(&self, exporter: impl SpanExporter + 'static) -> impl SpanProcessor + 'static {
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let exporter = Outlet {
            exporter,
            queue: self.clone(),
        };
        Inlet {
            batches: BatchSpanProcessor::new(exporter, config),
            queue: self.clone(),
        }
    }

    pub(super) fn register(&self, figures: &mut Figures) {
        let Counts {
            exported, dropped, ..
        } = &*self.0;
        figures.register(
            "spans_exported",
            "Spans that the collector took",
            exported.clone(),
        );
        figures.register(
            "spans_dropped",
            "Spans that were lost: the queue was full, or the collector did not take them",
            dropped.clone(),
        );
    }

    /// Whether there is room for a span; it is lost otherwise.
    fn enter(&self) -> bool {
        let room = |waiting| (waiting < MAX_WAITING).then_some(waiting + 1);
        let entered = self
            .0
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok();
        if !entered {
            self.0.dropped.inc();
        }
        entered
    }

    /// Spans were sent, or could not be.
    fn left(&self, spans: usize, sent: &OTelSdkResult) {
        self.0.waiting.fetch_sub(spans, Ordering::Relaxed);
        let counter = if sent.is_ok() {
            &self.0.exported
        } else {
            &self.0.dropped
        };
        counter.inc_by(spans as u64);
        self.tell(sent);
    }

    /// Says when spans begin to be lost, and when that is over.
    fn tell(&self, sent: &OTelSdkResult) {
        let dropped = self.0.dropped.get();
        let losing = self.0.seen.swap(dropped, Ordering::Relaxed) != dropped;
        match (self.0.losing.swap(losing, Ordering::Relaxed), losing) {
            (false, true) => {
                let reason = sent.as_ref().err().map(ToString::to_string);
                let reason = reason.unwrap_or_else(|| format!("more than {MAX_WAITING} wait"));
                warn!(
                    spans.dropped = dropped,
                    reason, "spans are lost on their way to the collector"
                );
            }
            (true, false) => info!(spans.dropped = dropped, "the collector takes all spans again"),
            _ => {}
        }
    }
}

/// Where spans enter.
#[derive(Debug)]
struct Inlet {
    batches: BatchSpanProcessor,
    queue: Queue,
}

impl SpanProcessor for Inlet {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.queue.enter() {
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

/// Where they leave.
#[derive(Debug)]
struct Outlet<E> {
    exporter: E,
    queue: Queue,
}

impl<E: SpanExporter> SpanExporter for Outlet<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.queue.left(spans, &sent);
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

    fn counts(queue: &Queue) -> (u64, u64, bool) {
        let Counts {
            exported, dropped, ..
        } = &*queue.0;
        (
            exported.get(),
            dropped.get(),
            queue.0.losing.load(Ordering::Relaxed),
        )
    }

    #[test]
    fn what_finds_the_queue_full_is_lost_and_what_left_makes_room() {
        let queue = Queue::default();
        assert!((0..MAX_WAITING).all(|_| queue.enter()));
        assert!(!queue.enter() && !queue.enter());
        assert_eq!(counts(&queue), (0, 2, false), "who ends a span says nothing");
        queue.left(BATCH, &Ok(()));
        assert_eq!(counts(&queue), (512, 2, true));
        assert!((0..BATCH).all(|_| queue.enter()));
        assert!(!queue.enter());
    }

    #[test]
    fn a_loss_begins_and_ends() {
        let queue = Queue::default();
        let failed = || Err(OTelSdkError::InternalFailure("away".to_owned()));
        for (sent, expected) in [
            (Ok(()), (3, 0, false)),
            (failed(), (3, 3, true)),
            (failed(), (3, 6, true)),
            (Ok(()), (6, 6, false)),
            (Ok(()), (9, 6, false)),
        ] {
            assert!((0..3).all(|_| queue.enter()));
            queue.left(3, &sent);
            assert_eq!(counts(&queue), expected);
        }
    }
}

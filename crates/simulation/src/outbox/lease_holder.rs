//! Test client of the outbox: a process that leases the endpoint, flushes and reads pages.

use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, FlushRequest, LeaseAction, LeasedEndpoint, Outbox};
use vouchsafe_actors::delivery::queue::{FAILING_THRESHOLD, QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::{DeliveryAttempt, DeliveryOutcome, DeliveryUpdate, EndpointHealth};
use vouchsafe_domain::ids::WebhookId;

use super::order_id;
use super::subject::OutboxSubject;

/// Longer than the delay of any slow machine.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// Request for due deliveries and the events after `after`.
pub(super) const fn due(after: i64) -> ReadRequest {
    ReadRequest::Due { after, limit: 100 }
}

pub(super) struct DeliveryProcess {
    outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
}

/// A process that holds the endpoint's lease.
pub(super) struct LeaseHolder {
    outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
    pub(super) opened: LeasedEndpoint,
    flushes: i64,
}

/// Content of a flush.
#[derive(Default)]
pub(super) struct Flush {
    pub(super) cursor: i64,
    pub(super) failures: u32,
    pub(super) marks: Vec<DeliveryUpdate>,
    pub(super) attempts: Vec<(i64, DeliveryAttempt)>,
    pub(super) recovered: bool,
    pub(super) gone: bool,
    pub(super) wait: Option<Duration>,
}

impl DeliveryProcess {
    pub(super) async fn start<S: OutboxSubject>(subject: &S, node: &str) -> Self {
        Self {
            outbox: subject.start(node).await,
            webhook_id: subject.webhook_id(),
        }
    }

    pub(super) async fn acquire(&self) -> Option<LeaseHolder> {
        let opened = self.outbox.lease(self.webhook_id).await.unwrap()?;
        Some(LeaseHolder {
            outbox: Arc::clone(&self.outbox),
            webhook_id: self.webhook_id,
            opened,
            flushes: 0,
        })
    }
}

/// Starts a process and acquires the lease.
pub(super) async fn acquire_endpoint<S: OutboxSubject>(subject: &S, node: &str) -> LeaseHolder {
    let process = DeliveryProcess::start(subject, node).await;
    process
        .acquire()
        .await
        .expect("the endpoint has work and no lease")
}

impl LeaseHolder {
    /// The next flush request with this content.
    pub(super) fn flush_request(&mut self, flush: Flush, lease_action: LeaseAction) -> FlushRequest {
        self.flushes += 1;
        let delivered = flush.attempts.iter();
        let delivered = delivered.filter(|(_, attempt)| matches!(attempt.status, Some(200..=299)));
        let delivered = u32::try_from(delivered.count()).unwrap();
        FlushRequest {
            lease: self.opened.lease,
            sequence: self.flushes,
            now: HOUR,
            delivered,
            failed: u32::try_from(flush.attempts.len()).unwrap() - delivered,
            changes: QueueChanges {
                cursor: flush.cursor,
                health: EndpointHealth {
                    consecutive_failures: flush.failures,
                    backoff_step: flush.failures,
                    not_before: Duration::ZERO,
                },
                updates: flush.marks,
                recovered: flush.recovered,
            },
            attempts: flush.attempts,
            gone: flush.gone,
            retry_in: flush.wait,
            save_cursor: true,
            lease_action,
        }
    }

    /// Sends a flush; `None` if the lease is lost.
    pub(super) async fn send(&self, request: FlushRequest) -> Option<DeliveryPage> {
        self.outbox.flush(self.webhook_id, request).await.unwrap()
    }

    /// Flushes and keeps the lease.
    pub(super) async fn flush(&mut self, flush: Flush) -> Option<DeliveryPage> {
        let request = self.flush_request(flush, LeaseAction::Keep(None));
        self.send(request).await
    }

    /// Reads a page without writing.
    pub(super) async fn read(&mut self, want: ReadRequest) -> Option<DeliveryPage> {
        let request = FlushRequest {
            save_cursor: false,
            ..self.flush_request(Flush::default(), LeaseAction::Keep(Some(want)))
        };
        self.send(request).await
    }

    /// Reads a page and returns its event numbers.
    pub(super) async fn read_numbers(&mut self, want: ReadRequest) -> Vec<i64> {
        let page = self.read(want).await.expect("the lease is held");
        numbers(&page)
    }

    /// Flushes and releases the lease.
    pub(super) async fn release(mut self, flush: Flush) {
        let request = self.flush_request(flush, LeaseAction::Release);
        self.send(request).await.expect("the lease is held");
    }
}

impl Flush {
    /// A failed attempt, to be retried after `again_in`.
    pub(super) fn failed(order: u32, number: i64, attempts: u32, retry_in: Duration) -> Self {
        Self {
            cursor: number,
            failures: attempts,
            marks: vec![mark(
                order,
                number,
                attempts,
                DeliveryOutcome::RetryAt(HOUR + retry_in),
            )],
            attempts: vec![(number, attempt(500, attempts))],
            ..Self::default()
        }
    }

    /// Adds deliveries of the order that are blocked by the failed one.
    pub(super) fn blocking(mut self, order: u32, numbers: &[i64]) -> Self {
        let blocked = numbers
            .iter()
            .map(|number| mark(order, *number, 0, DeliveryOutcome::Blocked));
        self.marks.extend(blocked);
        self.cursor = self.cursor.max(numbers.iter().copied().max().unwrap_or_default());
        self
    }

    /// Marks the endpoint as failing and pauses it.
    pub(super) fn failing(mut self, wait: Duration) -> Self {
        self.failures = FAILING_THRESHOLD;
        self.wait = Some(wait);
        self
    }

    /// A successful attempt of a delivery with a row.
    pub(super) fn delivered(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            marks: vec![mark(order, number, 1, DeliveryOutcome::Delivered)],
            attempts: vec![(number, attempt(204, 9))],
            ..Self::default()
        }
    }

    /// A delivery that expired without another attempt.
    pub(super) fn expired(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            failures: 1,
            marks: vec![mark(order, number, 0, DeliveryOutcome::Failed)],
            ..Self::default()
        }
    }

    /// Sets the replay count of all marks.
    pub(super) fn with_replays(mut self, replays: u32) -> Self {
        self.marks.iter_mut().for_each(|mark| mark.replays = replays);
        self
    }

    /// Events up to this number were delivered at the first attempt.
    pub(super) fn up_to(cursor: i64) -> Self {
        Self {
            cursor,
            ..Self::default()
        }
    }
}

pub(super) fn mark(order: u32, number: i64, attempts: u32, outcome: DeliveryOutcome) -> DeliveryUpdate {
    DeliveryUpdate {
        number,
        order_id: order_id(order),
        attempts,
        replays: 0,
        outcome,
    }
}

/// An attempt that started `minutes` after the epoch and got this status.
pub(super) fn attempt(status: u16, minutes: u32) -> DeliveryAttempt {
    DeliveryAttempt {
        at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(60) * minutes,
        latency_ms: 3,
        status: Some(status),
        fault: None,
        answer: "ok".to_owned(),
    }
}

pub(super) fn numbers(page: &DeliveryPage) -> Vec<i64> {
    page.pending.iter().map(|pending| pending.event.number).collect()
}

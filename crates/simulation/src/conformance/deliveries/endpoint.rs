//! Fixture of a delivery case: a partner with one endpoint, and delivery processes that lease it, flush and
//! read pages.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use vouchsafe_actors::delivery::outbox::{DeliveryPage, FlushRequest, LeaseAction, LeasedEndpoint, Outbox};
use vouchsafe_actors::delivery::queue::{FAILING_THRESHOLD, QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::{DeliveryAttempt, DeliveryOutcome, DeliveryUpdate, EndpointHealth};
use vouchsafe_domain::ids::{PartnerId, WebhookId};

use crate::build;
use crate::conformance::subject::{CaseFixture, EndpointChange, IsAudited, Subject};
use crate::rows::{DeliveryRow, EndpointStatus};

/// Longer than the delay of any slow machine.
pub const HOUR: Duration = Duration::from_secs(3_600);

/// Request for due deliveries and the events after `after`.
pub const fn due(after: i64) -> ReadRequest {
    ReadRequest::Due { after, limit: 100 }
}

/// Partner 1 without events, and its only endpoint.
pub struct EndpointFixture<'s, S> {
    pub subject: &'s S,
    pub partner: PartnerId,
    pub webhook_id: WebhookId,
}

impl<'s, S: Subject> CaseFixture<'s, S> for EndpointFixture<'s, S> {
    async fn create(subject: &'s S) -> Self {
        let partner = build::partner(1);
        subject.add_partner(partner).await;
        Self {
            webhook_id: subject.add_endpoint(partner).await,
            partner,
            subject,
        }
    }

    /// Its events have no orders.
    fn is_audited(&self) -> IsAudited {
        |violation| violation.starts_with("webhook.") || violation.starts_with("delivery.")
    }
}

impl<S: Subject> EndpointFixture<'_, S> {
    /// Starts a delivery process; a second start under the same name is the node's next incarnation.
    pub async fn start(&self, node: &str) -> DeliveryProcess {
        DeliveryProcess {
            outbox: self.subject.start_outbox(node).await,
            webhook_id: self.webhook_id,
        }
    }

    /// Starts a process and acquires the lease.
    pub async fn acquire(&self, node: &str) -> LeaseHolder {
        let holder = self.start(node).await.acquire().await;
        holder.expect("the endpoint has work and no lease")
    }

    /// Commits an event of this order and returns its number. The first event of an order is `Created`, the
    /// others are `Processing`.
    pub async fn commit(&self, order: u32) -> i64 {
        self.subject.append_event(self.partner, order).await
    }

    /// Commits an event of each of these orders.
    pub async fn commit_all(&self, orders: &[u32]) {
        for order in orders {
            self.commit(*order).await;
        }
    }

    pub async fn advance_time(&self, by: Duration) {
        self.subject.advance_time(by).await;
    }

    pub async fn replay(&self, numbers: RangeInclusive<i64>) {
        self.subject.replay(self.webhook_id, numbers).await;
    }

    pub async fn change(&self, change: EndpointChange) {
        self.subject.change_endpoint(self.webhook_id, change).await;
    }

    /// Delivery row of an event.
    pub async fn row(&self, number: i64) -> Option<DeliveryRow> {
        self.subject.delivery(self.webhook_id, number).await
    }

    /// Status of the endpoint; `None` after its removal.
    pub async fn status(&self) -> Option<EndpointStatus> {
        self.subject.endpoint(self.webhook_id).await
    }
}

pub struct DeliveryProcess {
    pub outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
}

impl DeliveryProcess {
    pub async fn acquire(&self) -> Option<LeaseHolder> {
        let opened = self.outbox.lease(self.webhook_id).await.unwrap()?;
        Some(LeaseHolder {
            outbox: Arc::clone(&self.outbox),
            webhook_id: self.webhook_id,
            opened,
            flushes: 0,
        })
    }
}

/// A process that holds the endpoint's lease.
pub struct LeaseHolder {
    outbox: Arc<dyn Outbox>,
    webhook_id: WebhookId,
    pub opened: LeasedEndpoint,
    flushes: i64,
}

/// Content of a flush.
#[derive(Default)]
pub struct Flush {
    pub cursor: i64,
    pub failures: u32,
    pub marks: Vec<DeliveryUpdate>,
    pub attempts: Vec<(i64, DeliveryAttempt)>,
    pub recovered: bool,
    pub gone: bool,
    pub wait: Option<Duration>,
}

impl LeaseHolder {
    /// The next flush request with this content.
    pub fn flush_request(&mut self, flush: Flush, lease_action: LeaseAction) -> FlushRequest {
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
    pub async fn send(&self, request: FlushRequest) -> Option<DeliveryPage> {
        self.outbox.flush(self.webhook_id, request).await.unwrap()
    }

    /// Flushes and keeps the lease.
    pub async fn flush(&mut self, flush: Flush) -> Option<DeliveryPage> {
        let request = self.flush_request(flush, LeaseAction::Keep(None));
        self.send(request).await
    }

    /// Reads a page without writing.
    pub async fn read(&mut self, want: ReadRequest) -> Option<DeliveryPage> {
        let request = FlushRequest {
            save_cursor: false,
            ..self.flush_request(Flush::default(), LeaseAction::Keep(Some(want)))
        };
        self.send(request).await
    }

    /// Reads a page and returns its event numbers.
    pub async fn read_numbers(&mut self, want: ReadRequest) -> Vec<i64> {
        let page = self.read(want).await.expect("the lease is held");
        numbers(&page)
    }

    /// Flushes and releases the lease.
    pub async fn release(mut self, flush: Flush) {
        let request = self.flush_request(flush, LeaseAction::Release);
        self.send(request).await.expect("the lease is held");
    }
}

impl Flush {
    /// A failed attempt, to be retried after `again_in`.
    pub fn failed(order: u32, number: i64, attempts: u32, retry_in: Duration) -> Self {
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
    pub fn blocking(mut self, order: u32, numbers: &[i64]) -> Self {
        let blocked = numbers
            .iter()
            .map(|number| mark(order, *number, 0, DeliveryOutcome::Blocked));
        self.marks.extend(blocked);
        self.cursor = self.cursor.max(numbers.iter().copied().max().unwrap_or_default());
        self
    }

    /// Marks the endpoint as failing and pauses it.
    pub fn failing(mut self, wait: Duration) -> Self {
        self.failures = FAILING_THRESHOLD;
        self.wait = Some(wait);
        self
    }

    /// A successful attempt of a delivery with a row.
    pub fn delivered(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            marks: vec![mark(order, number, 1, DeliveryOutcome::Delivered)],
            attempts: vec![(number, attempt(204, 9))],
            ..Self::default()
        }
    }

    /// A delivery that expired without another attempt.
    pub fn expired(order: u32, number: i64, cursor: i64) -> Self {
        Self {
            cursor,
            failures: 1,
            marks: vec![mark(order, number, 0, DeliveryOutcome::Failed)],
            ..Self::default()
        }
    }

    /// Sets the replay count of all marks.
    pub fn with_replays(mut self, replays: u32) -> Self {
        self.marks.iter_mut().for_each(|mark| mark.replays = replays);
        self
    }

    /// Events up to this number were delivered at the first attempt.
    pub fn up_to(cursor: i64) -> Self {
        Self {
            cursor,
            ..Self::default()
        }
    }
}

pub fn mark(order: u32, number: i64, attempts: u32, outcome: DeliveryOutcome) -> DeliveryUpdate {
    DeliveryUpdate {
        number,
        order_id: build::numbered_order_id(order),
        attempts,
        replays: 0,
        outcome,
    }
}

/// An attempt that started `minutes` after the epoch and got this status.
pub fn attempt(status: u16, minutes: u32) -> DeliveryAttempt {
    DeliveryAttempt {
        at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(60) * minutes,
        latency_ms: 3,
        status: Some(status),
        fault: None,
        answer: "ok".to_owned(),
    }
}

pub fn numbers(page: &DeliveryPage) -> Vec<i64> {
    page.pending.iter().map(|pending| pending.event.number).collect()
}

//! State of a leased endpoint: its queue, deliveries in flight, and the next action. Pure: no await, no
//! clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use vouchsafe_domain::delivery::{
    AttemptOutcome, DeliveryAttempt, QueuedDelivery, WebhookEvent, WebhookTarget,
};

use super::health_of;
use crate::delivery::concurrency::ConcurrencyLimit;
use crate::delivery::outbox::{
    DeliveryPage, FlushRequest, LEASE_DURATION, Lease, LeaseAction, LeasedEndpoint, PendingDelivery,
};
use crate::delivery::queue::{DeliveryQueue, LoadedDelivery, ReadRequest};
use crate::delivery::retry::{self, FailedAttempt, INITIAL_BACKOFF};
use crate::supervisor::OpenHold;

/// How often the cursor is written: after a crash, deliveries of this period are repeated.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// How often the lease is renewed: three times per lease duration.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(LEASE_DURATION.as_secs() / 3);

/// How long an idle endpoint stays leased: a partner that has placed an order mostly places more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay before another permit is requested when the concurrency limit is reached.
const CONCURRENCY_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The next action of the actor.
pub(super) enum NextAction {
    Flush(FlushRequest),
    /// Wait for this time, or until something ends.
    Wait(Option<Duration>),
}

pub(super) struct ActiveEndpoint {
    endpoint: LeasedEndpoint,
    queue: DeliveryQueue,
    events: HashMap<i64, WebhookEvent>,
    attempts: Vec<(i64, DeliveryAttempt)>,
    delivered: u32,
    failed: u32,
    flush_in_flight: bool,
    flushes: i64,
    /// There may be something new to read.
    poll_requested: bool,
    /// When the next row is due.
    next_row_due_at: Option<Duration>,
    gone: bool,
    releasing: bool,
    at_limit: bool,
    saved_at: Duration,
    saved_cursor: i64,
    /// The time of the next attempt changed with a read: it must be written, in case this process ends before
    /// the attempt.
    save_requested: bool,
    last_active_at: Duration,
    _hold: OpenHold,
}

impl ActiveEndpoint {
    /// The lease was requested at `requested_at` and granted at `now`.
    pub(super) fn new(
        endpoint: LeasedEndpoint,
        requested_at: Duration,
        now: Duration,
        hold: OpenHold,
    ) -> Self {
        Self {
            queue: DeliveryQueue::new(
                endpoint.cursor,
                endpoint.retry_to,
                health_of(&endpoint, now),
                INITIAL_BACKOFF,
            ),
            saved_cursor: endpoint.cursor,
            endpoint,
            events: HashMap::new(),
            attempts: Vec::new(),
            delivered: 0,
            failed: 0,
            flush_in_flight: false,
            flushes: 0,
            poll_requested: true,
            next_row_due_at: None,
            gone: false,
            releasing: false,
            at_limit: false,
            saved_at: requested_at,
            save_requested: false,
            last_active_at: now,
            _hold: hold,
        }
    }

    pub(super) const fn lease(&self) -> Lease {
        self.endpoint.lease
    }

    pub(super) fn target(&self) -> Arc<WebhookTarget> {
        Arc::clone(&self.endpoint.target)
    }

    pub(super) fn event(&self, number: i64) -> Option<WebhookEvent> {
        self.events.get(&number).cloned()
    }

    pub(super) const fn request_poll(&mut self) {
        self.poll_requested = true;
    }

    pub(super) const fn set_releasing(&mut self, releasing: bool) {
        self.releasing = releasing;
    }

    /// Whether the lease must be considered lost.
    pub(super) fn is_lease_expired(&self, now: Duration) -> bool {
        now > self.saved_at + LEASE_DURATION
    }

    /// The deliveries to send now, each with its permit.
    pub(super) fn take_due(
        &mut self,
        now: Duration,
        limiter: &ConcurrencyLimit,
    ) -> Vec<(QueuedDelivery, OwnedSemaphorePermit)> {
        let mut due = Vec::new();
        self.at_limit = false;
        if self.releasing || self.gone || self.is_lease_expired(now) {
            return due;
        }
        while self.queue.next_due_at().is_some_and(|at| at <= now) {
            let permit = limiter.try_acquire(self.queue.in_flight_count(), self.queue.is_failing());
            let Some(permit) = permit else {
                self.at_limit = true;
                break;
            };
            let Some(delivery) = self.queue.start_next(now) else {
                break;
            };
            due.push((delivery, permit));
        }
        due
    }

    /// Records an attempt that ended at `at`. Returns when its delivery is due again.
    pub(super) fn record_attempt(
        &mut self,
        delivery: QueuedDelivery,
        outcome: AttemptOutcome,
        attempt: DeliveryAttempt,
        at: Duration,
        jitter: f64,
    ) -> Option<Duration> {
        let retry_after = match outcome {
            AttemptOutcome::Failed(after) => after,
            AttemptOutcome::Gone | AttemptOutcome::Delivered => None,
        };
        let plan = |attempts, give_up_at| {
            let failure = FailedAttempt {
                attempts,
                at,
                retry_after,
                jitter,
            };
            retry::next_attempt_at(failure, give_up_at)
        };
        let delivery = self.queue.record_attempt(delivery.number, outcome, at, plan)?;
        match outcome {
            AttemptOutcome::Delivered => self.delivered += 1,
            AttemptOutcome::Failed(_) | AttemptOutcome::Gone => self.failed += 1,
        }
        if delivery.has_row || outcome != AttemptOutcome::Delivered {
            self.attempts.push((delivery.number, attempt));
        }
        self.events.remove(&delivery.number);
        self.gone |= outcome == AttemptOutcome::Gone;
        self.last_active_at = at;
        // Deliveries that were blocked by it, or waited while the endpoint failed, may be due.
        self.poll_requested |= self.queue.is_failing() || self.queue.has_updates();
        self.queue.retry_at(delivery.number).filter(|_| !self.gone)
    }

    /// Returns the next action.
    pub(super) fn next_action(&mut self, now: Duration) -> NextAction {
        if self.flush_in_flight {
            return NextAction::Wait(None);
        }
        if self.next_row_due_at.is_some_and(|due| due <= now) {
            self.next_row_due_at = None;
            self.poll_requested = true;
        }
        let may_read = !self.releasing && !self.gone;
        let request = if self.poll_requested && may_read {
            self.queue.next_read()
        } else {
            None
        };
        if self.is_release_due(now, request) {
            return self.start_flush(now, LeaseAction::Release);
        }
        if request.is_some() || self.queue.has_updates() || !self.attempts.is_empty() || self.is_save_due(now)
        {
            return self.start_flush(now, LeaseAction::Keep(request));
        }
        NextAction::Wait(Some(self.time_to_next_action(now)))
    }

    /// Whether the cursor must be written or the lease renewed.
    fn is_save_due(&self, now: Duration) -> bool {
        self.save_requested || now >= self.next_save_at()
    }

    fn next_save_at(&self) -> Duration {
        let moved = self.queue.cursor() != self.saved_cursor;
        self.saved_at + if moved { SAVE_INTERVAL } else { RENEWAL_INTERVAL }
    }

    /// Whether to release the lease: nothing is in flight and nothing is due soon, or sending has stopped.
    fn is_release_due(&self, now: Duration, request: Option<ReadRequest>) -> bool {
        if self.queue.in_flight_count() > 0 {
            return false;
        }
        if self.releasing || self.gone {
            return true;
        }
        let soon = |due: Option<Duration>| due.is_some_and(|due| due <= now + IDLE_TIMEOUT);
        let idle = request.is_none() && !soon(self.queue.next_due_at()) && !soon(self.next_row_due_at);
        // A delivery that is due much later needs no lease until then.
        idle && (now >= self.last_active_at + IDLE_TIMEOUT || self.queue.is_failing())
    }

    fn time_to_next_action(&self, now: Duration) -> Duration {
        let due = self.queue.next_due_at().filter(|due| *due > now);
        let save = self.next_save_at();
        let idle = (self.queue.in_flight_count() == 0).then_some(self.last_active_at + IDLE_TIMEOUT);
        let permit = self.at_limit.then_some(now + CONCURRENCY_RETRY_DELAY);
        let next = [due, self.next_row_due_at, Some(save), idle, permit];
        let next = next.into_iter().flatten().min().unwrap_or(save);
        next.saturating_sub(now).max(Duration::from_millis(1))
    }

    fn start_flush(&mut self, now: Duration, action: LeaseAction) -> NextAction {
        self.flush_in_flight = true;
        self.flushes += 1;
        if matches!(action, LeaseAction::Keep(Some(_))) {
            self.poll_requested = false;
        }
        let failing = self.queue.is_failing();
        let mut flush = FlushRequest {
            lease: self.endpoint.lease,
            sequence: self.flushes,
            save_cursor: self.is_save_due(now),
            changes: self.queue.take_changes(),
            now,
            attempts: std::mem::take(&mut self.attempts),
            delivered: 0,
            failed: 0,
            gone: self.gone,
            retry_in: failing.then(|| self.queue.failing_due_at().saturating_sub(now)),
            lease_action: action,
        };
        if flush.has_writes() {
            self.save_requested = false;
            flush.delivered = std::mem::take(&mut self.delivered);
            flush.failed = std::mem::take(&mut self.failed);
        }
        NextAction::Flush(flush)
    }

    /// Applies a finished flush. Returns whether the lease is still held.
    pub(super) fn finish_flush(&mut self, flush: &FlushRequest, page: DeliveryPage, now: Duration) -> bool {
        self.flush_in_flight = false;
        if flush.has_writes() {
            // The store renewed the lease after the flush was created, so counting from its creation is safe.
            self.saved_at = flush.now;
            self.saved_cursor = flush.changes.cursor;
        }
        let request = match flush.lease_action {
            LeaseAction::Release => return false,
            LeaseAction::Keep(request) => request,
        };
        if let Some(request) = request {
            self.next_row_due_at = page.next_due_in.map(|wait| now + wait);
            if !page.pending.is_empty() {
                self.last_active_at = now;
            }
            self.poll_requested |= page.has_more;
            let read = page
                .pending
                .iter()
                .map(|pending| to_loaded(pending, now))
                .collect();
            self.queue.set_retry_to(page.retry_to);
            self.poll_requested |= !self.queue.load(request, read, page.scanned_to);
            self.save_requested = self.queue.is_failing();
            let events = page.pending.into_iter();
            self.events
                .extend(events.map(|pending| (pending.event.number, pending.event)));
            let known: HashSet<i64> = self.queue.numbers().collect();
            self.events.retain(|number, _| known.contains(number));
        }
        true
    }
}

fn to_loaded(pending: &PendingDelivery, now: Duration) -> LoadedDelivery {
    LoadedDelivery {
        delivery: QueuedDelivery {
            number: pending.event.number,
            order_id: pending.order_id,
            attempts: pending.attempts,
            replays: pending.replays,
            has_row: pending.has_row,
            due_at: offset(now, pending.due_in),
            give_up_at: offset(now, pending.give_up_in),
        },
        is_blocked: pending.is_blocked,
    }
}

/// `now` plus `span`, which may be negative; never below zero.
fn offset(now: Duration, span: time::Duration) -> Duration {
    let amount = span.unsigned_abs();
    if span.is_negative() {
        now.saturating_sub(amount)
    } else {
        now.saturating_add(amount)
    }
}

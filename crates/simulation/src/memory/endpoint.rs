//! Delivery state of a webhook endpoint: cursor, lease, health, and a row per delivery that failed, waits or
//! is replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::{FlushRequest, LEASE_DURATION, Lease, LeaseAction};
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_domain::delivery::{DeliveryAttempt, DeliveryOutcome, DeliveryUpdate};
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::{OrderId, PartnerId};

use super::clock::DbTime;
use super::feed::{EventRow, Feed};
use super::guard::Guard;
use super::owner::Owner;
use crate::rows::{DeliveryRow, EndpointStatus, RowState};

/// Maximum attempts in a row's log.
const MAX_LOG: usize = 50;

/// Delivery of an event that has a row.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) row: DeliveryRow,
    pub(super) order_id: OrderId,
    pub(super) replays: u32,
    /// Next attempt of a waiting delivery.
    pub(super) next_at: DbTime,
    pub(super) expires_at: DbTime,
}

impl Delivery {
    /// Whether an attempt will follow, now or after an earlier delivery of the order.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.row.state, RowState::Waiting | RowState::Blocked)
    }

    /// Next attempt, unless the delivery is blocked or has ended.
    pub(super) fn due_at(&self) -> Option<DbTime> {
        (self.row.state == RowState::Waiting).then_some(self.next_at)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) partner_id: PartnerId,
    pub(super) status: EndpointStatus,
    /// Delivery rows, by event number.
    pub(super) deliveries: BTreeMap<i64, Delivery>,
    pub(super) backoff_step: u32,
    pub(super) due_at: Option<DbTime>,
    pub(super) kinds: EventKinds,
    pub(super) secret: u8,
    pub(super) previous_secret: Option<u8>,
    /// A retry was requested for the events up to this number.
    pub(super) retry_to: i64,
    lease: i64,
    /// The history in which the lease was acquired.
    lease_history: Option<Uuid>,
    last_flush: i64,
    owner: Option<Owner>,
    leased_until: Option<DbTime>,
}

impl Endpoint {
    pub(super) fn new(partner_id: PartnerId, cursor: i64) -> Self {
        Self {
            partner_id,
            status: EndpointStatus {
                cursor,
                failures: 0,
                delivered: 0,
                refused: 0,
                enabled: true,
            },
            deliveries: BTreeMap::new(),
            backoff_step: 0,
            due_at: None,
            kinds: EventKinds::DEFAULT,
            secret: 1,
            previous_secret: None,
            retry_to: 0,
            lease: 0,
            lease_history: None,
            last_flush: 0,
            owner: None,
            leased_until: None,
        }
    }

    pub(super) fn is_leased_under(
        &self,
        lease: Lease,
        by: &Owner,
        history: Uuid,
        has_guard: impl Fn(Guard) -> bool,
    ) -> bool {
        (self.lease == lease.number || !has_guard(Guard::Lease))
            && (lease.history == history || !has_guard(Guard::DeliveryHistory))
            && (self.owner.as_ref() == Some(by) || !has_guard(Guard::LeaseOwner))
    }

    pub(super) fn acquire_lease(
        &mut self,
        by: &Owner,
        history: Uuid,
        feed: Feed<'_>,
        now: DbTime,
    ) -> Option<Lease> {
        let due = self
            .due_at
            .is_some_and(|due| due <= now.after(Duration::from_secs(1)));
        let new = self.status.failures < FAILING_THRESHOLD && self.status.cursor < feed.newest();
        let is_earlier_incarnation =
            |owner: &Owner| owner.node == by.node && owner.incarnation < by.incarnation;
        let free = self.leased_until.is_none_or(|until| until <= now)
            || self.owner.as_ref().is_some_and(is_earlier_incarnation)
            || self.lease_history.is_some_and(|of_lease| of_lease != history);
        if !self.status.enabled || !free || !(due || new) {
            return None;
        }
        self.lease += 1;
        self.lease_history = Some(history);
        self.last_flush = 0;
        self.owner = Some(by.clone());
        self.leased_until = Some(now.after(LEASE_DURATION));
        Some(Lease {
            number: self.lease,
            history,
        })
    }

    /// Reverts the last lease, as a crash that lost its write would.
    pub(super) fn forget_last_lease(&mut self) {
        self.lease -= 1;
        self.owner = None;
        self.leased_until = None;
    }

    /// Revokes the lease and makes failed deliveries due at once.
    pub(super) fn revoke_lease(&mut self, now: DbTime) {
        self.lease += 1;
        self.leased_until = None;
        self.make_all_due(now);
    }

    /// Makes everything that waits due, also while the endpoint fails.
    pub(super) fn request_retry(&mut self, feed: Feed<'_>, now: DbTime) {
        self.retry_to = feed.newest();
        if self.status.failures >= FAILING_THRESHOLD {
            self.lease += 1;
            self.leased_until = None;
        }
        self.make_all_due(now);
    }

    /// Gives the lease to a process that never flushes.
    pub(super) fn steal_lease(&mut self, now: DbTime) {
        self.revoke_lease(now);
        self.leased_until = Some(now.after(LEASE_DURATION));
    }

    /// An endpoint that is enabled again skips events past their 24 hours.
    pub(super) fn set_enabled(&mut self, on: bool, feed: Feed<'_>, now: DbTime) {
        if on && !self.status.enabled {
            let cutoff = now.before(RETRY_WINDOW);
            let expired = feed.rows.iter().take_while(|row| row.at < cutoff).last();
            self.status.cursor = self.status.cursor.max(expired.map_or(0, EventRow::last_number));
        }
        self.status.enabled = on;
        self.revoke_lease(now);
    }

    pub(super) fn rotate_secret(&mut self, now: DbTime) {
        self.previous_secret = Some(self.secret);
        self.secret += 1;
        self.revoke_lease(now);
    }

    pub(super) fn apply(
        &mut self,
        flush: &FlushRequest,
        feed: Feed<'_>,
        now: DbTime,
        has_guard: impl Fn(Guard) -> bool,
    ) {
        let changes = &flush.changes;
        self.status.cursor = self.status.cursor.max(changes.cursor);
        self.status.failures = changes.health.consecutive_failures;
        self.backoff_step = changes.health.backoff_step;
        self.status.enabled &= !flush.gone;
        if flush.sequence > self.last_flush {
            self.last_flush = flush.sequence;
            self.status.delivered += u64::from(flush.delivered);
            self.status.refused += u64::from(flush.failed);
        }
        self.leased_until = (flush.lease_action != LeaseAction::Release).then(|| now.after(LEASE_DURATION));
        for update in &changes.updates {
            let delivery = self.delivery(update.number, feed);
            // The update of a delivery that was replayed since belongs to an earlier attempt.
            if delivery.replays == update.replays || !has_guard(Guard::Replays) {
                apply_update(delivery, *update, flush.now, now);
            }
        }
        let orders = changes.updates.iter();
        let orders = orders.map(|update| feed.row_of(update.number).bundle.order_id);
        self.promote_first_waiting(orders.collect(), now);
        for (number, attempt) in &flush.attempts {
            self.append_attempt(*number, attempt);
        }
        if changes.recovered {
            self.retry_to = 0;
            self.make_all_due(now);
        }
        let first_due = self.deliveries.values().filter_map(Delivery::due_at).min();
        self.due_at = flush.retry_in.map(|wait| now.after(wait)).or(first_due);
    }

    /// Replays these events, each with its own 24 hours.
    pub(super) fn replay(&mut self, numbers: RangeInclusive<i64>, feed: Feed<'_>, now: DbTime) {
        if self.status.failures < FAILING_THRESHOLD || self.due_at.is_none() {
            self.due_at = Some(now);
        }
        let mut orders = BTreeSet::new();
        for number in numbers {
            let delivery = self.delivery(number, feed);
            delivery.row.state = RowState::Blocked;
            delivery.row.attempts = 0;
            delivery.replays += 1;
            delivery.expires_at = now.after(RETRY_WINDOW);
            orders.insert(delivery.order_id);
        }
        self.promote_first_waiting(orders, now);
    }

    fn delivery(&mut self, number: i64, feed: Feed<'_>) -> &mut Delivery {
        let event = feed.row_of(number);
        self.deliveries.entry(number).or_insert(Delivery {
            row: DeliveryRow {
                state: RowState::Blocked,
                attempts: 0,
                log: Vec::new(),
            },
            order_id: event.bundle.order_id,
            replays: 0,
            next_at: event.at,
            expires_at: event.at.after(RETRY_WINDOW),
        })
    }

    /// Per order, makes the first open delivery due (now, if it was blocked) and blocks the others.
    fn promote_first_waiting(&mut self, orders: BTreeSet<OrderId>, now: DbTime) {
        for order_id in orders {
            let open = self.deliveries.values_mut();
            let mut open = open.filter(|delivery| delivery.order_id == order_id && delivery.is_open());
            if let Some(first) = open.next()
                && first.row.state == RowState::Blocked
            {
                first.row.state = RowState::Waiting;
                first.next_at = now;
            }
            open.for_each(|delivery| delivery.row.state = RowState::Blocked);
        }
    }

    /// Skips an attempt that equals the last one, because flushes are retried.
    fn append_attempt(&mut self, number: i64, attempt: &DeliveryAttempt) {
        if let Some(delivery) = self.deliveries.get_mut(&number)
            && delivery.row.log.last() != Some(attempt)
        {
            let log = &mut delivery.row.log;
            log.push(attempt.clone());
            log.drain(..log.len().saturating_sub(MAX_LOG));
        }
    }

    fn make_all_due(&mut self, now: DbTime) {
        if self.status.failures > 0 || self.due_at.is_some() {
            self.due_at = Some(now);
        }
        for delivery in self.deliveries.values_mut() {
            delivery.next_at = delivery.next_at.min(now);
        }
    }
}

fn apply_update(delivery: &mut Delivery, update: DeliveryUpdate, flushed_at: Duration, now: DbTime) {
    delivery.row.attempts = update.attempts;
    delivery.row.state = match update.outcome {
        DeliveryOutcome::Delivered => RowState::Delivered,
        DeliveryOutcome::Blocked => RowState::Blocked,
        DeliveryOutcome::Failed => RowState::Failed,
        DeliveryOutcome::RetryAt(at) => {
            delivery.next_at = now.after(at.saturating_sub(flushed_at));
            RowState::Waiting
        }
    };
}

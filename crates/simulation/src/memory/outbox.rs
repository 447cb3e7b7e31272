//! Outbox port of one incarnation of a node, and operations on endpoints, over the in-memory database.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use vouchsafe_actors::delivery::outbox::{
    DeliveryPage, FlushRequest, LEASE_DURATION, LeaseAction, LeasedEndpoint, Outbox, PendingDelivery,
};
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_actors::ports::store::StoreFuture;
use vouchsafe_domain::delivery::{CommittedEvents, SealedSecret, WebhookEvent, WebhookTarget};
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::store_error::Unavailable;

use super::MemoryDatabase;
use super::endpoint::{Delivery, Endpoint};
use super::fault::FaultKind;
use super::feed::Feed;
use super::guard::Guard;
use super::state::State;
use super::store::MemoryStore;
use super::tables::DbTime;
use crate::build;
use crate::conformance::EndpointChange;
use crate::rows::{DeliveryRow, EndpointStatus, RowState};

/// Maximum events and rows of a page.
const PAGE: usize = 64;

impl Outbox for MemoryStore {
    fn lease(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<LeasedEndpoint>, Unavailable>> {
        Box::pin(async move {
            self.db.simulate_read(&self.owner.node).await?;
            Ok(self.db.lease(self, webhook_id))
        })
    }

    fn flush(
        &self,
        webhook_id: WebhookId,
        flush: FlushRequest,
    ) -> StoreFuture<'_, Result<Option<DeliveryPage>, Unavailable>> {
        Box::pin(async move {
            let latency = self.db.faults().flush_latency;
            tokio::time::sleep(latency.before).await;
            self.db.simulate_read(&self.owner.node).await?;
            let page = self.db.flush(self, webhook_id, &flush);
            tokio::time::sleep(latency.after).await;
            let node = &self.owner.node;
            if self.db.faults().should_fail(node, FaultKind::FlushResponseLost) {
                return Err(Unavailable("the response was lost".to_owned()));
            }
            Ok(page)
        })
    }
}

impl MemoryDatabase {
    /// Adds an endpoint, which receives the partner's events from now on.
    pub fn add_endpoint(&self, partner_id: PartnerId, webhook_id: WebhookId) {
        self.with(|state| {
            let cursor = state.tables.feed(partner_id).newest();
            let endpoint = Endpoint::new(partner_id, cursor);
            state.tables.endpoints.insert(webhook_id, endpoint);
        });
    }

    /// Endpoints with their partners.
    #[must_use]
    pub fn endpoints(&self) -> Vec<(WebhookId, PartnerId)> {
        self.with(|state| {
            let endpoints = state.tables.endpoints.iter();
            endpoints
                .map(|(webhook_id, endpoint)| (*webhook_id, endpoint.partner_id))
                .collect()
        })
    }

    /// Whether every event of the endpoint is delivered, or given up after its 24 hours.
    #[must_use]
    pub fn is_delivered(&self, webhook_id: WebhookId) -> bool {
        let delivered = self.with_endpoint(webhook_id, |endpoint, feed, _| {
            let waits = endpoint.deliveries.values().any(Delivery::is_open);
            endpoint.status.cursor == feed.newest() && !waits
        });
        delivered.unwrap_or(true)
    }

    /// Appends an event of this order, without writing the order; returns its number. The first event of an
    /// order is `Created`, the others are `Processing`.
    pub fn append_event(&self, partner_id: PartnerId, order: u32) -> i64 {
        let now = self.now();
        self.with(|state| {
            let order_id = build::numbered_order_id(order);
            let events = state.tables.feed(partner_id).rows.iter();
            let earlier = events.filter(|row| row.bundle.order_id == order_id).count();
            let bundle = build::event_bundle(order, u32::try_from(earlier).expect("few") + 1);
            state.tables.append_events(partner_id, &bundle, now);
            state.tables.feed(partner_id).newest()
        })
    }

    /// Replays these events.
    ///
    /// # Panics
    /// If the endpoint does not exist.
    pub fn replay(&self, webhook_id: WebhookId, numbers: RangeInclusive<i64>) {
        let replayed = self.with_endpoint(webhook_id, |endpoint, feed, now| {
            endpoint.replay(numbers, feed, now);
        });
        replayed.expect("the endpoint exists");
    }

    /// Changes an endpoint, as a partner or an operator does.
    pub fn change_endpoint(&self, webhook_id: WebhookId, change: EndpointChange) {
        self.with(|state| match change {
            EndpointChange::Remove => drop(state.tables.endpoints.remove(&webhook_id)),
            EndpointChange::LoseEvents { after } => state.tables.lose_events(after),
            EndpointChange::ReplaceHistory => state.discontinuities += 1,
            _ => {}
        });
        self.with_endpoint(webhook_id, |endpoint, feed, now| match change {
            EndpointChange::SetEnabled(on) => endpoint.set_enabled(on, feed, now),
            EndpointChange::EnableByOperator => endpoint.set_enabled(true, feed, now),
            EndpointChange::SetEventKinds(kinds) => {
                endpoint.kinds = kinds;
                endpoint.revoke_lease(now);
            }
            EndpointChange::RotateSecret => endpoint.rotate_secret(now),
            EndpointChange::RequestRetry => endpoint.request_retry(feed, now),
            EndpointChange::ForgetLastLease => endpoint.forget_last_lease(),
            EndpointChange::Remove | EndpointChange::LoseEvents { .. } | EndpointChange::ReplaceHistory => {}
        });
    }

    /// Gives the lease of an endpoint to another process.
    pub fn steal_lease(&self, webhook_id: WebhookId) {
        self.with_endpoint(webhook_id, |endpoint, _, now| endpoint.steal_lease(now));
    }

    /// Status of an endpoint, if it exists.
    #[must_use]
    pub fn endpoint(&self, webhook_id: WebhookId) -> Option<EndpointStatus> {
        self.with_endpoint(webhook_id, |endpoint, _, _| endpoint.status)
    }

    /// Delivery rows of an endpoint by event number.
    #[must_use]
    pub fn deliveries(&self, webhook_id: WebhookId) -> BTreeMap<i64, DeliveryRow> {
        let rows = self.with_endpoint(webhook_id, |endpoint, _, _| {
            let rows = endpoint.deliveries.iter();
            rows.map(|(number, delivery)| (*number, delivery.row.clone()))
                .collect()
        });
        rows.unwrap_or_default()
    }

    #[must_use]
    pub fn delivery(&self, webhook_id: WebhookId, number: i64) -> Option<DeliveryRow> {
        self.deliveries(webhook_id).remove(&number)
    }

    /// Calls `act` with an endpoint, its partner's events and the time; `None` if the endpoint does not
    /// exist.
    fn with_endpoint<T>(
        &self,
        webhook_id: WebhookId,
        act: impl FnOnce(&mut Endpoint, Feed<'_>, DbTime) -> T,
    ) -> Option<T> {
        let now = self.now();
        self.with(|state| {
            let (endpoint, feed) = state.tables.endpoint_with_feed(webhook_id)?;
            Some(act(endpoint, feed, now))
        })
    }

    fn lease(&self, by: &MemoryStore, webhook_id: WebhookId) -> Option<LeasedEndpoint> {
        let history = self.with(|state| state.history());
        let leased = self.with_endpoint(webhook_id, |endpoint, feed, now| {
            let lease = endpoint.acquire_lease(&by.owner, history, feed, now)?;
            let sealed = |secret: u8| SealedSecret(Arc::from([secret]));
            let target = WebhookTarget {
                partner_id: endpoint.partner_id,
                webhook_id,
                url: "http://127.0.0.1/".to_owned(),
                secret: sealed(endpoint.secret),
                previous_secret: endpoint
                    .previous_secret
                    .map(|secret| (sealed(secret), build::NOW + LEASE_DURATION)),
            };
            Some(LeasedEndpoint {
                lease,
                target: Arc::new(target),
                cursor: endpoint.status.cursor,
                retry_to: endpoint.retry_to,
                consecutive_failures: endpoint.status.failures,
                backoff_step: endpoint.backoff_step,
                retry_in: endpoint.due_at.map_or(Duration::ZERO, |due| due.since(now)),
            })
        });
        leased.flatten()
    }

    /// `None` if the lease is lost.
    fn flush(&self, by: &MemoryStore, webhook_id: WebhookId, flush: &FlushRequest) -> Option<DeliveryPage> {
        let now = self.now();
        self.with(|state| {
            let history = state.history();
            let State {
                tables,
                removed_guards,
                ..
            } = state;
            let has_guard = |guard: Guard| !removed_guards.contains(&guard);
            let (endpoint, feed) = tables.endpoint_with_feed(webhook_id)?;
            if !endpoint.is_leased_under(flush.lease, &by.owner, history, has_guard) {
                return None;
            }
            if flush.has_writes() {
                if flush.changes.cursor > feed.newest() && has_guard(Guard::LostEvents) {
                    return None;
                }
                endpoint.apply(flush, feed, now, has_guard);
            }
            Some(match flush.lease_action {
                LeaseAction::Keep(Some(request)) => Page { endpoint, feed, now }.read(request),
                LeaseAction::Keep(None) | LeaseAction::Release => DeliveryPage::default(),
            })
        })
    }
}

/// Reader of a page: rows that are due or may be attempted, and events past the cursor, by number.
struct Page<'a> {
    endpoint: &'a Endpoint,
    feed: Feed<'a>,
    now: DbTime,
}

impl Page<'_> {
    fn read(&self, request: ReadRequest) -> DeliveryPage {
        let (ReadRequest::Due { after, limit } | ReadRequest::Oldest { after, limit }) = request;
        let deliveries = &self.endpoint.deliveries;
        let mut rows: Vec<_> = deliveries.range(..=after).collect();
        if matches!(request, ReadRequest::Oldest { .. }) {
            rows.retain(|(_, row)| row.due_at().is_some());
            rows.sort_by_key(|(number, row)| (self.next_attempt_while_failing(**number, row), **number));
            rows.truncate(limit);
        }
        let rows = rows.into_iter();
        let due = rows.filter_map(|(number, row)| self.due_row(*number, row, request));
        let later = deliveries.values().filter_map(Delivery::due_at);
        let next_due = later.filter(|due| *due > self.now).min();
        let mut page = DeliveryPage {
            pending: due.take(PAGE).collect(),
            scanned_to: after,
            has_more: false,
            next_due_in: next_due.map(|due| due.since(self.now)),
            retry_to: self.endpoint.retry_to,
        };
        let mut remaining = limit.min(PAGE);
        for number in after + 1..=self.feed.newest() {
            let pending = match deliveries.get(&number) {
                Some(row) => self.due_row(number, row, request),
                None => self.event_without_row(number),
            };
            if remaining == 0 && pending.is_some() {
                page.has_more = true;
                break;
            }
            remaining -= usize::from(pending.is_some());
            page.pending.extend(pending);
            page.scanned_to = number;
        }
        page
    }

    fn due_row(&self, number: i64, delivery: &Delivery, request: ReadRequest) -> Option<PendingDelivery> {
        let due = match (delivery.row.state, request) {
            (RowState::Waiting, ReadRequest::Oldest { .. }) => delivery.next_at,
            (RowState::Waiting, ReadRequest::Due { .. }) if delivery.next_at <= self.now => delivery.next_at,
            _ => return None,
        };
        Some(PendingDelivery {
            attempts: delivery.row.attempts,
            replays: delivery.replays,
            has_row: true,
            is_blocked: false,
            due_in: due.signed_since(self.now),
            give_up_in: delivery.expires_at.signed_since(self.now),
            ..self.pending(number)
        })
    }

    fn next_attempt_while_failing(&self, number: i64, delivery: &Delivery) -> DbTime {
        if number <= self.endpoint.retry_to {
            delivery.next_at.min(delivery.expires_at)
        } else {
            delivery.expires_at
        }
    }

    /// An event without a row, if the endpoint subscribes to its kind.
    fn event_without_row(&self, number: i64) -> Option<PendingDelivery> {
        let pending = self.pending(number);
        let kind = pending.event.events.kind(number)?;
        self.endpoint.kinds.contains(kind).then_some(pending)
    }

    fn pending(&self, number: i64) -> PendingDelivery {
        let row = self.feed.row_of(number);
        let order_id = row.bundle.order_id;
        let mut before = self.endpoint.deliveries.range(..number);
        let events = CommittedEvents {
            partner_id: self.feed.partner_id,
            first_number: row.number,
            bundle: row.bundle.clone(),
            created_at: build::NOW,
        };
        PendingDelivery {
            event: WebhookEvent {
                events: Arc::new(events),
                number,
            },
            order_id,
            attempts: 0,
            replays: 0,
            has_row: false,
            is_blocked: before.any(|(_, earlier)| earlier.order_id == order_id && earlier.is_open()),
            due_in: time::Duration::ZERO,
            give_up_in: row.at.after(RETRY_WINDOW).signed_since(self.now),
        }
    }
}
